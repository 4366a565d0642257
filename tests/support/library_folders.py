"""Helpers for the library's tests: folders of documents that were not changed just now, and what an index holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Long before any test: a file that changed in the last two seconds is opened again by design.
A_WHILE_AGO_S = 1_600_000_000


def write(folder: Path, files: Mapping[str, str | bytes], *, at_s: float = A_WHILE_AGO_S) -> None:
    """Write files by their relative paths, with a date."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        changed_at_ns = path.stat().st_ctime_ns if path.exists() else None
        # A file system's clock may tick as seldom as a hundred times a second, and tests are faster than that.
        while not path.exists() or path.stat().st_ctime_ns == changed_at_ns:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
            os.utime(path, (at_s, at_s))


def contents(index: Path) -> dict[str, bytes]:
    """Every file of an index folder with its bytes."""
    return {path.relative_to(index).as_posix(): path.read_bytes() for path in index.rglob("*") if path.is_file()}
