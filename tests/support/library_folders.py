"""Helpers for the library's tests: folders of documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files by their relative paths."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
