"""How objects show themselves in a notebook."""

from __future__ import annotations

from html import escape


class ShownAsCode:
    """Shows an object in a notebook as its `repr`, which says in one line what it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"
