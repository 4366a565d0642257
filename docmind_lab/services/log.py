"""The service's own log of what it did for each request: the evidence for work that went on after a deadline."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from docmind_lab.services.plan import Plan, ServiceRequest

RowOutcome = Literal["open", "ok", "client_gone", "cancelled", "error", "ended"]

# Requests without a run (a person with curl) are kept for a look, not for ever.
_UNCLAIMED_ROWS = 10_000


@dataclass
class RequestRow:
    """One request as the service saw it. Instants are the machine's monotonic seconds; None: not reached.

    queue_wait_s: from the receipt until a slot of the model server was had; all of its time for a request that got none
    (so far, when it is open). status: the one that was sent; a request without one sent no byte.
    token_spans: (begun_at, ended_at, tokens) of each stretch of generation, tokens evenly spread.
    fault: the kind of the fault that struck, empty for none. made_up: as the plan has it.
    outcome: ok (played to the end), client_gone (stopped because the client left), cancelled (a peer's task that was
    asked to stop and did), error (a status ≥ 400, or the service closed the connection), ended (cut by the service when
    its run was over), open (queued or at work). A row of kind "peer" ends with the work on its task, which may go on
    long after its client has left.
    """

    kind: str
    run_id: str
    call_id: str
    attempt: int
    role: str
    step: str
    received_at: float
    queue_wait_s: float = 0.0
    first_byte_at: float | None = None
    last_byte_at: float | None = None
    client_gone_at: float | None = None
    ended_at: float | None = None
    status: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    token_spans: list[tuple[float, float, int]] = field(default_factory=list)
    fault: str = ""
    made_up: str = ""
    outcome: RowOutcome = "open"

    def moved(self, by_s: float) -> RequestRow:
        """Return the row with all of its instants later by so many seconds: as another clock would have seen it."""
        instants = ("received_at", "first_byte_at", "last_byte_at", "client_gone_at", "ended_at")
        times = {name: getattr(self, name) for name in instants}
        later: dict[str, Any] = {name: None if instant is None else instant + by_s for name, instant in times.items()}
        spans = [(begun_at + by_s, ended_at + by_s, tokens) for begun_at, ended_at, tokens in self.token_spans]
        return replace(self, token_spans=spans, **later)


class ServiceLog:
    """The rows of all requests, by run. Safe to use from any thread."""

    def __init__(self) -> None:
        self._rows: dict[str, list[RequestRow]] = {}
        self._unclaimed: deque[RequestRow] = deque(maxlen=_UNCLAIMED_ROWS)
        self._lock = threading.Lock()

    def received(self, request: ServiceRequest, plan: Plan, received_at: float) -> RequestRow:
        """Begin the row of a request and return it."""
        row = RequestRow(
            kind=plan.kind,
            run_id=request.tag("run-id"),
            call_id=request.tag("call-id"),
            attempt=request.number("attempt", 1),
            role=request.tag("role"),
            step=request.tag("step"),
            received_at=received_at,
            input_tokens=plan.input_tokens,
            fault=plan.fault,
            made_up=plan.made_up,
        )
        with self._lock:
            if row.run_id:
                self._rows.setdefault(row.run_id, []).append(row)
            else:
                self._unclaimed.append(row)
        return row

    def rows(self, run_id: str) -> list[RequestRow]:
        """Return the rows of a run so far; those of requests without a run if `run_id` is empty."""
        with self._lock:
            return list(self._rows.get(run_id, ())) if run_id else list(self._unclaimed)

    def open_rows(self, run_id: str) -> int:
        """Return how many requests of the run wait in the service's queue or are being worked on."""
        return sum(row.outcome == "open" for row in self.rows(run_id))

    def forget(self, run_id: str) -> None:
        """Drop the rows of a run."""
        with self._lock:
            self._rows.pop(run_id, None)


def rows_from_json(payload: Iterable[dict[str, Any]]) -> list[RequestRow]:
    """Return rows of their fields, as `asdict` gives them and JSON carries them."""
    rows = [RequestRow(**item) for item in payload]
    for row in rows:
        row.token_spans = [(float(begun), float(ended), int(tokens)) for begun, ended, tokens in row.token_spans]
    return rows
