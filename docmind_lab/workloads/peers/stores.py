"""Where pending calls are kept, so that exactly one party decides each: one atomic claim, whatever the store.

    InProcessStore()                   a dictionary and a lock: the parent is one process
    SqliteStore("pending.db")          DELETE … RETURNING: processes of one machine
    RedisStore("redis://host:6379")    GETDEL: processes of several machines (extra "redis"; not in virtual time)

Nothing in a store expires by itself: a timeout is a reason to claim an entry, and data that vanished would leave nobody
to tell the parent. Durations are kept, instants are not.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from docmind_lab.errors import ConfigurationError
from docmind_lab.workloads.peers.correlation import CorrelationEntry

# Another process holds the file's lock for one statement, which takes microseconds; a disk may pause for seconds.
_BUSY_S = 10.0
_RETURNING_SINCE = (3, 35)
_KEY = "docmind:peer:"


class CorrelationStore(Protocol):
    """Pending calls by the caller's own name of them. Safe to use from any thread."""

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError when one is there already."""
        ...

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None when somebody else has."""
        ...

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call that has `seen` of them; whether that was so."""
        ...

    def pending(self) -> tuple[str, ...]:
        """Names of the calls that nobody has claimed, in order."""
        ...

    def close(self) -> None:
        """Let go of files and connections; entries stay where they are."""
        ...


def _known_already(sub_task_id: str) -> ConfigurationError:
    return ConfigurationError(f"call {sub_task_id!r} is pending already; give each call a name of its own")


class InProcessStore:
    """A dictionary and a lock."""

    def __init__(self) -> None:
        self._entries: dict[str, CorrelationEntry] = {}
        self._lock = threading.Lock()

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError when one is there already."""
        with self._lock:
            made = dict(self._entries)
            for entry in entries:
                if made.setdefault(entry.sub_task_id, entry) is not entry:
                    raise _known_already(entry.sub_task_id)
            self._entries = made

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None when somebody else has."""
        with self._lock:
            return self._entries.pop(sub_task_id, None)

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call that has `seen` of them; whether that was so."""
        with self._lock:
            entry = self._entries.get(sub_task_id)
            if entry is None or entry.extensions != seen:
                return False
            self._entries[sub_task_id] = replace(entry, extensions=seen + 1)
            return True

    def pending(self) -> tuple[str, ...]:
        """Names of the calls that nobody has claimed, in order."""
        with self._lock:
            return tuple(sorted(self._entries))

    def close(self) -> None:
        """Nothing is held."""


class SqliteStore:
    """A file that processes of one machine share. Raises: ConfigurationError for an SQLite that is too old."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if sqlite3.sqlite_version_info < _RETURNING_SINCE:
            raise ConfigurationError(f"SQLite {sqlite3.sqlite_version} has no DELETE … RETURNING; use 3.35 or newer")
        # One connection and a lock for it: statements are short, and a connection is not made for several threads.
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        # By `close`, or when nobody refers to the store any more.
        self._closing = weakref.finalize(self, self._database.close)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS pending (sub_task_id TEXT PRIMARY KEY, entry TEXT NOT NULL, extensions INTEGER)"
        )

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError when one is there already."""
        rows = [(entry.sub_task_id, entry.as_json(), entry.extensions) for entry in entries]
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("INSERT INTO pending VALUES (?, ?, ?)", rows)
            except sqlite3.IntegrityError as error:
                self._database.execute("ROLLBACK")
                raise _known_already(", ".join(row[0] for row in rows)) from error
            self._database.execute("COMMIT")

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None when somebody else has."""
        with self._lock:
            rows = self._database.execute(
                "DELETE FROM pending WHERE sub_task_id = ? RETURNING entry, extensions", (sub_task_id,)
            ).fetchall()
        return replace(CorrelationEntry.from_json(rows[0][0]), extensions=rows[0][1]) if rows else None

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call that has `seen` of them; whether that was so."""
        with self._lock:
            cursor = self._database.execute(
                "UPDATE pending SET extensions = extensions + 1 WHERE sub_task_id = ? AND extensions = ?",
                (sub_task_id, seen),
            )
            return cursor.rowcount == 1

    def pending(self) -> tuple[str, ...]:
        """Names of the calls that nobody has claimed, in order."""
        with self._lock:
            rows = self._database.execute("SELECT sub_task_id FROM pending ORDER BY sub_task_id").fetchall()
        return tuple(row[0] for row in rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closing()


class RedisStore:
    """Keys of a Redis server of 6.2 or newer. at: its URL, or a client of the package redis.

    A claim waits for the server's answer, in real time. Raises: ConfigurationError without the package redis.
    """

    def __init__(self, at: str | Any) -> None:
        try:
            # Function-level: an optional package, which only this store needs.
            import redis  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigurationError('RedisStore needs the package redis: pip install "docmind_lab[redis]"') from error
        self._redis = redis.Redis.from_url(at) if isinstance(at, str) else at
        self._changed_meanwhile = redis.WatchError

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError when one is there already."""
        if entries and not self._redis.msetnx({_KEY + entry.sub_task_id: entry.as_json() for entry in entries}):
            raise _known_already(", ".join(entry.sub_task_id for entry in entries))

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None when somebody else has."""
        value = self._redis.getdel(_KEY + sub_task_id)
        return None if value is None else CorrelationEntry.from_json(_text(value))

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call that has `seen` of them; whether that was so."""
        key = _KEY + sub_task_id
        with self._redis.pipeline() as pipeline:
            pipeline.watch(key)
            value = pipeline.get(key)
            entry = None if value is None else CorrelationEntry.from_json(_text(value))
            if entry is None or entry.extensions != seen:
                return False
            pipeline.multi()
            pipeline.set(key, replace(entry, extensions=seen + 1).as_json())
            try:
                pipeline.execute()
            except self._changed_meanwhile:
                # Claimed or extended between our look and our write.
                return False
            return True

    def pending(self) -> tuple[str, ...]:
        """Names of the calls that nobody has claimed, in order."""
        return tuple(sorted(_text(key).removeprefix(_KEY) for key in self._redis.scan_iter(f"{_KEY}*")))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
