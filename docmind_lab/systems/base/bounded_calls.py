"""Calls of a system that are no model calls: recorded, refused with nothing left, and cut at the state's deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
from qdrant_client.http.exceptions import ApiException

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.errors import DeadlineExceeded
from docmind_lab.network.attempts import CallKind
from docmind_lab.network.recorder import current_recorder, note_event, position_of

RETRIEVAL: Final = "retrieval"
"""The role of a search."""

SEARCH_FAILURES = (ApiException, httpx.HTTPError, TimeoutError)
"""What a search may fail with; a spent deadline is a TimeoutError too."""


@contextlib.contextmanager
def recorded_call(kind: CallKind, role: str, position: str, deadline: Deadline | None) -> Iterator[None]:
    """Record the block as one call, however many requests it makes, and hold all of them to the deadline."""
    total = deadline if current_policy().cap == "total" else None
    recorder = current_recorder()
    with contextlib.ExitStack() as stack:
        if recorder is not None:
            call = stack.enter_context(recorder.call(kind, role, position, cap_from_deadline=deadline is not None))
            if deadline is not None and total is None:
                call.read_timeout_s = deadline.cap(None)
        stack.enter_context(deadline_scope(total))
        yield


def is_spent(deadline: Deadline | None) -> bool:
    """Return whether too little time is left for a request."""
    return deadline is not None and deadline.remaining() <= current_policy().floor_s


def cut_error(kind: CallKind, role: str, deadline: Deadline) -> DeadlineExceeded:
    """Record that the deadline has cut a call, and return the error to raise."""
    note_event("deadline_cut", role, kind=kind, source="network")
    return deadline.exceeded(role, "network")


@contextlib.contextmanager
def bounded_call(
    kind: CallKind,
    role: str,
    position: str,
    deadline: Deadline | None,
    *,
    failures: tuple[type[Exception], ...],
    source: str,
) -> Iterator[None]:
    """Record the block as one call that ends with the deadline.

    Args:
        kind: What is called.
        role: Whose call it is.
        position: The call's place in the run.
        deadline: Ends the call; without one the client's own timeout is the only limit.
        failures: What the client raises when a call is cut.
        source: What refuses a call, as errors name it.

    Raises:
        BudgetRefused: Nothing is left.
        DeadlineExceeded: In place of the client's error when the deadline is over.
    """
    if deadline is not None and is_spent(deadline):
        if (recorder := current_recorder()) is not None:
            recorder.refuse(kind, role, position)
        raise deadline.refused(role, source)
    with recorded_call(kind, role, position, deadline):
        try:
            yield
        except failures as error:
            if deadline is None or not is_spent(deadline):
                raise
            raise cut_error(kind, role, deadline) from error


def bounded_search(state: Mapping[str, Any], clock: Clock = WALL) -> contextlib.AbstractContextManager[None]:
    """Return a `bounded_call` for a search, limited by the deadline in the state."""
    deadline = Deadline.from_state(state, clock)
    return bounded_call(
        "retrieval", RETRIEVAL, position_of(state), deadline, failures=SEARCH_FAILURES, source="retrieval"
    )
