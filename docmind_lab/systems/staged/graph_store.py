"""A graph in SQLite: entities, observations, relations, evidence, and records of chunks that failed.

    store = GraphStore()                                         # in memory; a path for a file
    store.add_entity("Oslo", "city", Written("agent", "notes", "3"))
    # {"status": "ok", "kind": "entity", "id": "entity:oslo", "names": ["Oslo"], "created": True}

Every write has an origin, and writing the same thing again changes nothing and says so (`created`). A name is the same
name whatever its case and spaces. What a write returns is an object with "status"; only "ok" confirms it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal, get_args

from docmind_lab.core.errors import ConfigurationError

Origin = Literal["agent", "suggested", "generated", "forced"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
UNTYPED = "Unknown"
TABLES = ("entities", "observations", "relations", "evidence", "evidence_links", "dead_letters")

_ORIGIN = f"origin TEXT NOT NULL CHECK (origin IN {ORIGINS})"
_WHENCE = f"{_ORIGIN}, source TEXT NOT NULL, chunk TEXT NOT NULL"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS entities (key TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, {_WHENCE});
CREATE TABLE IF NOT EXISTS observations (
    entity TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, {_WHENCE}, PRIMARY KEY (entity, key));
CREATE TABLE IF NOT EXISTS relations (
    subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL, {_WHENCE},
    PRIMARY KEY (subject, predicate, object));
CREATE TABLE IF NOT EXISTS evidence (key TEXT PRIMARY KEY, name TEXT NOT NULL, {_WHENCE});
CREATE TABLE IF NOT EXISTS evidence_links (
    evidence TEXT NOT NULL, name TEXT NOT NULL, {_ORIGIN}, PRIMARY KEY (evidence, name));
CREATE TABLE IF NOT EXISTS dead_letters (source TEXT NOT NULL, chunk TEXT NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (source, chunk));
"""


@dataclass(frozen=True)
class Written:
    """The origin of a write. origin: the rung that made it. source, chunk: the document, and its part."""

    origin: Origin
    source: str
    chunk: str

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise ConfigurationError(f"origin must be one of {', '.join(ORIGINS)}, not {self.origin!r}")


def key_of(name: str) -> str:
    """Return the name with case and spaces normalised; names with the same key are the same name."""
    return " ".join(name.split()).casefold()


def is_confirmed(result: object) -> bool:
    """Return whether a result confirms a write: an object with status "ok", an id and no error; no text does."""
    return (
        isinstance(result, Mapping)
        and result.get("status") == "ok"
        and bool(result.get("id"))
        and not result.get("error")
        and not result.get("error_type")
    )


class GraphStore:
    """A graph in SQLite, in memory unless a file is named. Any thread may use it; each write is one transaction.

    It is closed by `close`, or when it is garbage, which it is not while an abandoned writer uses it.
    Raises: sqlite3.Error where the file cannot be written, at the making or at a write.
    """

    def __init__(self, path: str | os.PathLike[str] = ":memory:") -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._closing = weakref.finalize(self, self._connection.close)
        self._lock = threading.Lock()
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the connection; a graph in memory is then gone."""
        with self._lock:
            self._closing()

    def add_entity(self, name: str, kind: str, written: Written) -> dict[str, Any]:
        """Write an entity; an existing one without a type gets the type."""
        with self._lock:
            created = self._put("entities", (key_of(name), name, kind or UNTYPED, *astuple(written)))
            if not created and kind and kind != UNTYPED:
                typed = "UPDATE entities SET type = ? WHERE key = ? AND type = ?"
                self._connection.execute(typed, (kind, key_of(name), UNTYPED))
        return _ok("entity", key_of(name), [name], created)

    def add_observation(self, entity: str, text: str, written: Written) -> dict[str, Any]:
        """Write an observation, and its entity, untyped, if it does not exist."""
        with self._lock, self._connection:
            self._connection.execute("BEGIN")
            self._put("entities", (key_of(entity), entity, UNTYPED, *astuple(written)))
            created = self._put("observations", (key_of(entity), key_of(text), text, *astuple(written)))
        return _ok("observation", f"{key_of(entity)}|{key_of(text)}", [entity], created)

    def set_type(self, name: str, kind: str, written: Written) -> dict[str, Any]:
        """Change the type of an entity; an error if it does not exist."""
        with self._lock:
            changed = self._connection.execute("UPDATE entities SET type = ? WHERE key = ?", (kind, key_of(name)))
        if not changed.rowcount:
            return _error("unknown_entity")
        return _ok("type", f"{key_of(name)}|{key_of(kind)}", [name], created=False)

    def relate(self, subject: str, predicate: str, target: str, written: Written) -> dict[str, Any]:
        """Write a relation; an error if one of its ends does not exist, or both are the same."""
        ends = (key_of(subject), key_of(target))
        with self._lock:
            if ends[0] == ends[1]:
                return _error("same_ends")
            known = "SELECT COUNT(*) FROM entities WHERE key IN (?, ?)"
            if self._connection.execute(known, ends).fetchone()[0] < 2:
                return _error("unknown_endpoint")
            created = self._put("relations", (ends[0], key_of(predicate), ends[1], *astuple(written)))
        return _ok("relation", f"{ends[0]}|{key_of(predicate)}|{ends[1]}", [subject, target], created)

    def add_evidence(self, name: str, written: Written) -> dict[str, Any]:
        """Write a node of evidence."""
        with self._lock:
            created = self._put("evidence", (key_of(name), name, *astuple(written)))
        return _ok("evidence", key_of(name), [name], created)

    def link_evidence(self, evidence: str, name: str, written: Written) -> dict[str, Any]:
        """Link a node of evidence to a name; an error for a link to itself."""
        if key_of(evidence) == key_of(name):
            return _error("same_ends")
        with self._lock:
            created = self._put("evidence_links", (key_of(evidence), key_of(name), written.origin))
        return _ok("evidence_link", f"{key_of(evidence)}|{key_of(name)}", [name], created)

    def add_dead_letter(self, source: str, chunk: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a record of a failed chunk; it replaces an earlier one of the same chunk."""
        statement = "INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?)"
        with self._lock:
            self._connection.execute(statement, (source, chunk, json.dumps(record, sort_keys=True)))
        return _ok("dead_letter", f"{source}|{chunk}", [], created=True)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of one of `TABLES`, by their keys. Raises: ConfigurationError for another table."""
        if table not in TABLES:
            raise ConfigurationError(f"table must be one of {', '.join(TABLES)}, not {table!r}")
        with self._lock:
            cursor = self._connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def count(self) -> int:
        """Count all rows except dead letters."""
        return sum(len(self.rows(table)) for table in TABLES if table != "dead_letters")

    def _put(self, table: str, values: tuple[str, ...]) -> bool:
        """Insert a row unless it exists, and return whether it is new."""
        places = ", ".join("?" * len(values))
        statement = f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING"
        return self._connection.execute(statement, values).rowcount > 0


def _ok(kind: str, key: str, names: list[str], created: bool) -> dict[str, Any]:
    return {"status": "ok", "kind": kind, "id": f"{kind}:{key}", "names": names, "created": created}


def _error(error_type: str) -> dict[str, Any]:
    return {"status": "error", "error_type": error_type}
