"""Pages of docs/, for tests of what they show."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def section_of(page: str, heading: str) -> str:
    """Return the text under a heading of a page, up to the next one of its level."""
    _, found, text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading!r}"
    return text.partition("\n## ")[0]
