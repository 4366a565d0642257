"""The sources of a research: collections of a vector store that differ in pages, richness, noise and pace.

    manual     whole pages, with ids; as slow as two ordinary searches
    archive    whole pages, some of the manual's among them, with web addresses only; slow
    forum      remarks of some sentences, half of them noise, with neither id nor address; quick

What a source holds is drawn from a corpus by key, so every process and Python fills it alike. Noise is made of the
corpus's own sentences, each from another page: it has the words of the subject and no subject. docmind_lab/core/data/
research_sources.json describes the three. A result of a source is an `Item`. A search is one recorded retrieval call,
limited by the deadline in the state.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient, models

from docmind_lab.core.data import data_in
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_random, keyed_uniform
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.systems.base.answer_scores import normalise, split_sentences
from docmind_lab.systems.base.bounded_calls import RETRIEVAL, bounded_search
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.encoders import SparseEncoder
from docmind_lab.systems.base.node_modes import NodeMode, in_mode
from docmind_lab.systems.base.results import clean_metadata, record_retrieved
from docmind_lab.systems.base.workloads import BATCH_SIZE

# A score carries seven digits of a 32-bit float, the last of which depend on where arrays lie in memory.
_SCORE_DIGITS = 4


@dataclass(frozen=True)
class Item:
    """One result of a source. url, id: as the source gave them, empty if it gave none. topic: for scoring only.

    filtered: whether the filter has accepted it; an item that is kept without is one that the budget ended before.
    """

    text: str
    title: str = ""
    url: str = ""
    id: str = ""
    topic: str = ""
    source: str = ""
    hypothesis: str = ""
    score: float = 0.0
    filtered: bool = True

    @property
    def key(self) -> str:
        """Its URL, else its id within the source, else a hash of its content without case and white space."""
        if self.url:
            return self.url
        if self.id:
            return f"{self.source}:{self.id}"
        return "content:" + hashlib.blake2b(normalise(self.text).encode(), digest_size=12).hexdigest()

    def as_document(self) -> dict[str, Any]:
        """Return the item as a document of a graph's state: id, content, metadata, score."""
        metadata = {
            "topic": self.topic,
            "title": self.title,
            "source": self.source,
            "hypothesis": self.hypothesis,
            "filtered": self.filtered,
        }
        return {"id": self.key, "content": self.text, "metadata": clean_metadata(metadata), "score": self.score}


def items_of(points: Iterable[Any], source: str, hypothesis: str) -> tuple[Item, ...]:
    """Convert the points of a response to items, best first, ties by key; points without text are left out."""
    items = [_item(point.payload or {}, point.score, source, hypothesis) for point in points]
    return tuple(sorted((item for item in items if item.text), key=lambda item: (-item.score, item.key)))


def _item(payload: Mapping[str, Any], score: float, source: str, hypothesis: str) -> Item:
    text, title, url, name, topic = (str(payload.get(key) or "") for key in ("text", "title", "url", "id", "topic"))
    return Item(text, title, url, name, topic, source, hypothesis, round(float(score), _SCORE_DIGITS))


def unseen(items: Iterable[Item], keys_before: Iterable[str]) -> tuple[Item, ...]:
    """Return the items whose key is not among `keys_before`, each once, in order."""
    keys = set(keys_before)
    fresh: dict[str, Item] = {}
    for item in items:
        if item.key not in keys:
            fresh.setdefault(item.key, item)
    return tuple(fresh.values())


_NOISE_SENTENCES = 3


@dataclass(frozen=True)
class SourceSpec:
    """The properties of a source: which pages it holds, how noisy and how slow it is.

    description: what the model is told of it. pages_from, pages_to: which pages it holds, as a part of [0, 1) over
    which all pages are spread by key; parts may overlap. share_of_passages: of those pages. sentences: of each passage,
    0 for all of it. noise_share: noise among everything it holds, below 1. results_per_query: at most. pace: how many
    times as long as an ordinary search one takes; only simulated vector stores obey it.
    has_id, has_url: what its results can be told by; without either, by their content.
    """

    name: str
    description: str
    pages_from: float = 0.0
    pages_to: float = 1.0
    share_of_passages: float = 1.0
    sentences: int = 0
    noise_share: float = 0.0
    results_per_query: int = 5
    pace: float = 1.0
    has_id: bool = True
    has_url: bool = True


@functools.cache
def load_sources() -> tuple[SourceSpec, ...]:
    """Return the three sources that come with the lab."""
    return tuple(SourceSpec(**entry) for entry in data_in("research_sources.json"))


@dataclass(frozen=True)
class Passage:
    """One passage of a source. topic: the page it is from, for scoring only; empty for noise."""

    title: str
    text: str
    topic: str
    id: str = ""
    url: str = ""

    @property
    def searchable(self) -> str:
        """The text that searches match."""
        return f"{self.title}\n{self.text}"


def passages_of(spec: SourceSpec, chunks: Sequence[Chunk]) -> tuple[Passage, ...]:
    """Return the passages of a corpus that the source holds. Raises: ConfigurationError if there are none."""
    own = [chunk for chunk in chunks if _holds(spec, chunk)]
    passages = [passage for chunk in own if (passage := _passage(spec, chunk)).text]
    if not passages:
        raise ConfigurationError(
            f"source {spec.name} holds nothing of this corpus: widen pages_from and pages_to, or share_of_passages"
        )
    noise = round(len(passages) * spec.noise_share / (1 - spec.noise_share))
    return (*passages, *_noise(spec, chunks, noise))


def _holds(spec: SourceSpec, chunk: Chunk) -> bool:
    # Not keyed by the source: parts that overlap have pages in common, as a manual and its archive do.
    page = keyed_uniform("research_page", chunk.topic)
    picked = keyed_uniform("research_passage", spec.name, chunk.id)
    return spec.pages_from <= page < spec.pages_to and picked < spec.share_of_passages


def _passage(spec: SourceSpec, chunk: Chunk) -> Passage:
    text = chunk.text
    if spec.sentences:
        parts = split_sentences(text)
        most = max(0, len(parts) - spec.sentences)
        start = int(keyed_uniform("research_remark", spec.name, chunk.id) * (most + 1))
        text = "\n".join(parts[start : start + spec.sentences])
    return Passage(
        title=chunk.section if spec.has_id or spec.has_url else "",
        text=text,
        topic=chunk.topic,
        id=chunk.id if spec.has_id else "",
        # A name and no address of a host: nothing is to be fetched from it.
        url=f"urn:docmind-lab:{chunk.id}" if spec.has_url else "",
    )


def _noise(spec: SourceSpec, chunks: Sequence[Chunk], count: int) -> Iterator[Passage]:
    """Yield passages made of sentences from different pages."""
    sentences: dict[str, list[str]] = {}
    for chunk in chunks:
        sentences.setdefault(chunk.topic, []).extend(split_sentences(chunk.text))
    topics = sorted(topic for topic, topic_sentences in sentences.items() if topic_sentences)
    for number in range(count):
        draw = keyed_random("research_noise", spec.name, number)
        pages = draw.sample(topics, min(_NOISE_SENTENCES, len(topics)))
        name = f"{spec.name}-{number}"
        yield Passage(
            title="",
            text="\n".join(draw.choice(sentences[page]) for page in pages),
            topic="",
            id=name if spec.has_id else "",
            url=f"urn:docmind-lab:{name}" if spec.has_url else "",
        )


@dataclass(frozen=True, eq=False)
class Source:
    """A source that can be searched. collection: its name in the vector store."""

    spec: SourceSpec
    collection: str
    encoder: SparseEncoder
    size: int

    def request(self, query: str) -> dict[str, Any] | None:
        """Return arguments for `query_points`; None for a query without a word to search for."""
        vector = self.encoder.encode_query(query)
        if not vector.indices:
            return None
        return {
            "collection_name": self.collection,
            "query": vector,
            "using": self.encoder.name,
            "limit": self.spec.results_per_query,
            "with_payload": True,
        }


def build_sources(client: QdrantClient, specs: Sequence[SourceSpec], chunks: Sequence[Chunk]) -> Mapping[str, Source]:
    """Build the sources by name and fill their new collections."""
    return {spec.name: _build(client, spec, tuple(chunks)) for spec in specs}


def _build(client: QdrantClient, spec: SourceSpec, chunks: tuple[Chunk, ...]) -> Source:
    passages, encoder, fingerprint = _encode(spec, chunks)
    # Named by what is in it: another corpus or another spec has a collection of its own.
    source = Source(spec, f"research-{spec.name}-{fingerprint}", encoder, len(passages))
    if client.collection_exists(source.collection):
        if client.count(source.collection, exact=True).count == source.size:
            return source
        client.delete_collection(source.collection)  # half filled, by a process that was ended
    client.create_collection(
        source.collection,
        vectors_config={},
        sparse_vectors_config={encoder.name: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"pace": spec.pace},
    )
    points = [
        models.PointStruct(
            id=number, vector={encoder.name: encoder.encode_document(passage.searchable)}, payload=asdict(passage)
        )
        for number, passage in enumerate(passages)
    ]
    for start in range(0, len(points), BATCH_SIZE):
        client.upsert(source.collection, points[start : start + BATCH_SIZE], wait=True)
    return source


# Drawing and fitting take a while, and a process that compares and replays builds the same sources again and again.
@functools.lru_cache(maxsize=16)
def _encode(spec: SourceSpec, chunks: tuple[Chunk, ...]) -> tuple[tuple[Passage, ...], SparseEncoder, str]:
    passages = passages_of(spec, chunks)
    digest = hashlib.blake2b(repr((spec, passages)).encode(), digest_size=6).hexdigest()
    return passages, SparseEncoder.fit([passage.searchable for passage in passages]), digest


@dataclass(frozen=True)
class SourceSearch:
    """Searches sources with a sync or an async client. mode: of the async side, see `base/node_modes.py`."""

    client: QdrantClient
    async_client: AsyncQdrantClient
    mode: NodeMode = "own"

    def search(self, source: Source, query: str, hypothesis: str, state: Mapping[str, Any]) -> Operation:
        """Return an operation that searches the source; a query without a word finds nothing and sends nothing.

        state: its deadline, and its place in the run. Waited for, it raises BudgetRefused, DeadlineExceeded, and one
        of `SEARCH_FAILURES` as the client raises it.
        """
        arguments = source.request(query)
        name = source.spec.name
        if arguments is None:
            return Operation(tuple, _nothing)

        def steps(client: Any) -> Steps[tuple[Item, ...]]:
            request = functools.partial(client.query_points, **arguments)
            with bounded_search(state):
                response = yield Operation(request, request)
            items = items_of(response.points, name, hypothesis)
            topics = [item.topic for item in items if item.topic]
            record_retrieved(RETRIEVAL, [item.key for item in items], topics, name)
            return items

        both = Operation(lambda: finish(steps(self.client)), lambda: afinish(steps(self.async_client)))
        return in_mode(self.mode, both)


async def _nothing() -> tuple[Item, ...]:
    return ()
