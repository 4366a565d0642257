"""Stores of pending calls, where one atomic claim lets exactly one party decide each call.

    SqliteStore()                      DELETE … RETURNING, in memory: the parent is one process
    SqliteStore("pending.db")          the same in a file: processes of one machine
    RedisStore("redis://host:6379")    RENAMENX: processes of several machines (extra "redis"; not in virtual time)

No pending entry expires by itself: a timeout is a reason to claim an entry, and data that vanished would leave nobody
to tell the parent. Durations are kept, instants are not. A store outside this process may fail or stop answering; then
it raises a StoreError within seconds, and the caller decides without it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, TypeVar

from docmind_lab.core.errors import ConfigurationError, StoreError
from docmind_lab.systems.base.sqlite_tables import IN_MEMORY, SqliteTables
from docmind_lab.systems.peers.correlation import CorrelationEntry

_Reply = TypeVar("_Reply")

# Another process holds the file's lock for one statement, which takes microseconds; a disk may pause for seconds.
_BUSY_S = 10.0
_RETURNING_SINCE = (3, 35)
_PENDING, _CLAIMED, _OWNER = "docmind:peer:", "docmind:claimed:", "docmind:owner:"
# A server on the same network answers within milliseconds; a call's own timeouts are of seconds.
_ANSWERS_WITHIN_S = 0.5
# As long as a late claim may come: far beyond every timeout of calls.
_RECEIPT_S = 3600


class CorrelationStore(Protocol):
    """A store of pending calls, by the caller's own name for each. Safe to use from any thread."""

    @property
    def blocks(self) -> bool:
        """Whether methods wait for a disk or a server, so that an event loop must not call them directly."""
        ...

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError if one exists already; StoreError."""
        ...

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None if it was claimed before. Raises: StoreError."""
        ...

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call with `seen`; return whether it was so. Raises: StoreError."""
        ...

    def pending(self) -> tuple[str, ...]:
        """Return the names of the calls that are not claimed, in order."""
        ...

    def close(self) -> None:
        """Close files and connections; entries stay in the store."""
        ...


def _pending_error(sub_task_id: str) -> ConfigurationError:
    return ConfigurationError(f"call {sub_task_id!r} is pending already; give each call a name of its own")


_SCHEMA = """
PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS pending (sub_task_id TEXT PRIMARY KEY, entry TEXT NOT NULL, extensions INTEGER);
"""


class SqliteStore(SqliteTables):
    """A store in this process's memory, or in a file shared by processes of one machine.

    Raises: ConfigurationError for an old SQLite.
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
                raise _pending_error(", ".join(row[0] for row in rows)) from error
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
        with self._lock:
            rows = self._connection.execute("SELECT sub_task_id FROM pending ORDER BY sub_task_id").fetchall()
        return tuple(row[0] for row in rows)


@contextlib.contextmanager
def _sqlite_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"the file of pending calls cannot be used ({error})") from error


class RedisStore:
    """A store in a Redis server, for processes of several machines. A failed command is tried once more.

    A claim renames the entry's key and writes whose claim it is, in one transaction, so that a claim whose reply was
    lost is settled by claiming again. What is left of a claimed entry expires after an hour.

    at: the server's URL, or a client of the package redis. A client of your own should have a `socket_timeout` and no
    retries: it is waited for as it says.
    Raises: ConfigurationError: the package redis is not installed.
    """

    blocks: Final = True

    def __init__(self, at: str | Any) -> None:
        try:
            # Function-level: an optional package, which only this store needs.
            import redis  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
            from redis.retry import Retry  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigurationError('RedisStore needs the package redis: pip install "docmind_lab[redis]"') from error
        self._redis = (
            redis.Redis.from_url(
                at,
                socket_timeout=_ANSWERS_WITHIN_S,
                socket_connect_timeout=_ANSWERS_WITHIN_S,
                # Commands are repeated here, where it is known which of them may be.
                retry=Retry(NoBackoff(), 0),
            )
            if isinstance(at, str)
            else at
        )
        self._errors, self._refused = redis.RedisError, redis.ResponseError
        self._changed_meanwhile = redis.WatchError

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError if one exists already; StoreError."""
        if not entries:
            return
        names = [entry.sub_task_id for entry in entries]
        values = {_PENDING + entry.sub_task_id: entry.as_json() for entry in entries}

        def added(is_repeated: bool) -> bool:
            with self._redis.pipeline() as pipeline:
                pipeline.msetnx(values)
                pipeline.mget(list(values))
                # Of calls that had the same names before.
                pipeline.delete(*(prefix + name for name in names for prefix in (_CLAIMED, _OWNER)))
                is_new, there, _ = pipeline.execute()
            # The reply to the first try may have been lost after the server had done what it says.
            is_ours = [None if text is None else _text(text) for text in there] == list(values.values())
            return bool(is_new) or (is_repeated and is_ours)

        if not self._retry_once(added):
            raise _pending_error(", ".join(names))

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None if it was claimed before. Raises: StoreError."""
        token = uuid.uuid4().hex
        claimed, owner = _CLAIMED + sub_task_id, _OWNER + sub_task_id

        def owned(_: bool) -> tuple[Any, Any]:
            with self._redis.pipeline() as pipeline:
                pipeline.renamenx(_PENDING + sub_task_id, claimed)
                pipeline.set(owner, token, nx=True, ex=_RECEIPT_S)
                pipeline.expire(claimed, _RECEIPT_S)
                pipeline.get(claimed)
                pipeline.get(owner)
                renamed, *_rest, value, claimant = pipeline.execute(raise_on_error=False)
            # An entry that is not pending any more cannot be renamed, which is an answer.
            for reply in (renamed, value, claimant):
                if isinstance(reply, Exception) and not (reply is renamed and isinstance(reply, self._refused)):
                    raise reply
            return value, claimant

        value, claimant = self._retry_once(owned)
        if value is None:
            raise StoreError(f"the Redis server has no entry of call {sub_task_id!r}, claimed or not; it was lost")
        return CorrelationEntry.from_json(_text(value)) if _text(claimant) == token else None

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call with `seen`; return whether it was so. Raises: StoreError."""
        key = _PENDING + sub_task_id

        def extended(is_repeated: bool) -> bool:
            with self._redis.pipeline() as pipeline:
                pipeline.watch(key)
                value = pipeline.get(key)
                entry = None if value is None else CorrelationEntry.from_json(_text(value))
                if entry is None or entry.extensions != seen:
                    # Nobody but the call's parent extends it, so the first try was done and its reply was lost.
                    return is_repeated and entry is not None and entry.extensions == seen + 1
                pipeline.multi()
                pipeline.set(key, replace(entry, extensions=seen + 1).as_json())
                try:
                    pipeline.execute()
                except self._changed_meanwhile:
                    # Claimed or extended between our look and our write.
                    return False
                return True

        return self._retry_once(extended)

    def pending(self) -> tuple[str, ...]:
        """Return the names of the calls that are not claimed, in order."""
        return tuple(sorted(_text(key).removeprefix(_PENDING) for key in self._redis.scan_iter(f"{_PENDING}*")))

    def close(self) -> None:
        """Close the connections to the server."""
        self._redis.close()

    def _retry_once(self, command: Callable[[bool], _Reply]) -> _Reply:
        """Return the result of command(False), or of command(True) as a second try. Raises: StoreError."""
        try:
            return command(False)
        except self._errors:
            # A connection that broke, or a server that has just been restarted.
            try:
                return command(True)
            except self._errors as error:
                raise StoreError(f"the Redis server of pending calls failed ({type(error).__name__})") from error


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
