"""A pending call to a peer: its data, the limits of its time, its outcomes, and the store that it is in.

    PENDING ──► COMPLETED    the peer answered first
            ├─► TIMED_OUT    its time ran out first
            ├─► CANCELLED    the parent was cancelled first
            └─► SEND_FAILED  it could not be sent, or the connection broke

A call is pending as long as its entry is in the store. Whoever *claims* the entry, which removes and returns it in one
step, decides what becomes of the call; everyone who comes later finds nothing, and changes nothing.

    SqliteStore()                      DELETE … RETURNING, in memory: the parent is one process
    SqliteStore("pending.db")          the same in a file: processes of one machine

No pending entry expires by itself: a timeout is a reason to claim an entry, and data that vanished would leave nobody
to tell the parent. Durations are kept, instants are not. A file may be locked for long, or not be writable any more;
then the store raises a StoreError within seconds, and the caller decides without it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, get_args

from docmind_lab.core.errors import ConfigurationError, StoreError
from docmind_lab.core.numbers import require_seconds
from docmind_lab.systems.base.sqlite_tables import IN_MEMORY, SqliteTables

PeerOutcome = Literal["completed", "timed_out", "cancelled", "send_failed"]
PEER_OUTCOMES: tuple[PeerOutcome, ...] = get_args(PeerOutcome)


@dataclass(frozen=True)
class CorrelationEntry:
    """A pending call, as the store keeps it.

    sub_task_id: the caller's own name of the call, known before anything is sent. function_call_id: of the model's tool
    call. peer_agent_name: whom to send a cancel to, if it is known. timeout_s: a duration, since clocks of different
    machines agree on nothing else. extensions: how often a sign of life has put the timeout off.
    """

    sub_task_id: str
    function_call_id: str
    peer_agent_name: str
    logical_task_id: str
    invocation_id: str
    timeout_s: float
    extensions: int = 0

    def as_json(self) -> str:
        """Return the entry as one line of JSON, for stores outside this process."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CorrelationEntry:
        """Parse an entry that `as_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class PeerResult:
    """The result of one call. payload: of a completed one. error: of any other, in words that name what fired."""

    function_call_id: str
    peer: str
    outcome: PeerOutcome
    payload: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


Limit = Literal["peer_timeout", "hard_cap", "deadline"]
LIMITS: tuple[Limit, ...] = ("peer_timeout", "hard_cap", "deadline")


@dataclass(frozen=True)
class PeerTimeouts:
    """Time limits of calls to peers, in seconds.

    timeout_s: without an answer or a sign of life, a call has timed out. hard_cap_s: with signs of life, at the latest.
    cancel_s: how long a cancel request may take. listen_s: how long after its timeout a call's stream is kept open, so
    that a late answer is heard, acknowledged and counted.
    Raises: ConfigurationError naming the field.
    """

    timeout_s: float = 8.0
    hard_cap_s: float = 14.0
    cancel_s: float = 0.25
    listen_s: float = 15.0

    def __post_init__(self) -> None:
        for each in fields(self):
            require_seconds(each.name, getattr(self, each.name))
        if self.hard_cap_s < self.timeout_s:
            raise ConfigurationError(
                f"hard_cap_s {self.hard_cap_s:g} must not be below timeout_s {self.timeout_s:g}; raise it"
            )

    def due(self, since_s: float, left_s: float) -> tuple[float, Limit]:
        """Return after how many seconds from its start a call times out, and by which limit.

        since_s: when it last gave a sign of life, seconds after its start. left_s: what the run's deadline leaves to
        it, counted from its start; inf for all the time there is. Of equal limits the deadline is it, then the cap.
        """
        limits: list[tuple[float, Limit]] = [
            (left_s, "deadline"),
            (self.hard_cap_s, "hard_cap"),
            (since_s + self.timeout_s, "peer_timeout"),
        ]
        return min(limits, key=lambda limit: limit[0])


def describe_limit(limit: Limit, after_s: float) -> str:
    """Describe the limit that fired, in words."""
    named = {
        "peer_timeout": "its own timeout",
        "hard_cap": "the cap on extended timeouts",
        "deadline": "what the run's deadline left to it",
    }
    return f"no answer within {after_s:.3f} s: {named[limit]} was over"


# Another process holds the file's lock for one statement, which takes microseconds; a disk may pause for seconds.
_BUSY_S = 10.0
_RETURNING_SINCE = (3, 35)

_SCHEMA = """
PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS pending (sub_task_id TEXT PRIMARY KEY, entry TEXT NOT NULL, extensions INTEGER);
"""


class SqliteStore(SqliteTables):
    """A store in this process's memory, or in a file shared by processes of one machine; any thread may use it.

    blocks: methods wait for a disk, so that an event loop must not call them directly.
    Raises: ConfigurationError for an old SQLite. Every method raises StoreError when the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str] = IN_MEMORY) -> None:
        if sqlite3.sqlite_version_info < _RETURNING_SINCE:
            raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} has no DELETE … RETURNING; use 3.35 or newer")
        super().__init__(path, _SCHEMA, timeout_s=_BUSY_S)
        self.blocks: Final = path != IN_MEMORY

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError if one exists already."""
        rows = [(entry.sub_task_id, entry.as_json(), entry.extensions) for entry in entries]
        with self._lock, _sqlite_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("INSERT INTO pending VALUES (?, ?, ?)", rows)
            except sqlite3.IntegrityError as error:
                self._connection.execute("ROLLBACK")
                names = ", ".join(row[0] for row in rows)
                raise ConfigurationError(f"call {names!r} is pending already; give each call its own name") from error
            self._connection.execute("COMMIT")

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None if it was claimed before."""
        with self._lock, _sqlite_errors():
            rows = self._connection.execute(
                "DELETE FROM pending WHERE sub_task_id = ? RETURNING entry, extensions", (sub_task_id,)
            ).fetchall()
        return replace(CorrelationEntry.from_json(rows[0][0]), extensions=rows[0][1]) if rows else None

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call if it has `seen` of them; return whether it was so."""
        with self._lock, _sqlite_errors():
            cursor = self._connection.execute(
                "UPDATE pending SET extensions = extensions + 1 WHERE sub_task_id = ? AND extensions = ?",
                (sub_task_id, seen),
            )
            return cursor.rowcount == 1

    def pending(self) -> tuple[str, ...]:
        """Return the names of the calls that are not claimed, in order."""
        with self._lock, _sqlite_errors():
            rows = self._connection.execute("SELECT sub_task_id FROM pending ORDER BY sub_task_id").fetchall()
        return tuple(row[0] for row in rows)


@contextlib.contextmanager
def _sqlite_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the file of pending calls cannot be used ({error})") from error
