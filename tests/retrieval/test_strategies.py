"""The strategies: the request each one makes, what comes back, and what never leaves in metadata."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from docmind_lab.errors import ConfigurationError, ServiceError
from docmind_lab.retrieval import (
    STRATEGIES,
    Chunk,
    RetrievedDocument,
    SearchIndex,
    build_query,
    clean_metadata,
    load_language_reference,
    search,
    search_async,
)
from docmind_lab.retrieval.strategies import read_documents

CHUNKS = (
    Chunk("lock#1", "lock", "Locks", "A lock is released by the context manager."),
    Chunk("lock#2", "lock", "Locks", "Waiting for a lock may time out."),
    Chunk("yield#1", "yield", "Generators", "A generator yields values lazily."),
    Chunk("yield#2", "yield", "Generators", "Iterators and generators produce values."),
    Chunk("enter#1", "enter", "Contexts", "Entering a context acquires the lock."),
)


@pytest.fixture(scope="module")
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture(scope="module")
def index(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, CHUNKS)


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
    assert search(client, index, "sparse", "waiting lock")[0].id == "lock#2"


def test_sparse_asks_by_words_alone(index: SearchIndex):
    arguments = build_query(index, "sparse", "lock", 3)
    assert (arguments["using"], arguments["limit"], "prefetch" in arguments) == ("bm25", 3, False)


def test_hybrid_fuses_words_and_lsa_by_reciprocal_rank(index: SearchIndex):
    arguments = build_query(index, "hybrid", "lock", 3)
    assert arguments["query"].fusion == models.Fusion.RRF
    assert [half.using for half in arguments["prefetch"]] == ["bm25", "lsa"]
    assert all(half.limit >= 3 for half in arguments["prefetch"])


def test_hybrid_without_a_word_that_lsa_knows_is_the_sparse_half(client: QdrantClient, index: SearchIndex):
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
    with pytest.raises(ConfigurationError, match=r"sparse, hybrid.*'dense'"):
        build_query(index, "dense", "lock", 3)


def test_a_limit_below_one_is_refused(index: SearchIndex):
    with pytest.raises(ConfigurationError, match="limit"):
        build_query(index, "sparse", "lock", 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_async_door_finds_what_the_sync_door_finds(client: QdrantClient, index: SearchIndex, strategy: str):
    async def ask() -> tuple[RetrievedDocument, ...]:
        other = AsyncQdrantClient(":memory:")
        await other.create_collection(
            index.collection,
            vectors_config={"lsa": models.VectorParams(size=index.dense.dimension, distance=models.Distance.COSINE)},
            sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        await other.upsert(index.collection, list(index.points(CHUNKS)))
        found = await search_async(other, index, strategy, "lock context values", limit=4)
        await other.close()
        return found

    assert asyncio.run(ask()) == search(client, index, strategy, "lock context values", limit=4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_searching_changes_nothing(client: QdrantClient, index: SearchIndex, strategy: str):
    first = search(client, index, strategy, "lock context values")
    assert search(client, index, strategy, "lock context values") == first


def test_chunks_vectors_and_results_are_equal_in_every_process():
    code = (
        "from docmind_lab.retrieval import *; from qdrant_client import QdrantClient;"
        "client = QdrantClient(':memory:'); chunks = load_language_reference()[:80];"
        "index = SearchIndex.build(client, chunks);"
        "print(index.fingerprint, list(index.points(chunks[:3])));"
        "print([search(client, index, name, 'name of the target in an except clause') for name in STRATEGIES])"
    )
    # Sets and dictionaries of strings take another order under another seed.
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second


def test_equal_scores_are_ordered_by_id():
    points = [scored(1, "b#1", 0.5), scored(2, "c#1", 0.7), scored(3, "a#1", 0.5)]
    assert [document.id for document in read_documents(points)] == ["c#1", "a#1", "b#1"]


def test_points_that_are_not_chunks_are_an_error():
    with pytest.raises(ServiceError, match="chunk_id"):
        read_documents([models.ScoredPoint(id=1, version=0, score=1.0, payload=None)])


def test_metadata_of_a_foreign_payload_is_cleaned():
    (document,) = read_documents([scored(1, "a#1", 1.0, corpus="f" * 32, source="/srv/secret/a.md", page=3)])
    assert document.metadata == {"page": 3}


def test_a_payload_is_json_and_a_copy():
    document = RetrievedDocument("a#1", "text", {"topic": "a"}, 0.5)
    payload = document.to_payload()
    assert json.loads(json.dumps(payload)) == {
        "id": "a#1",
        "content": "text",
        "metadata": {"topic": "a"},
        "score": 0.5,
    }
    payload["metadata"]["topic"] = "b"
    assert document.topic == "a"


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
    assert clean_metadata({"deep": {"list": [value, 2], "dropped": value}}) == {"deep": {"list": [2]}}


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


def test_no_heading_of_the_reference_is_taken_for_a_path():
    for chunk in load_language_reference():
        assert clean_metadata({"topic": chunk.topic, "section": chunk.section}) == {
            "topic": chunk.topic,
            "section": chunk.section,
        }


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda children: st.lists(children) | st.dictionaries(st.text() | st.binary(), children),
    max_leaves=6,
)


@given(st.dictionaries(st.text() | st.integers(), JSON_LIKE))
def test_clean_metadata_is_strict_json_and_stays_as_it_is(metadata: dict[object, object]):
    cleaned = clean_metadata(metadata)
    assert json.loads(json.dumps(cleaned, allow_nan=False)) == cleaned
    assert clean_metadata(cleaned) == cleaned
