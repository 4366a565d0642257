"""Tables in SQLite, in memory or in a file, that any thread may use."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from typing import Final

IN_MEMORY: Final = ":memory:"


class SqliteTables:
    """One connection and a lock for it: statements are short, and a connection is not made for several threads.

    It is closed by `close`, or when it is garbage, which it is not while an abandoned writer uses it.

    Args:
        path: The file; `IN_MEMORY` for none.
        schema: Statements that make the tables unless they exist.
        timeout_s: How long another process's lock on the file is waited for, in seconds.

    Raises:
        sqlite3.Error: The file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], schema: str, *, timeout_s: float = 5.0) -> None:
        self._connection = sqlite3.connect(path, timeout=timeout_s, check_same_thread=False, isolation_level=None)
        self._closing = weakref.finalize(self, self._connection.close)
        self._lock = threading.Lock()
        self._connection.executescript(schema)

    def close(self) -> None:
        """Close the connection; tables in memory are then gone."""
        with self._lock:
            self._closing()
