"""Made-up answers for a collection that the simulated vector store does not have, such as one that users have filled.

Such a collection has `SIZE` points with the ids 1 to `SIZE`. A search answers with as many as it asks for, with the
payload and the vectors that it asks for. Writes are acknowledged and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from qdrant_client import models

from docmind_lab.services.dialects.vectors import DEFAULT_SIZE
from docmind_lab.services.endpoint_shape import share_of

SIZE: Final = 100
"""How many points such a collection has."""

_BEST_SCORE = 0.9
_DECAY = 0.97
ACKNOWLEDGED: Final[Mapping[str, Any]] = {"operation_id": 0, "status": "completed"}
"""The answer to a write."""


class MadeUpPoints:
    """The points of collections that are not there."""

    def info(self, name: str) -> Any:
        """Return what is said of such a collection: one unnamed vector, of the size of OpenAI's smaller embeddings."""
        return {
            "status": "green",
            "optimizer_status": "ok",
            "points_count": SIZE,
            "indexed_vectors_count": SIZE,
            "segments_count": 1,
            "config": {
                "params": {"vectors": {"size": DEFAULT_SIZE, "distance": "Cosine"}},
                "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
            },
            "payload_schema": {},
        }

    def upsert(self, name: str, body: Any) -> Any:
        """Acknowledge the write, which changes nothing."""
        return ACKNOWLEDGED

    delete = upsert

    def retrieve(self, name: str, body: models.PointRequest) -> Any:
        """Return the points of the ids that are asked for."""
        return [_record(name, each, body.with_payload, body.with_vector) for each in body.ids]

    def count(self, name: str, body: models.CountRequest) -> Any:
        """Return how many points there are."""
        return {"count": SIZE}

    def scroll(self, name: str, body: models.ScrollRequest) -> Any:
        """Return a page of the points in the order of their ids, and the id at which the next one begins."""
        first = body.offset if isinstance(body.offset, int) and body.offset > 0 else 1
        after = min(first + (body.limit or 10), SIZE + 1)
        points = [_record(name, number, body.with_payload, body.with_vector) for number in range(first, after)]
        return {"points": points, "next_page_offset": after if after <= SIZE else None}

    def query(self, name: str, body: models.QueryRequest) -> Any:
        """Return the points that a query finds, best first; other queries find others."""
        first = int(share_of(name, body.query) * SIZE)
        places = range(body.offset or 0, min((body.offset or 0) + (body.limit or 10), SIZE))
        # Above whatever threshold is asked for, since nothing found would be another path of the graph.
        least = min(max(body.score_threshold or 0.0, 0.0), 1.0)
        points = []
        for place in places:
            point = _record(name, (first + place) % SIZE + 1, body.with_payload, body.with_vector, body)
            points.append({**point, "version": 0, "score": least + (1 - least) * _BEST_SCORE * _DECAY**place})
        return {"points": points}


def _record(name: str, number: Any, with_payload: Any, with_vector: Any, query: Any = None) -> dict[str, Any]:
    """Return a point. with_payload, with_vector: as Qdrant takes them. query: says how long a vector is."""
    record: dict[str, Any] = {"id": number, "payload": _selected(_payload(name, number), with_payload)}
    if with_vector:
        record["vector"] = _vectors(name, number, with_vector, query)
    return record


def _payload(name: str, number: Any) -> dict[str, Any]:
    """Return a payload with the keys under which LangChain, LlamaIndex and others look for a text."""
    text, title = f"Made-up text {number} of the collection {name}.", f"{name} {number}"
    source = f"{name}/{number}"
    names = dict.fromkeys(("page_content", "text", "content", "document"), text)
    return {**names, "title": title, "source": source, "metadata": {"title": title, "source": source}}


def _selected(payload: dict[str, Any], selector: Any) -> dict[str, Any] | None:
    if selector is None or selector is True:
        return payload
    if selector is False:
        return None
    excluded = getattr(selector, "exclude", None)
    if excluded is not None:
        return {key: value for key, value in payload.items() if key not in excluded}
    included: Sequence[str] = selector if isinstance(selector, list) else selector.include
    keys = [key.partition(".")[0] for key in included]
    # A key that these payloads lack is one that the users' have.
    return {key: payload.get(key, payload["text"]) for key in keys}


def _vectors(name: str, number: Any, selector: Any, query: Any) -> Any:
    """Return a vector, or those that have names; as long as that of the query, if it is a vector."""
    search = getattr(query, "query", None)
    nearest = getattr(search, "nearest", search)
    size = len(nearest) if isinstance(nearest, list) and nearest else DEFAULT_SIZE
    using = getattr(query, "using", None)
    names = selector if isinstance(selector, list) else [using] if using else []
    vectors = {each: [share_of(name, number, each, place) for place in range(size)] for each in names or [""]}
    return vectors if names else vectors[""]
