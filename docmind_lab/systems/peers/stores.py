"""The store of pending calls, where one atomic claim lets exactly one party decide each call.

    SqliteStore()                      DELETE … RETURNING, in memory: the parent is one process
    SqliteStore("pending.db")          the same in a file: processes of one machine

No pending entry expires by itself: a timeout is a reason to claim an entry, and data that vanished would leave nobody
to tell the parent. Durations are kept, instants are not. A file may be locked for long, or not be writable any more;
then the store raises a StoreError within seconds, and the caller decides without it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from docmind_lab.core.errors import ConfigurationError, StoreError
from docmind_lab.systems.base.sqlite_tables import IN_MEMORY, SqliteTables
from docmind_lab.systems.peers.correlation import CorrelationEntry

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
