"""Search strategies: the requests that each makes, and the documents that come back.

    search(client, index, "hybrid", "what a hard timeout leaves")
    await search_async(client, index, "graph", "what a hard timeout leaves")

hybrid         words by BM25 and neighbours by LSA, fused by reciprocal rank in Qdrant. One request.
hierarchical   hybrid finds passages; then what stands around the best of them is fetched. Two requests.
graph          hybrid finds passages; then the topics that theirs refer to are searched. Two requests.

They are those of DocMind's router (ADR-011).

A strategy is a generator that yields requests and is sent their points; the sync and the async door only pass them
on, so both find the same. Each request ends as the client's own limits say, and a deadline in force around a search
holds all of its requests together. A timeout surfaces here as the client raises it; what the server does with an
abandoned request is the server's choice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from qdrant_client import AsyncQdrantClient, QdrantClient, models

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.systems.base.results import RetrievedDocument, clean_metadata
from docmind_lab.systems.docmind.retrieval.index import CORPUS_FIELD, SearchIndex

# A cosine of 32-bit floats carries seven digits, and its last ones depend on where arrays happen to lie in memory: two
# equal searches could order two passages differently.
_SCORE_DIGITS = 4

Points = Sequence[models.ScoredPoint | models.Record]

LIMIT = 5
"""Documents returned by default: what a small model reads at once."""

_CANDIDATES = 20
"""Ranks that each half of a hybrid search hands to the fusion, at least; deeper ranks barely move an RRF score."""

_NEIGHBOURS = 2
"""Passages fetched around a good one: usually the one before and the one after, which is what a cut took off."""

# The larger part of the answer stays what the words of the query found; one step along a reference is worth half.
_REFERRED_SHARE = 0.4
_REFERRED_WEIGHT = 0.5


@dataclass(frozen=True)
class Request:
    """One request of a strategy: a method of the Qdrant client, and its arguments."""

    method: Literal["query_points", "scroll"]
    arguments: Mapping[str, Any]


Requests = Generator[Request, Points, tuple[RetrievedDocument, ...]]


STRATEGIES = ("hybrid", "hierarchical", "graph")
"""Names of the strategies."""


def build_query(index: SearchIndex, strategy: str, query: str, limit: int = LIMIT) -> dict[str, Any]:
    """Return keyword arguments for `query_points`: the only request of a strategy, or the first of two.

    Empty when the query has no word to search for. A query whose words are all unknown to the dense encoder is fused
    from its sparse half alone.

    Raises: ConfigurationError: the strategy is unknown, or the limit is below 1.
    """
    if strategy not in STRATEGIES:
        raise ConfigurationError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    if limit < 1:
        raise ConfigurationError(f"limit must be 1 or more, not {limit}")
    words, meaning = index.sparse.encode_query(query), index.dense.encode(query)
    halves: list[tuple[str, Any]] = [(index.sparse.name, words)] if words.indices else []
    halves += [(index.dense.name, meaning)] if any(meaning) else []
    if not halves:
        return {}
    candidates = max(_CANDIDATES, 2 * limit)
    return {
        "collection_name": index.collection,
        "limit": limit,
        "with_payload": True,
        "prefetch": [models.Prefetch(limit=candidates, using=name, query=vector) for name, vector in halves],
        "query": models.FusionQuery(fusion=models.Fusion.RRF),
    }


def strategy_in_effect(index: SearchIndex, strategy: str) -> str:
    """Return the strategy that is really used: "hybrid" for "graph" over a corpus without references."""
    return "hybrid" if strategy == "graph" and not index.references else strategy


def _single(index: SearchIndex, arguments: dict[str, Any], limit: int) -> Requests:
    return read_documents((yield Request("query_points", arguments)))


def _hierarchical(index: SearchIndex, arguments: dict[str, Any], limit: int) -> Requests:
    """Find the best passages, each followed by its neighbours: in its section, or on its page if that is short.

    A neighbour has the score of the passage that it stands around, which `context_of` in its metadata names.
    """
    points = {str((point.payload or {}).get("chunk_id")): point for point in (yield Request("query_points", arguments))}
    documents = read_documents(list(points.values()))
    if not documents:
        return ()
    around = {document.id: _window(points[document.id], document.topic) for document in documents}
    neighbours = yield Request(
        "scroll",
        {
            "collection_name": index.collection,
            "scroll_filter": models.Filter(should=list(around.values())),
            "limit": 2 * _NEIGHBOURS * len(around),
            "with_payload": True,
        },
    )
    by_id: dict[str, RetrievedDocument] = {}
    for document in documents:
        if document.id not in by_id and len(by_id) < limit:
            by_id[document.id] = document
            for neighbour in _nearest(points[document.id], neighbours, document):
                by_id.setdefault(neighbour.id, neighbour)
    return sort_best_first(list(by_id.values())[:limit])


def _window(point: models.ScoredPoint | models.Record, topic: str) -> models.Filter:
    # A point's id is its place in the corpus: what stands around it has the ids around it.
    place = int(point.id)
    places = [other for other in range(max(0, place - _NEIGHBOURS), place + _NEIGHBOURS + 1) if other != place]
    on_page = models.FieldCondition(key="topic", match=models.MatchValue(value=topic))
    return models.Filter(must=[on_page, models.HasIdCondition(has_id=list(places))])


def _nearest(
    point: models.ScoredPoint | models.Record, candidates: Points, document: RetrievedDocument
) -> list[RetrievedDocument]:
    """Return at most `_NEIGHBOURS` candidates on the document's page: those in its section first, then by distance."""
    place, section = int(point.id), document.metadata.get("section")
    on_page = [it for it in candidates if (it.payload or {}).get("topic") == document.topic]
    near = [it for it in on_page if 0 < abs(int(it.id) - place) <= _NEIGHBOURS]
    near.sort(key=lambda it: ((it.payload or {}).get("section") != section, abs(int(it.id) - place), int(it.id)))
    read = read_documents(near[:_NEIGHBOURS], lambda _: document.score)
    return [replace(one, metadata={**one.metadata, "context_of": document.id}) for one in read]


def _graph(index: SearchIndex, arguments: dict[str, Any], limit: int) -> Requests:
    """Find the best passages and, for the last places, the best ones of the topics that they refer to.

    At most two places in five go to referred topics, none where nothing is referred to; their scores are halved.
    `referred_by` in their metadata names the topics that refer to theirs.
    """
    documents = read_documents((yield Request("query_points", arguments)))
    referring: dict[str, list[str]] = {}
    for topic in dict.fromkeys(document.topic for document in documents):
        for target in index.references.get(topic, ()):
            referring.setdefault(target, []).append(topic)
    targets = [target for target in referring if target not in {document.topic for document in documents}]
    places = int(limit * _REFERRED_SHARE)
    if not targets or not places:
        return documents
    among = models.Filter(must=[models.FieldCondition(key="topic", match=models.MatchAny(any=targets))])
    # The filter goes on both halves: outside of them it would come after the fusion, when all ranks are taken.
    halves = [half.model_copy(update={"filter": among}) for half in arguments["prefetch"]]
    neighbours = read_documents(
        (yield Request("query_points", {**arguments, "prefetch": halves, "limit": places})),
        lambda point: point.score * _REFERRED_WEIGHT,
    )
    referred = [replace(one, metadata={**one.metadata, "referred_by": referring[one.topic]}) for one in neighbours]
    return sort_best_first([*documents[: limit - len(referred)], *referred])


_REQUESTS: Mapping[str, Callable[[SearchIndex, dict[str, Any], int], Requests]] = {
    "hierarchical": _hierarchical,
    "graph": _graph,
}


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


def search(
    client: QdrantClient, index: SearchIndex, strategy: str, query: str, *, limit: int = LIMIT
) -> tuple[RetrievedDocument, ...]:
    """Return the best documents, best first, ties by id; a query without a word finds none and sends nothing.

    Raises: ServiceError: the points found are not chunks. Raises also what `build_query` and the client raise.
    """
    return finish(_search_steps(client, index, strategy, query, limit))


async def search_async(
    client: AsyncQdrantClient, index: SearchIndex, strategy: str, query: str, *, limit: int = LIMIT
) -> tuple[RetrievedDocument, ...]:
    """`search`, as a coroutine for the async client."""
    return await afinish(_search_steps(client, index, strategy, query, limit))


def _search_steps(
    client: QdrantClient | AsyncQdrantClient, index: SearchIndex, strategy: str, query: str, limit: int
) -> Steps[tuple[RetrievedDocument, ...]]:
    arguments = build_query(index, strategy, query, limit)
    if not arguments:
        return ()
    requests = _REQUESTS.get(strategy_in_effect(index, strategy), _single)(index, arguments, limit)
    request = next(requests)
    while True:
        call = functools.partial(getattr(client, request.method), **request.arguments)
        response = yield Operation(call, call)
        try:
            # A scroll gives its points and where to go on; a query an object that has them.
            request = requests.send(response[0] if isinstance(response, tuple) else response.points)
        except StopIteration as end:
            documents: tuple[RetrievedDocument, ...] = end.value
            return documents
