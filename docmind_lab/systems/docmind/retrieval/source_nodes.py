"""Documents from the sources of a router engine.

A router's answer has LlamaIndex's shape: `answer.source_nodes` holds nodes with a score around nodes with an id, a text
and metadata; plain objects with the same attributes serve as well. Any other shape is an error that names what is
wrong, never a document.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.core.errors import ServiceError
from docmind_lab.systems.base.results import RetrievedDocument, clean_metadata, is_clean

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
    node_id = next((value for name in _ID_NAMES if isinstance(value := getattr(node, name, None), str | int)), None)
    if node_id is None or not str(node_id).strip() or isinstance(node_id, bool):
        raise ServiceError(f"the router's source {place} has no id")
    name = str(node_id)
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
