"""Retrieval: the corpus, its index in Qdrant, the search strategies, and the questions with known answers.

corpus.py      Chunk, and where a text is cut into chunks
encoders.py    BM25 and LSA, fitted on the chunks
index.py       SearchIndex: a Qdrant collection with its encoders
results.py     documents from points and from a router's sources, without paths and blobs
strategies.py  hybrid, hierarchical and graph search, sync and async
tool.py        the retrieve_documents tool: its payload, its budget
injection.py   an injected router engine, asked first, within its share of the budget
questions.py   the handbook's questions with gold topics and facts, and how answers are scored
"""

from docmind_lab.systems.docmind.retrieval.corpus import Chunk
from docmind_lab.systems.docmind.retrieval.encoders import DenseEncoder, SparseEncoder
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.questions import Question, answer_score, load_questions, source_recall
from docmind_lab.systems.docmind.retrieval.results import RetrievedDocument, clean_metadata
from docmind_lab.systems.docmind.retrieval.strategies import STRATEGIES, build_query, search, search_async
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, create_retrieve_documents, retrieve_documents

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
    "clean_metadata",
    "create_retrieve_documents",
    "load_questions",
    "retrieve_documents",
    "search",
    "search_async",
    "source_recall",
]
