"""The index: what lands in the collection, when it is kept, and when it is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
from qdrant_client import QdrantClient, models
from retrieval_fakes import CHUNKS, LIBRARY

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.base.workloads import BATCH_SIZE
from docmind_lab.systems.docmind.retrieval.index import SearchIndex


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


def test_the_collection_holds_every_chunk_with_its_payload(client: QdrantClient):
    index = SearchIndex.build(client, LIBRARY)
    points, _ = client.scroll("docs", limit=10)
    found = [tuple(p.payload[key] for key in ("chunk_id", "topic", "section", "text")) for p in points]
    assert found == [(c.id, c.topic, c.section, c.text) for c in CHUNKS]
    assert [p.id for p in points] == [0, 1, 2]
    assert (index.collection, index.size) == ("docs", 3)


def test_the_collection_has_an_lsa_vector_by_cosine_and_a_bm25_vector_with_idf(client: QdrantClient):
    index = SearchIndex.build(client, LIBRARY)
    parameters = client.get_collection(index.collection).config.params
    assert parameters.vectors["lsa"].distance == models.Distance.COSINE
    assert parameters.vectors["lsa"].size == index.dense.dimension
    assert parameters.sparse_vectors["bm25"].modifier == models.Modifier.IDF


def test_points_are_uploaded_in_batches(client: QdrantClient):
    many = tuple(replace(CHUNKS[0], id=f"lock#{number}") for number in range(BATCH_SIZE + 1))
    with patch.object(client, "upsert", wraps=client.upsert) as upsert:
        SearchIndex.build(client, Library(many, "docs"))
    assert upsert.call_count == 2


def test_a_collection_with_the_same_chunks_is_kept(client: QdrantClient):
    SearchIndex.build(client, LIBRARY)
    with patch.object(client, "upsert", wraps=client.upsert) as upsert:
        SearchIndex.build(client, LIBRARY)
    assert upsert.call_count == 0


@pytest.mark.parametrize(
    "chunks",
    [
        CHUNKS[:2],
        (*CHUNKS[:2], replace(CHUNKS[2], text="Something else.")),
        (*CHUNKS, replace(CHUNKS[2], id="yield#2")),
    ],
    ids=["fewer", "changed", "more"],
)
def test_a_collection_with_other_chunks_of_ours_is_replaced(client: QdrantClient, chunks: tuple[Chunk, ...]):
    SearchIndex.build(client, LIBRARY)
    index = SearchIndex.build(client, Library(chunks, "docs"))
    points, _ = client.scroll(index.collection, limit=10)
    assert [p.payload["text"] for p in points] == [chunk.text for chunk in chunks]


def test_a_collection_with_points_of_someone_else_is_refused_and_left_alone(client: QdrantClient):
    client.create_collection("mine", vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT))
    client.upsert("mine", [models.PointStruct(id=7, vector=[1.0, 2.0], payload={"note": "keep"})])
    with pytest.raises(ConfigurationError, match="mine"):
        SearchIndex.build(client, Library(CHUNKS, "mine"))
    assert client.count("mine").count == 1


def test_an_upload_that_loses_points_is_an_error(client: QdrantClient):
    with patch.object(client, "upsert"), pytest.raises(ServiceError, match="docs"):
        SearchIndex.build(client, LIBRARY)


def test_a_chunk_without_words_is_stored_without_vectors(client: QdrantClient):
    wordless = Chunk("rule#1", "rule", "", "-----")
    index = SearchIndex.build(client, Library((*CHUNKS, wordless), "docs"))
    assert next(index.points((wordless,))).vector == {}
    assert client.count(index.collection).count == 4


@pytest.mark.parametrize("chunks", [(), (Chunk("a#1", "a", "", "the of"),)], ids=["none", "without a word"])
def test_chunks_that_cannot_be_indexed_are_refused(client: QdrantClient, chunks: tuple[Chunk, ...]):
    with pytest.raises(ConfigurationError, match="words"):
        SearchIndex.build(client, Library(chunks, "docs"))
    assert client.get_collections().collections == []
