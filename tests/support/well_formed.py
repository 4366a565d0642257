"""HTML whose elements are all closed, in their order, and that has no script."""

from __future__ import annotations

from html.parser import HTMLParser


class _WellFormed(HTMLParser):
    void = frozenset({"br", "hr", "img", "input", "col", "meta", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_well_formed(html: str) -> None:
    """Every element that is opened is closed, in order, and none is a script."""
    page = _WellFormed()
    page.feed(html)
    page.close()
    assert page.open == []
