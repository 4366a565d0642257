"""Documents that a search returns, made from points of Qdrant or from the sources of a router engine.

Their metadata have no paths and no blobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.network.recorder import note_event

# A slash, drive letter or share that starts a word and is followed by a name. "and/or", "f(a, /)", "a / b", "./here"
# and the slashes of a web address do not match.
_ABSOLUTE_PATH = re.compile(
    r"""  (?<![\w/.)\]]) ~?/ [\w.~]         # /srv/x, ~/x
        | (?<!\w) ~\w* [\\/]               # ~name/x
        | (?<!\w) [A-Za-z]: [\\/] (?!/)    # C:\x, C:/x
        | \\\\ \w                          # \\host\share
        | \b file:                         # file:///srv/x
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Base64 or hex in a string, or a string that is not text.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{256,}|^data:[\w.+-]+/|[\x00-\x08\x0e-\x1f]", re.IGNORECASE)


@dataclass(frozen=True)
class RetrievedDocument:
    """One passage that a search found.

    id: the chunk's, as citations name it. content: its text. metadata: JSON values only, see `clean_metadata`.
    score: an RRF sum, to four digits; comparable within one result only.
    """

    id: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    score: float = 0.0

    @property
    def topic(self) -> str:
        """Topic of the page that the passage is from; empty if its metadata has none."""
        return str(self.metadata.get("topic", ""))

    def to_payload(self) -> dict[str, Any]:
        """Return the document as JSON: id, content, metadata, score."""
        return {"id": self.id, "content": self.content, "metadata": dict(self.metadata), "score": self.score}


def clean_metadata(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the metadata that may be passed on: JSON values without absolute paths and binary blobs, at any depth.

    Dropped: bytes; strings that hold an absolute path (POSIX, Windows, share, home or file: address), base64 or
    control characters; NaN and infinities; everything that JSON does not know; and keys that are not clean strings.
    """
    return {
        key: _clean(value)
        for key, value in metadata.items()
        if isinstance(key, str) and is_clean(key) and is_clean(value)
    }


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return clean_metadata(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value if is_clean(item)]
    return value


def is_clean(value: Any) -> bool:
    """Return whether a value may be passed on; the content of a list or mapping is not checked."""
    if isinstance(value, str):
        return not (_ABSOLUTE_PATH.search(value) or _BLOB.search(value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | Mapping | list | tuple)


def record_retrieved(
    role: str, ids: Iterable[str], topics: Iterable[str], strategy: str, *, router_used: bool = False
) -> None:
    """Record what a search found, if the run is recorded. topics: of the documents, in any order."""
    note_event("retrieved", role, ids=list(ids), topics=sorted(set(topics)), strategy=strategy, router_used=router_used)
