"""The strategies: the request each one makes, what comes back, and what never leaves in metadata."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from graph_fakes import CHUNKS, LIBRARY
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.base.results import clean_metadata
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.strategies import (
    STRATEGIES,
    build_query,
    read_documents,
    search,
    search_async,
    strategy_in_effect,
)


@pytest.fixture(scope="module")
def index(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, LIBRARY)


def scored(number: int, name: str, score: float, **payload: object) -> models.ScoredPoint:
    return models.ScoredPoint(id=number, version=0, score=score, payload={"chunk_id": name, "text": "t", **payload})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_passage_with_the_words_comes_first(client: QdrantClient, index: SearchIndex, strategy: str):
    first = search(client, index, strategy, "values that come lazily")[0]
    assert (first.id, first.topic, first.content) == ("yield#1", "yield", CHUNKS[2].text)
    assert first.metadata == {"topic": "yield", "section": "Generators"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_more_documents_than_the_limit(client: QdrantClient, index: SearchIndex, strategy: str):
    assert len(search(client, index, strategy, "lock context generator values", limit=2)) == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scores_fall_from_first_to_last(client: QdrantClient, index: SearchIndex, strategy: str):
    scores = [document.score for document in search(client, index, strategy, "lock context values")]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) > 2


def test_a_rare_word_weighs_more_than_a_common_one(client: QdrantClient, index: SearchIndex):
    # "lock" is in three passages, "timeout" in none, "waiting" in one: only IDF on the query tells them apart.
    assert search(client, index, "hybrid", "waiting lock")[0].id == "lock#2"


def test_hybrid_fuses_words_and_lsa_by_reciprocal_rank(index: SearchIndex):
    arguments = build_query(index, "hybrid", "lock", 3)
    assert arguments["query"].fusion == models.Fusion.RRF
    assert [half.using for half in arguments["prefetch"]] == ["bm25", "lsa"]
    assert all(half.limit >= 3 for half in arguments["prefetch"])


def test_a_query_without_a_word_that_lsa_knows_is_the_sparse_half(client: QdrantClient, index: SearchIndex):
    assert [half.using for half in build_query(index, "hybrid", "xylophone", 3)["prefetch"]] == ["bm25"]
    assert search(client, index, "hybrid", "xylophone") == ()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("query", ["", "   ", "with the and", "?!"])
def test_a_query_without_a_word_sends_no_request(index: SearchIndex, strategy: str, query: str):
    client = Mock(spec=QdrantClient)
    assert search(client, index, strategy, query) == ()
    assert asyncio.run(search_async(Mock(spec=AsyncQdrantClient), index, strategy, query)) == ()
    assert client.method_calls == []


def test_an_unknown_strategy_is_refused_with_the_known_ones(index: SearchIndex):
    with pytest.raises(ConfigurationError, match=r"hybrid, hierarchical, graph, not 'fuzzy'"):
        search(Mock(spec=QdrantClient), index, "fuzzy", "lock")


def test_a_limit_below_one_is_refused(index: SearchIndex):
    for strategy in STRATEGIES:
        with pytest.raises(ConfigurationError, match="limit"):
            search(Mock(spec=QdrantClient), index, strategy, "lock", limit=0)


def test_equal_scores_are_ordered_by_id():
    points = [scored(1, "b#1", 0.5), scored(2, "c#1", 0.7), scored(3, "a#1", 0.5)]
    assert [document.id for document in read_documents(points)] == ["c#1", "a#1", "b#1"]


@pytest.mark.parametrize(
    "value",
    [
        "/srv/data/a.md",
        "~/a.md",
        "~user/a.md",
        "C:\\data\\a.md",
        "D:/data/a.md",
        "\\\\host\\share",
        "file:///srv/a.md",
        "loaded from /srv/a.md today",
        "path=/srv/a.md",
        Path("a.md"),
        b"blob",
        bytearray(b"blob"),
        "data:image/png;base64,AAAA",
        "QUJD" * 100,
        "\x00\x01",
        float("nan"),
        float("inf"),
        {1, 2},
        object(),
    ],
    # The same names in every process, which pytest-xdist insists on: no addresses, no order of a set.
    ids=lambda value: repr(value)[:30] if isinstance(value, str | bytes) else type(value).__name__,
)
def test_paths_blobs_and_values_that_json_does_not_know_are_dropped_at_any_depth(value: object):
    assert clean_metadata({"kept": 1, "dropped": value}) == {"kept": 1}
    cleaned = clean_metadata({"deep": {"list": [value, 2], "dropped": value}})
    assert clean_metadata(cleaned) == cleaned == {"deep": {"list": [2]}}


@pytest.mark.parametrize("key", ["/srv/data", b"key", 1, None])
def test_keys_that_are_not_clean_strings_are_dropped(key: object):
    assert clean_metadata({key: 1}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "docs/guide.md",
        "./guide.md",
        "and/or",
        "str.partition(sep, /)",
        "a / b",
        'the "/" and "//" operators',
        "https://example.org/a/b",
        "Section 3: names",
        True,
        None,
        1.5,
        ["a", {"b": 1}],
    ],
    ids=repr,
)
def test_ordinary_values_are_kept(value: object):
    assert clean_metadata({"value": value}) == {"value": value}


# ---- two requests

PAGES = (
    Chunk("ferry#1", "ferry", "Ferries > Boarding", "Passengers board the ferry over a ramp."),
    Chunk("ferry#2", "ferry", "Ferries > Mooring", "A sailor throws the rope."),
    Chunk("ferry#3", "ferry", "Ferries > Mooring", "The bollard holds a zebrawood ferry."),
    Chunk("ferry#4", "ferry", "Ferries > Mooring", "The engine is stopped after that."),
    Chunk("ferry#5", "ferry", "Ferries > Meals", "Soup is served at noon."),
    Chunk("quay#1", "quay", "Quays", "A quay is built of stone."),
    Chunk("quay#2", "quay", "Quays", "Stone lasts for a hundred years."),
    Chunk("crane#1", "crane", "Cranes", "A crane lifts the containers off the deck."),
    Chunk("tower#1", "tower", "Towers", "A lighthouse is a tower with a lamp."),
)
REFERENCES = {"ferry": ("quay", "crane"), "quay": ("ferry",)}


class Counted:
    """A client that notes the methods it is asked."""

    def __init__(self, real: QdrantClient) -> None:
        self.real, self.asked = real, []

    def __getattr__(self, name: str) -> Any:
        def ask(**arguments: Any) -> Any:
            self.asked.append((name, arguments))
            return getattr(self.real, name)(**arguments)

        return ask


@pytest.fixture(scope="module")
def harbour(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, Library(PAGES, "harbour", REFERENCES))


@pytest.fixture
def counted(client: QdrantClient) -> Counted:
    return Counted(client)


def test_hierarchical_brings_the_neighbours_of_the_best_passage_of_its_own_section_first(
    counted: Counted, harbour: SearchIndex
):
    found = search(counted, harbour, "hierarchical", "zebrawood bollard", limit=3)
    assert {document.id: document.metadata.get("context_of") for document in found} == {
        "ferry#3": None,
        "ferry#2": "ferry#3",
        "ferry#4": "ferry#3",
    }
    assert len({document.score for document in found}) == 1
    assert [name for name, _ in counted.asked] == ["query_points", "scroll"]


def test_a_neighbour_of_the_same_section_comes_before_a_nearer_one_of_the_next(
    client: QdrantClient, harbour: SearchIndex
):
    # ferry#5 stands next to it too, but is about meals.
    found = search(client, harbour, "hierarchical", "engine stopped", limit=3)
    assert {document.id for document in found} == {"ferry#4", "ferry#3", "ferry#2"}


def test_only_what_stands_around_on_the_same_page_is_fetched(counted: Counted, harbour: SearchIndex):
    search(counted, harbour, "hierarchical", "zebrawood bollard", limit=1)
    (window,) = counted.asked[1][1]["scroll_filter"].should
    assert [(it.key, it.match.value) for it in window.must[:1]] == [("topic", "ferry")]
    assert window.must[1].has_id == [0, 1, 3, 4]


def test_a_section_too_short_for_neighbours_is_filled_up_from_its_page(client: QdrantClient, harbour: SearchIndex):
    found = search(client, harbour, "hierarchical", "passengers ramp", limit=3)
    assert {document.id for document in found} == {"ferry#1", "ferry#2", "ferry#3"}


def test_no_passage_comes_twice(client: QdrantClient, harbour: SearchIndex):
    for strategy in STRATEGIES:
        for limit in (1, 2, 5, 20):
            ids = [document.id for document in search(client, harbour, strategy, "stone ferry ramp rope", limit=limit)]
            assert len(ids) == len(set(ids)) <= limit


def test_graph_gives_its_last_places_to_the_topics_that_are_referred_to(counted: Counted, harbour: SearchIndex):
    found = search(counted, harbour, "graph", "zebrawood bollard engine passengers rope", limit=5)
    assert [document.topic for document in found[:3]] == ["ferry"] * 3
    # Nothing else has the query's words; the dense half has an order for every passage of the topics all the same.
    assert {document.topic for document in found[3:]} <= {"quay", "crane", "ferry"}
    for document in found:
        assert document.metadata.get("referred_by") == (None if document.topic == "ferry" else ["ferry"])
    assert any("referred_by" in document.metadata for document in found)
    scores = [document.score for document in found]
    assert scores == sorted(scores, reverse=True)


def test_graph_searches_referred_topics_by_a_filter_on_both_halves(counted: Counted, harbour: SearchIndex):
    search(counted, harbour, "graph", "zebrawood bollard rope", limit=3)
    (_, first), (name, second) = counted.asked
    assert name == "query_points"
    assert second["limit"] == 1
    assert {half.using: half.filter.must[0].match.any for half in second["prefetch"]} == {
        half.using: ["quay", "crane"] for half in first["prefetch"]
    }


def test_graph_asks_once_where_nothing_is_referred_to(counted: Counted, index: SearchIndex, harbour: SearchIndex):
    assert search(counted, harbour, "graph", "lighthouse lamp", limit=1)[0].id == "tower#1"
    assert search(counted, index, "graph", "lock values") == search(counted, index, "hybrid", "lock values")
    assert [name for name, _ in counted.asked] == ["query_points"] * 3


def test_graph_without_references_is_hybrid_and_says_so(index: SearchIndex, harbour: SearchIndex):
    assert strategy_in_effect(index, "graph") == "hybrid"
    assert strategy_in_effect(harbour, "graph") == "graph"
    assert [strategy_in_effect(index, name) for name in STRATEGIES[:2]] == list(STRATEGIES[:2])
