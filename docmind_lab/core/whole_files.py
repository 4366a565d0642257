"""Writes files that are there whole or not at all.

    written_whole(folder / "manifest.json", as_json(manifest))
    written_whole(folder / "runs.parquet", functools.partial(frame.to_parquet, index=False))

Who is killed while writing leaves what was there before, and at most a temporary file beside it.
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
"""Writes a file of that name."""


def written_whole(path: Path, write: Write) -> Path:
    """Write a file by a temporary name beside it and a rename: it is there whole or not at all."""
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


def written_or_refused(path: Path, write: Write) -> Path:
    """Write a file that a user named, and its folder if need be.

    Raises: ConfigurationError naming the file when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return written_whole(path, write)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from error


def as_text(text: str) -> Write:
    """Returns a writer of this text, for `written_whole`."""
    return lambda path: Path(path).write_text(text, encoding="utf-8")


def as_bytes(content: bytes) -> Write:
    """Returns a writer of these bytes, for `written_whole`."""
    return lambda path: Path(path).write_bytes(content)


def as_json(content: Any) -> Write:
    """What writes this as JSON for people too: indented, names in order. Raises: TypeError for what JSON has not."""
    return as_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
