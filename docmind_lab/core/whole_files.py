"""Writes files atomically: a file is complete or is not there.

    write_whole(folder / "manifest.json", as_json(manifest))
    write_whole(folder / "runs.parquet", functools.partial(frame.to_parquet, index=False))

A process that is killed while writing leaves the earlier file, and at most a temporary file beside it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docmind_lab.core.errors import ConfigurationError

Write = Callable[[str], object]
"""A function that writes a file, given its name."""


def write_whole(path: Path, write: Write) -> Path:
    """Write a file atomically, through a temporary file beside it and a rename; return its path."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        write(temporary)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def write_or_refuse(path: Path, write: Write) -> Path:
    """Write a file that a user named, and create its folder if it is missing; return its path.

    Raises: ConfigurationError naming the file when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_whole(path, write)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def as_text(text: str) -> Write:
    """Return a function that writes this text to a file, for `write_whole`."""
    return lambda path: Path(path).write_text(text, encoding="utf-8")


def as_bytes(content: bytes) -> Write:
    """Return a function that writes these bytes to a file, for `write_whole`."""
    return lambda path: Path(path).write_bytes(content)


def as_json(content: Any) -> Write:
    """Return a function that writes this as indented JSON with sorted keys. Raises: TypeError for other types."""
    return as_text(json_text(content))


def json_text(content: Any) -> str:
    """Return this as indented JSON with sorted keys. Raises: TypeError for other types."""
    return json.dumps(content, indent=2, sort_keys=True) + "\n"
