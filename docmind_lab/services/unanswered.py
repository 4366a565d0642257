"""Requests that no simulated service answers: in words, and as rows of a table of endpoints to fill in.

While a user's graph runs, each gets a made-up answer, an empty JSON object, so that one run comes to all of them.
"""

from __future__ import annotations

import glob
import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

PROVISIONAL: Final = "provisional"
"""The tag of a request that is to be answered with an empty JSON object."""

_HEAD: Final = """\
# Requests of your graph that no simulated service answers. Replace each {} by what the service answers, in a shape that
# your code can read, and give the file with --endpoints (endpoints=...).
"""


@dataclass(frozen=True)
class Unanswered:
    """A request that no simulated service answers. url: without credentials and query. where: such as a node."""

    method: str
    url: str
    where: str

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


def in_words(requests: Sequence[Unanswered]) -> str:
    """Return which requests nothing answers, in one line."""
    if len(requests) == 1:
        return f"{requests[0]}: no simulated service answers this ({requests[0].where})"
    each = ", ".join(f"{request} ({request.where})" for request in requests)
    return f"no simulated service answers {len(requests)} requests: {each}"


def rows_to_fill_in(requests: Iterable[Unanswered]) -> str:
    """Return a table of endpoints as TOML, with a row for each method and host; its answers are empty."""
    return "\n".join([_HEAD, *_rows(requests)])


def _rows(requests: Iterable[Unanswered]) -> Iterator[str]:
    of_host: dict[tuple[str, str], list[Unanswered]] = {}
    for request in requests:
        of_host.setdefault((request.method, urlsplit(request.url).hostname or ""), []).append(request)
    for (method, host), each in of_host.items():
        comments = dict.fromkeys(f"# {request} ({request.where})" for request in each)
        values = {"host": host, "path": _pattern([urlsplit(request.url).path or "/" for request in each])}
        # Texts of JSON are texts of TOML.
        lines = [f"{name} = {json.dumps(value)}" for name, value in {**values, "method": method}.items()]
        yield "\n".join([*comments, "[[endpoint]]", *lines, "json = {}", ""])


def _pattern(paths: Sequence[str]) -> str:
    """Return a pattern that fits some paths: the path itself, or what they begin with."""
    return glob.escape(paths[0]) if len(set(paths)) == 1 else f"{glob.escape(posixpath.commonpath(paths))}*"
