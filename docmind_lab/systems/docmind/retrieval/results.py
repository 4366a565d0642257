"""Documents that a search returns, made from points of Qdrant or from the sources of a router engine.

Their metadata have no paths and no blobs. A router's answer has LlamaIndex's shape: `answer.source_nodes` holds nodes
with a score around nodes with an id, a text and metadata; plain objects with the same attributes serve as well. Any
other shape is an error that names what is wrong, never a document.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qdrant_client import models

from docmind_lab.core.errors import ServiceError
from docmind_lab.network.recorder import note_event
from docmind_lab.systems.docmind.retrieval.index import CORPUS_FIELD

# A cosine of 32-bit floats carries seven digits, and its last ones depend on where arrays happen to lie in memory: two
# equal searches could order two passages differently.
_SCORE_DIGITS = 4

Points = Sequence[models.ScoredPoint | models.Record]

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


def sort_best_first(documents: Iterable[RetrievedDocument]) -> tuple[RetrievedDocument, ...]:
    """Sort the documents by falling score, ties by id."""
    return tuple(sorted(documents, key=lambda document: (-document.score, document.id)))


def read_documents(
    points: Points, score_of: Callable[[Any], float] = lambda point: point.score
) -> tuple[RetrievedDocument, ...]:
    """Convert a response's points to documents, best first, ties by id. Raises ServiceError for points without text.

    score_of: what a point scores; points of a scroll have no score of their own.
    """
    documents = []
    for point in points:
        payload = dict(point.payload or {})
        try:
            name, text = payload.pop("chunk_id"), payload.pop("text")
        except KeyError as missing:
            raise ServiceError(
                f"point {point.id} has no {missing} in its payload: the collection was not built by docmind_lab"
            ) from missing
        payload.pop(CORPUS_FIELD, None)
        score = round(float(score_of(point)), _SCORE_DIGITS)
        documents.append(RetrievedDocument(str(name), str(text), clean_metadata(payload), score))
    return sort_best_first(documents)


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


_CITABLE = re.compile(r"[^\s\[\]]{1,200}")
# What LlamaIndex answers when it found nothing.
_EMPTY_ANSWERS = frozenset({"", "None", "Empty Response"})


def read_source_nodes(answer: Any, limit: int) -> tuple[RetrievedDocument, ...]:
    """Convert a router's answer to documents, best first, at most `limit`; none for an empty answer.

    Documents of equal score keep the order in which the router has them; of two with one id the better stays.
    Raises: ServiceError for an unusable answer: nodes of another type, or without an id or a text, a
    score that is no number, an answer in words without a source.
    """
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise ServiceError("the router's query() gave an awaitable: an async method is to be called aquery()")
    nodes = getattr(answer, "source_nodes", None)
    if not isinstance(nodes, Sequence) or isinstance(nodes, str | bytes):
        raise ServiceError(f"the router's answer has no list of source_nodes, but {type(nodes).__name__}")
    if not nodes and str(getattr(answer, "response", "") or "").strip() not in _EMPTY_ANSWERS:
        raise ServiceError("the router answered in words and named no source")
    ranked = sorted((_document(node, place) for place, node in enumerate(nodes)), key=lambda one: -one.score)
    best: dict[str, RetrievedDocument] = {}
    for document in ranked:
        best.setdefault(document.id, document)
    return tuple(best.values())[:limit]


def _document(item: Any, place: int) -> RetrievedDocument:
    node = getattr(item, "node", item)
    text = _text(node)
    if text is None or not text.strip():
        raise ServiceError(f"the router's source {place} has no text")
    metadata = getattr(node, "metadata", None) or {}
    if not isinstance(metadata, Mapping):
        raise ServiceError(f"the router's source {place} has metadata that is no mapping")
    return RetrievedDocument(_id(node, place), text, clean_metadata(metadata), _score(item, place))


def _text(node: Any) -> str | None:
    get_content = getattr(node, "get_content", None)
    candidates = (get_content() if callable(get_content) else None, *(getattr(node, n, None) for n in _TEXT_NAMES))
    return next((candidate for candidate in candidates if isinstance(candidate, str)), None)


_TEXT_NAMES = ("text", "content")
_ID_NAMES = ("node_id", "id_", "id")


def _id(node: Any, place: int) -> str:
    found = next((value for name in _ID_NAMES if isinstance(value := getattr(node, name, None), str | int)), None)
    if found is None or not str(found).strip() or isinstance(found, bool):
        raise ServiceError(f"the router's source {place} has no id")
    name = str(found)
    if _CITABLE.fullmatch(name) and is_clean(name):
        return name
    # An id may be the path of a file, or have words in it: the digest can be cited and says nothing.
    return "source-" + hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()


def _score(item: Any, place: int) -> float:
    value = getattr(item, "score", None)
    if value is None:
        return 0.0
    # Numbers of other libraries, such as numpy's, have the method; text and truth values are not meant.
    if isinstance(value, bool | str) or not hasattr(value, "__float__") or not math.isfinite(float(value)):
        raise ServiceError(f"the router's source {place} has a score that is no finite number")
    return float(value)


def record_retrieved(
    role: str, ids: Iterable[str], topics: Iterable[str], strategy: str, *, router_used: bool = False
) -> None:
    """Record what a search found, if the run is recorded. topics: of the documents, in any order."""
    note_event("retrieved", role, ids=list(ids), topics=sorted(set(topics)), strategy=strategy, router_used=router_used)
