"""How objects show themselves: in a terminal, and in a notebook in its colours, light or dark."""

from __future__ import annotations

import dataclasses
import re
from html import escape
from typing import Any, ClassVar, Final, cast

COLUMNS: Final = 80
"""Columns of the narrowest terminal that people use."""
LINES: Final = 25
"""Lines that an object shows at the most, as text."""
# On a page: lines of a telephone, 390 pixels wide.
PAGE_LINES: Final = 27
PAGE_COLUMNS: Final = 46

# Where an object is in memory tells nobody anything.
_ADDRESS: Final = re.compile(r"(?: object)? at 0x[0-9a-f]+(?=>)")
# Of an argument in a line of its own, which is indented and ends with a comma.
_WIDEST: Final = COLUMNS - 5

# A notebook's own colours where it names them; outside one those that the reader's system asks for. Text has the colour
# of what is around it.
_STYLE: Final = (
    "<style>.docmind-lab{--line:var(--jp-border-color2,#d0d7de);--code:var(--jp-layout-color2,#f3f4f6);"
    "color:var(--jp-content-font-color1,inherit);max-width:60em}"
    "@media(prefers-color-scheme:dark){.docmind-lab{--line:var(--jp-border-color2,#484f58);"
    "--code:var(--jp-layout-color2,#24292f)}}"
    ".docmind-lab p,.docmind-lab ul{margin:.4em 0}"
    ".docmind-lab p{white-space:pre-wrap}"
    ".docmind-lab .wide{overflow-x:auto}"
    ".docmind-lab table{border-collapse:collapse;white-space:nowrap}"
    ".docmind-lab th,.docmind-lab td{padding:.15em .6em;border-bottom:1px solid var(--line);text-align:right}"
    ".docmind-lab pre{background:var(--code);padding:.5em;overflow-x:auto}"
    ".docmind-lab summary{cursor:pointer}"
    ".docmind-lab code{white-space:pre-wrap;overflow-wrap:anywhere}</style>"
)


def framed(html: str) -> str:
    """Return HTML of an object as a notebook shows it."""
    return f'{_STYLE}<div class="docmind-lab">{html}</div>'


class ShownAsCode:
    """Shows an object in a notebook as its `repr`, which says in one line what it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return framed(f"<code>{escape(repr(self))}</code>")


class ShownAsCall(ShownAsCode):
    """Shows a dataclass as the call that makes it, whose long arguments are cut. noun: what is called."""

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
        parts = [_in_a_line(part) for part in (*positional, *named)]
        line = f"{self.noun}({', '.join(parts)})"
        if len(line) <= COLUMNS or not parts:
            return line
        return "\n".join([f"{self.noun}(", *(f"    {part}," for part in parts), ")"])


def _in_a_line(part: str) -> str:
    line = _ADDRESS.sub("", " ".join(part.split()))
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
