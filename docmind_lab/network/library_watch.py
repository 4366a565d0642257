"""How requests of other libraries than httpx are watched in runs of the lab, and held in production.

In a run each request becomes an exchange, and its watch says where it goes and when it is cut. In production the hold
in force bounds the waits of the library itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import httpx

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.holds import Hold, current_hold
from docmind_lab.network.attempts import call_scope
from docmind_lab.network.exchange import Exchange, admit_all
from docmind_lab.network.guests import Watch
from docmind_lab.network.recorder import current_recorder


class LibraryWatch(Watch, Protocol):
    """A watch that says whether requests are carried. carries: whether what answers them is simulated."""

    @property
    def carries(self) -> bool:
        """Whether httpx carries the requests of other libraries."""
        ...


Find = Callable[[str], LibraryWatch | None]
"""Host → the watch of the calling code, if it watches requests to that host."""

NOBODY_WATCHES = "the run that sent this request has ended, and nothing real is reached in virtual time"
"""What a compiled client raises for a request of a run in virtual time that is watched no more."""


def exchange_of(watch: Watch, method: str, url: str, body: bytes = b"") -> Exchange:
    """Return the exchange of a request that its library sends itself. Raises: what the watch raises."""
    passage = watch.passage(method, url, False)
    request = httpx.Request(method, url, content=body)
    with call_scope(passage.call), deadline_scope(passage.deadline):
        return Exchange(request, admit_all, watch.cut, read_timeout_s=passage.read_timeout_s)


@contextlib.contextmanager
def note_failures(exchange: Exchange) -> Any:
    """Note what an operation of another library raises as httpx's error of the same meaning."""
    try:
        yield
    except TimeoutError as error:
        exchange.note_failure(httpx.ReadTimeout(str(error)))
        raise
    except BaseException as error:
        exchange.note_failure(error)
        raise


def note_head(exchange: Exchange, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Note the status and the headers of a response, with which it begins."""
    if exchange.attempt is not None:
        exchange.attempt.note_first_byte()
    exchange.note_response(status, [(bytes(name), bytes(value)) for name, value in headers])


# ---- in production


def hold_in_force() -> tuple[Hold, Deadline] | None:
    """Return the hold on the calling code and its deadline; None without one, and in a run of the lab's own."""
    hold = current_hold()
    deadline = None if hold is None else hold.in_force
    if hold is None or current_recorder() is not None:
        return None
    if hold.only_tells and hold.was_cancelled:
        hold.refuse_if_over()
    return None if deadline is None else (hold, deadline)


def is_late(hold: Hold) -> bool:
    """Whether the deadline in force may have ended a wait."""
    deadline = hold.in_force
    return deadline is not None and deadline.ends_a_wait
