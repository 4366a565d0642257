"""A search index: chunks in a Qdrant collection, and the encoders fitted on them.

    index = SearchIndex.build(QdrantClient(":memory:"), handbook())
    search(client, index, "hybrid", "What does a hard timeout leave running?")     # strategies.py

The index holds no client, so that one index serves every client, thread and event loop.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from qdrant_client import QdrantClient, models

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.base.encoders import DenseEncoder, SparseEncoder
from docmind_lab.systems.base.workloads import BATCH_SIZE

CORPUS_FIELD = "corpus"
"""Payload field with the fingerprint of the corpus that a point belongs to."""


@dataclass(frozen=True, eq=False)
class SearchIndex:
    """Everything that a search needs besides a client: the collection's name, the encoders, the references.

    collection: its name in Qdrant. sparse: encoder of the vector "bm25". dense: encoder of the vector "lsa". size:
    chunks in it. fingerprint: of the chunks and of how they are encoded. references: topic → topics that it refers to,
    which the graph strategy follows; empty for a corpus without any.
    """

    collection: str
    sparse: SparseEncoder
    dense: DenseEncoder
    size: int
    fingerprint: str
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def build(cls, client: QdrantClient, library: Library) -> SearchIndex:
        """Build the index of a library, and fill its collection.

        A collection that already holds exactly these chunks is kept. One that holds other chunks of ours is
        replaced; one with points that are not ours is left alone.

        Raises ConfigurationError for chunks without a word, and for a collection that is someone else's; ServiceError
        if the collection does not hold every chunk afterwards.
        """
        chunks, collection = library.chunks, library.collection
        sparse, dense = _encoders(tuple(chunk.searchable for chunk in chunks))
        encoded = repr((sparse.k1, sparse.b, dense.name, dense.dimension, library.fingerprint))
        fingerprint = hashlib.blake2b(encoded.encode(), digest_size=16).hexdigest()
        index = cls(collection, sparse, dense, len(chunks), fingerprint, library.references)
        if client.collection_exists(collection):
            if index.is_complete(client):
                return index
            _refuse_foreign(client, collection)
            client.delete_collection(collection)
        client.create_collection(
            collection,
            vectors_config={
                index.dense.name: models.VectorParams(size=index.dense.dimension, distance=models.Distance.COSINE)
            },
            sparse_vectors_config={index.sparse.name: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        points = list(index.points(chunks))
        for start in range(0, len(points), BATCH_SIZE):
            client.upsert(collection, points[start : start + BATCH_SIZE], wait=True)
        if not index.is_complete(client):
            raise ServiceError(
                f"collection {collection!r} does not hold the {index.size} chunks that were uploaded to it; "
                "is another process writing to it?"
            )
        return index

    def points(self, chunks: Sequence[Chunk]) -> Iterator[models.PointStruct]:
        """Yield a point for each chunk, by its number; a zero vector, which has no cosine, is left out."""
        for number, chunk in enumerate(chunks):
            vectors: dict[str, models.Vector] = {}
            sparse, dense = self.sparse.encode_document(chunk.searchable), self.dense.encode(chunk.searchable)
            if sparse.indices:
                vectors[self.sparse.name] = sparse
            if any(dense):
                vectors[self.dense.name] = dense
            payload = {
                "chunk_id": chunk.id,
                "topic": chunk.topic,
                "section": chunk.section,
                "text": chunk.text,
                CORPUS_FIELD: self.fingerprint,
            }
            yield models.PointStruct(id=number, vector=vectors, payload=payload)

    def is_complete(self, client: QdrantClient) -> bool:
        """Check with two requests that the collection holds every chunk of this index and nothing else."""
        ours = models.Filter(
            must=[models.FieldCondition(key=CORPUS_FIELD, match=models.MatchValue(value=self.fingerprint))]
        )
        matching = client.count(self.collection, count_filter=ours, exact=True).count
        return matching == self.size and client.count(self.collection, exact=True).count == self.size


def _refuse_foreign(client: QdrantClient, collection: str) -> None:
    unmarked = models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key=CORPUS_FIELD))])
    if foreign := client.count(collection, count_filter=unmarked, exact=True).count:
        raise ConfigurationError(
            f"collection {collection!r} holds {foreign} points that are not a corpus of docmind_lab, "
            "and building would delete them: choose another collection name"
        )


# Fitting takes most of a second, and a process that compares and asks fits the same few corpora again and again. Fitted
# encoders never change, so all may share one.
@functools.lru_cache(maxsize=4)
def _encoders(texts: tuple[str, ...]) -> tuple[SparseEncoder, DenseEncoder]:
    return SparseEncoder.fit(texts), DenseEncoder.fit(texts)
