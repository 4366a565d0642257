"""Hooks that hold the requests of existing HTTP clients to the deadline in force, installed once for the process.

    install()                  # httpx, httpx2, requests and aiohttp, as far as they are there
    exclude(metrics_client)    # this one is never held
    uninstall()                # everything as it was

Outside a deadline a hooked client does what it always did. `enforce` and `deadline` install the hooks at first use.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, RunCut
from docmind_lab.core.holds import Hold, current_hold, hold_scope
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.deadline_headers import DeadlineOnWire, put_in_force
from docmind_lab.network.guests import GuestCall, GuestHooks
from docmind_lab.network.recorder import current_recorder
from docmind_lab.network.replacements import Replacements

Client = Literal["httpx", "requests", "aiohttp"]
CLIENTS: tuple[Client, ...] = ("httpx", "requests", "aiohttp")
"""The clients that can be held: httpx stands for httpx2 too, and requests for urllib3."""

_MODULES = {"httpx": "httpx", "requests": "urllib3", "aiohttp": "aiohttp"}
_lock = threading.RLock()
_installed: dict[Client, Replacements] = {}
# What `install` was asked for; None while nobody has asked.
_chosen: frozenset[Client] | None = None


def _forget_a_parents_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_a_parents_lock)


def install(clients: Sequence[Client] | None = None, *, wire: DeadlineOnWire | None = None) -> None:
    """Install the hooks on HTTP clients; those that have them already keep them.

    Args:
        clients: Which clients, of `CLIENTS`; None for all whose library is there.
        wire: Which requests carry the time left, until `uninstall`; None to leave that as it is.

    Raises:
        ConfigurationError: An unknown client, or one whose library is not installed.
    """
    global _chosen
    if isinstance(clients, str):
        raise ConfigurationError(f"clients is a list of names; write install([{clients!r}])")
    for name in clients or ():
        if name not in CLIENTS:
            raise ConfigurationError(f"clients: {name!r} is not known; the clients are {', '.join(CLIENTS)}")
        if importlib.util.find_spec(_MODULES[name]) is None:
            raise ConfigurationError(f"clients: {name!r} needs the package {_MODULES[name]}, which is not installed")
    with _lock:
        _chosen = frozenset(CLIENTS if clients is None else clients)
        if wire is not None:
            put_in_force(wire)
        _install(name for name in CLIENTS if name in _chosen and importlib.util.find_spec(_MODULES[name]) is not None)


def install_lazily() -> None:
    """Install the hooks on the clients that were chosen, or else on those whose library the process has imported.

    Hooks that another library has taken off, since it put back what it had found before them, are installed again.
    """
    wanted = CLIENTS if _chosen is None else _chosen
    missing = [name for name in wanted if name not in _installed and _MODULES[name] in sys.modules]
    if missing:
        with _lock:
            _install(missing)
    for hooks in list(_installed.values()):
        hooks.renew()


def _install(names: Iterable[Client]) -> None:
    for name in names:
        if name not in _installed:
            _installed[name] = _HOOKS[name]()


def uninstall() -> None:
    """Remove the hooks: every method is the library's own again, unless somebody else has replaced it since."""
    global _chosen
    with _lock:
        _chosen = None
        put_in_force(None)
        while _installed:
            _installed.popitem()[1].remove()


def installed() -> tuple[Client, ...]:
    """Return the clients whose requests are held."""
    return tuple(name for name in CLIENTS if name in _installed)


def exclude(client: Any) -> None:
    """Never hold the requests of this client.

    Args:
        client: A client or session of httpx, httpx2 or requests.

    Raises:
        ConfigurationError: The object has no method `send`, by which a client could be told.
    """
    send = getattr(client, "send", None)
    if not callable(send):
        raise ConfigurationError(
            f"client: {type(client).__name__} has no method send; give a client of httpx, httpx2 or requests"
        )

    # The scope covers what is awaited, for an async client, as well as what is called.
    if _is_async(client):

        @functools.wraps(send)
        async def free_async(*arguments: Any, **options: Any) -> Any:
            with hold_scope(None):
                return await send(*arguments, **options)

        client.send = free_async
    else:

        @functools.wraps(send)
        def free(*arguments: Any, **options: Any) -> Any:
            with hold_scope(None):
                return send(*arguments, **options)

        client.send = free


def _is_async(client: Any) -> bool:
    return hasattr(client, "aclose")


_HELD_IN_TOTAL = GuestCall(None)


class _HeldCode:
    """The calling code of a held block, as the hooks see it: a `Watch` that records nothing."""

    __slots__ = ("_hold",)
    records = False

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def passage(self, method: str, url: str, is_retry: bool) -> GuestCall:
        """Return the limits of a request. Raises: RunCut if the time is over."""
        hold = self._hold
        hold.refuse_if_over()
        if hold.policy.cap == "total":
            # The deadline itself is in force here.
            return _HELD_IN_TOTAL
        deadline = hold.in_force
        return GuestCall(None, read_timeout_s=None if deadline is None else deadline.cap(None))

    def cut(self, attempt: Attempt | None, deadline: Deadline | None) -> RunCut:
        """Return the error to raise in the client of a request that was cut."""
        return self._hold.cut()

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that is handed to a thread: it counts as work, and does not begin when the time is over."""
        return self._hold.as_thread_work(function)


def held_requests() -> _HeldCode | None:
    """Return what holds the requests of the calling code; None outside a deadline, and in a run of the lab's own.

    A recorded run has hooks of its own, which observe the requests that they hold.
    """
    hold = current_hold()
    if hold is None or current_recorder() is not None:
        return None
    is_held = hold.in_force is not None or (hold.only_tells and hold.was_cancelled)
    return _HeldCode(hold) if is_held else None


def held_work() -> _HeldCode | None:
    """Return what counts the work that the calling code hands to threads; None as for `held_requests`."""
    hold = current_hold()
    return None if hold is None or current_recorder() is not None else _HeldCode(hold)


def _hook_httpx() -> Replacements:
    hooks = GuestHooks(held_requests, held_work, holds_all=True)
    hooks.install()
    return hooks


# Function-level imports: only where the library is there and is to be held.
def _hook_urllib3() -> Replacements:
    from docmind_lab.network.http_client import hold_urllib3  # noqa: PLC0415

    return hold_urllib3()


def _hook_aiohttp() -> Replacements:
    from docmind_lab.network.aiohttp_client import hold_aiohttp  # noqa: PLC0415

    return hold_aiohttp()


_HOOKS: dict[Client, Callable[[], Replacements]] = {
    "httpx": _hook_httpx,
    "requests": _hook_urllib3,
    "aiohttp": _hook_aiohttp,
}
