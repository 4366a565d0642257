"""How a document is named: its path in the folder, made fit for a citation, and where its links lead."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Container, Iterable
from urllib.parse import unquote, urlsplit

from docmind_lab.docmind.documents.readers import SUFFIXES, clean_text

# What a citation such as [guide/setup.md#3] cannot hold, or what would make the name look like a path of the machine
# and be dropped from a result's metadata (see retrieval.strategies.clean_metadata).
_UNCITABLE = re.compile(r"[\s\[\],;#%:~\\\x00-\x1f\x7f-\x9f\udc80-\udcff]|[^\w.](?=/)")


def topic_of(path: str) -> str:
    """The topic of a file: its path relative to the folder, with forward slashes.

    Spaces, brackets and other characters that a citation cannot hold are percent-encoded, so that two files never
    share a topic: "my notes/a.md" is "my%20notes/a.md".
    """
    return _UNCITABLE.sub(lambda match: _quoted(match[0]), path.replace(os.sep, "/"))


def _quoted(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def linked_topics(path: str, links: Iterable[str]) -> tuple[str, ...]:
    """Topics that a file's links may mean, in order, each once, without itself; whether they exist is not asked.

    Only relative addresses count. One that leaves the folder leads nowhere.
    """
    found: dict[str, None] = {}
    for link in links:
        try:
            address = urlsplit(clean_text(link).strip())
        except ValueError:  # an address that is none, such as http://[
            continue
        if address.scheme or address.netloc or not address.path or address.path.startswith("/"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address.path)))
        if not target.startswith("../") and target not in ("..", ".", path):
            found[topic_of(target)] = None
    return tuple(found)


def resolved(target: str, known: Container[str]) -> str | None:
    """The known topic that a link means: itself, or with a suffix, as wikis write links; None for no document."""
    return next((topic for topic in (target, *(target + suffix for suffix in SUFFIXES)) if topic in known), None)
