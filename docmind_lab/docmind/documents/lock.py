"""One writer at a time for an index folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.documents.store import LOCK


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock during a block. The system frees it when its holder ends, however that ends.

    The file stays, empty when nobody holds it: removing it would let two processes lock two files of one name.
    Raises: ConfigurationError naming the process that holds it; OSError when the folder cannot be written.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # Empty for the instant between taking the lock and writing the number.
            number = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            holder = f"process {number}" if number.isdecimal() else "another process"
            raise ConfigurationError(
                f"the index folder {folder} is being written by {holder}; wait until it ends, or use another --out"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
