"""Hooks that hold the requests of existing HTTP clients to the deadline in force, installed once for the process.

    install()                  # httpx, httpx2, requests and aiohttp, as far as they are there
    exclude(metrics_client)    # this one is never held
    uninstall()                # everything as it was

Outside a deadline a hooked client does what it always did. `enforce` and `deadline` install the hooks at first use.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import hold_scope
from docmind_lab.network.clients.httpx import HttpxAdapter
from docmind_lab.network.clients.installing import CLIENTS, HOLDING, Client, is_there
from docmind_lab.network.deadline_headers import DeadlineOnWire, put_in_force
from docmind_lab.network.recorder import current_recorder
from docmind_lab.network.replacements import Replacements

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
        package = HOLDING[name][0]
        if not is_there(package):
            raise ConfigurationError(f"clients: {name!r} needs the package {package}, which is not installed")
    with _lock:
        _chosen = frozenset(CLIENTS if clients is None else clients)
        if wire is not None:
            put_in_force(wire)
        _install(name for name in CLIENTS if name in _chosen and is_there(HOLDING[name][0]))


def install_lazily() -> None:
    """Install the hooks on the clients that were chosen, or else on those whose library the process has imported.

    Hooks that another library has taken off, since it put back what it had found before them, are installed again. A
    run of the lab has hooks of its own, which would stay under these at its end.
    """
    if current_recorder() is not None:
        return
    names = CLIENTS if _chosen is None else _chosen
    missing = [name for name in names if name not in _installed and HOLDING[name][0] in sys.modules]
    if missing:
        with _lock:
            _install(missing)
    for adapter in list(_installed.values()):
        adapter.renew()


def _install(names: Iterable[Client]) -> None:
    for name in names:
        if name not in _installed:
            # Held requests and others share connections, as they would without hooks.
            adapter = HttpxAdapter(holds_all=True) if name == "httpx" else HOLDING[name][1]()
            adapter.hold()
            _installed[name] = adapter


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
    if hasattr(client, "aclose"):

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
