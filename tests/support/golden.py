"""Texts that a person has read, kept in one file for each test module: a heading for each case, and under it the text.

# Writes the files anew; read every sentence of them afterwards.
RENEW_GOLDEN=1 python -m pytest tests/test_summary.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def assert_golden(file: Path, texts: Mapping[str, str]) -> None:
    """Each text is the one in the file under its name, and the file has no other."""
    assert_file(file, "".join(f"=== {name}\n\n{text.rstrip()}\n\n" for name, text in texts.items()))


def assert_file(file: Path, whole: str) -> None:
    """The text is that of the file."""
    if os.environ.get("RENEW_GOLDEN"):
        file.write_text(whole, encoding="utf-8")
    assert whole == file.read_text(encoding="utf-8")
