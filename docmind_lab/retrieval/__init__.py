"""Retrieval: the corpus, its index in Qdrant, the ways to search it, and the questions with known answers.

corpus.py      Chunk; the language reference as chunks, and its cross references
encoders.py    BM25 and LSA, fitted on the chunks
index.py       SearchIndex: a Qdrant collection with its encoders
strategies.py  sparse and hybrid search, sync and async; documents without paths and blobs
tool.py        the retrieve_documents tool: its payload, its budget
questions.py   forty questions with gold topics and facts, and their scores
"""

from docmind_lab.retrieval.corpus import (
    Chunk,
    chunk_pages,
    load_language_reference,
    split_text,
    topic_references,
)
from docmind_lab.retrieval.encoders import DenseEncoder, SparseEncoder
from docmind_lab.retrieval.index import SearchIndex
from docmind_lab.retrieval.questions import Question, answer_score, load_questions, source_recall
from docmind_lab.retrieval.strategies import (
    STRATEGIES,
    RetrievedDocument,
    build_query,
    clean_metadata,
    search,
    search_async,
)
from docmind_lab.retrieval.tool import RetrievalResources, create_retrieve_documents, retrieve_documents

__all__ = [
    "STRATEGIES",
    "Chunk",
    "DenseEncoder",
    "Question",
    "RetrievalResources",
    "RetrievedDocument",
    "SearchIndex",
    "SparseEncoder",
    "answer_score",
    "build_query",
    "chunk_pages",
    "clean_metadata",
    "create_retrieve_documents",
    "load_language_reference",
    "load_questions",
    "retrieve_documents",
    "search",
    "search_async",
    "source_recall",
    "split_text",
    "topic_references",
]
