"""The explicit ways to search: which request a strategy makes, and what comes back as documents.

    search(client, index, "sparse", "operator precedence")               # words: BM25
    await search_async(client, index, "hybrid", "operator precedence")   # words and LSA, fused in Qdrant

A strategy is a pure function from a query to the arguments of `query_points`; the sync and the async door only
send them. Both make one request, which ends as the client's own limits say: a timeout surfaces here as the client
raises it, and what the server does with an abandoned request is the server's choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient, models

from docmind_lab.errors import ConfigurationError, ServiceError
from docmind_lab.retrieval.encoders import DenseEncoder, SparseEncoder
from docmind_lab.retrieval.index import CORPUS_FIELD, SearchIndex

LIMIT = 5
"""Documents returned by default: what a small model reads at once."""

_CANDIDATES = 20
"""Ranks that each half of a hybrid search hands to the fusion, at least; deeper ranks barely move an RRF score."""

# A slash, drive letter or share that starts a word and is followed by a name. "and/or", "f(a, /)", "a / b", "./here"
# and the slashes of a web address are none of it.
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
    score: BM25 for "sparse", an RRF sum for "hybrid"; comparable within one result only.
    """

    id: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    score: float = 0.0

    @property
    def topic(self) -> str:
        """The page it comes from; empty if its metadata names none."""
        return str(self.metadata.get("topic", ""))

    def to_payload(self) -> dict[str, Any]:
        """The document as JSON: id, content, metadata, score."""
        return {"id": self.id, "content": self.content, "metadata": dict(self.metadata), "score": self.score}


def _sparse(index: SearchIndex, query: str, limit: int) -> dict[str, Any]:
    vector = index.sparse.encode_query(query)
    return {"query": vector, "using": SparseEncoder.name} if vector.indices else {}


def _hybrid(index: SearchIndex, query: str, limit: int) -> dict[str, Any]:
    candidates = max(_CANDIDATES, 2 * limit)
    sparse, dense = index.sparse.encode_query(query), index.dense.encode(query)
    prefetch = []
    if sparse.indices:
        prefetch.append(models.Prefetch(query=sparse, using=SparseEncoder.name, limit=candidates))
    if any(dense):
        prefetch.append(models.Prefetch(query=dense, using=DenseEncoder.name, limit=candidates))
    return {"prefetch": prefetch, "query": models.FusionQuery(fusion=models.Fusion.RRF)} if prefetch else {}


_BUILDERS: Mapping[str, Callable[[SearchIndex, str, int], dict[str, Any]]] = {"sparse": _sparse, "hybrid": _hybrid}

STRATEGIES = tuple(_BUILDERS)
"""Names of the explicit strategies."""


def build_query(index: SearchIndex, strategy: str, query: str, limit: int = LIMIT) -> dict[str, Any]:
    """Keyword arguments for `query_points`; empty when the query has no word to search for.

    A hybrid query whose words are all unknown to LSA is fused from its sparse half alone.
    Raises ConfigurationError for an unknown strategy or a limit below 1.
    """
    if strategy not in _BUILDERS:
        raise ConfigurationError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    if limit < 1:
        raise ConfigurationError(f"limit must be 1 or more, not {limit}")
    arguments = _BUILDERS[strategy](index, query, limit)
    return {"collection_name": index.collection, "limit": limit, "with_payload": True, **arguments} if arguments else {}


def search(
    client: QdrantClient, index: SearchIndex, strategy: str, query: str, *, limit: int = LIMIT
) -> tuple[RetrievedDocument, ...]:
    """The best documents, best first, ties by id; none, and no request, for a query without a word.

    Raises what `build_query` and the client raise, and ServiceError for points that are not chunks.
    """
    arguments = build_query(index, strategy, query, limit)
    return read_documents(client.query_points(**arguments).points) if arguments else ()


async def search_async(
    client: AsyncQdrantClient, index: SearchIndex, strategy: str, query: str, *, limit: int = LIMIT
) -> tuple[RetrievedDocument, ...]:
    """As `search`, for the async client."""
    arguments = build_query(index, strategy, query, limit)
    return read_documents((await client.query_points(**arguments)).points) if arguments else ()


def read_documents(points: list[models.ScoredPoint]) -> tuple[RetrievedDocument, ...]:
    """Documents of a response's points, best first, ties by id. Raises ServiceError for points without text."""
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
        documents.append(RetrievedDocument(str(name), str(text), clean_metadata(payload), float(point.score)))
    return tuple(sorted(documents, key=lambda document: (-document.score, document.id)))


def clean_metadata(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The metadata that may leave: JSON values without absolute paths and without binary blobs, at any depth.

    Dropped: bytes; strings that hold an absolute path (POSIX, Windows, share, home or file: address), base64 or
    control characters; NaN and infinities; everything that JSON does not know; and keys that are not clean strings.
    """
    return {
        key: _clean(value)
        for key, value in metadata.items()
        if isinstance(key, str) and _is_clean(key) and _is_clean(value)
    }


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return clean_metadata(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value if _is_clean(item)]
    return value


def _is_clean(value: Any) -> bool:
    if isinstance(value, str):
        return not (_ABSOLUTE_PATH.search(value) or _BLOB.search(value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | Mapping | list | tuple)
