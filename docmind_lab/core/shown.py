"""How objects show themselves in a notebook."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any, ClassVar, cast


class ShownAsCode:
    """Shows an object in a notebook as its `repr`, which says in one line what it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


class ShownAsCall(ShownAsCode):
    """Shows a dataclass as the call that makes it, which can be pasted. noun: what is called."""

    __slots__ = ()
    noun: ClassVar[str] = ""

    def __repr__(self) -> str:
        positional, named = [], []
        for field in dataclasses.fields(cast(Any, self)):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING and not field.kw_only:
                positional.append(repr(value))
            elif value is not field.default and value != field.default:
                named.append(f"{field.name}={value!r}")
        return f"{self.noun}({', '.join([*positional, *named])})"
