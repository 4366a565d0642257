"""Encode texts as vectors: BM25 weights for exact words, and LSA for words that occur in similar texts.

    sparse = SparseEncoder.fit(texts)
    sparse.encode_query("yield from")   # SparseVector(indices=[…], values=[1.0, …])
    dense = DenseEncoder.fit(texts)
    dense.encode("yield from")          # 96 floats of length 1, or all zero if no word is known

Both are fitted on the documents when an index is built, both are deterministic: equal texts give equal vectors in
every process. Neither downloads a model, and neither changes after it was fitted, so threads may share them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import bm25s
import numpy as np
from numpy.typing import NDArray
from qdrant_client.models import SparseVector
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.scripted_model.extraction import stem

MAXIMUM_DIMENSION = 96
"""Of the LSA space: past about a hundred, a few hundred short passages add noise, and a query costs more."""

# Vectors are stored and compared as 32-bit floats, which carry seven digits; the last one differs between builds of
# the linear algebra library, and must not reach a table.
_DIGITS = 6


def tokenise(text: str) -> list[str]:
    """Return the text's words in order: lower case, two letters or more, no English stop words, stemmed.

    Source: bm25s' tokenizer and stop words (Lucene's list of 33), Snowball's English stemmer.
    """
    (tokens,) = bm25s.tokenize([text], stopwords="en", stemmer=_stem_all, return_ids=False, show_progress=False)
    return list(tokens)


def _stem_all(words: Sequence[str]) -> list[str]:
    return [stem(word) for word in words]


def token_id(token: str) -> int:
    """Return a stable 32-bit id for a token, so that documents and queries need no shared vocabulary.

    Two tokens share an id with probability 2⁻³²; over ten thousand words, about one pair in eighty corpora.
    """
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=4).digest())


@dataclass(frozen=True)
class SparseEncoder:
    """BM25 weights of documents; Qdrant applies the inverse document frequency (`Modifier.IDF`) to the query.

    average_length: tokens per document, fitted. k1: how soon repeats of a word stop counting. b: how much long
    documents are discounted. Both are Robertson and Zaragoza's (2009) usual choice.
    """

    name: ClassVar[str] = "bm25"
    k1: ClassVar[float] = 1.2
    b: ClassVar[float] = 0.75

    average_length: float

    def __post_init__(self) -> None:
        if not self.average_length > 0:
            raise ConfigurationError(
                f"average_length must be above 0, not {self.average_length}: fit on texts with words"
            )

    @classmethod
    def fit(cls, texts: Sequence[str]) -> SparseEncoder:
        """Fit an encoder to documents like these. Raises ConfigurationError if no text has a word."""
        lengths = [len(tokenise(text)) for text in texts]
        return cls(average_length=sum(lengths) / len(lengths) if lengths else 0.0)

    def encode_document(self, text: str) -> SparseVector:
        """Return term-frequency weights, each below k1 + 1; indices ascend. Empty for a text without words."""
        tokens = tokenise(text)
        discount = self.k1 * (1 - self.b + self.b * len(tokens) / self.average_length)
        counts = Counter(token_id(token) for token in tokens)
        return _sparse_vector({index: n * (self.k1 + 1) / (n + discount) for index, n in counts.items()})

    def encode_query(self, text: str) -> SparseVector:
        """Return weight 1 for each different word; indices ascend. Empty for a text without words."""
        return _sparse_vector({token_id(token): 1.0 for token in tokenise(text)})


def _sparse_vector(weights: Mapping[int, float]) -> SparseVector:
    indices = sorted(weights)
    return SparseVector(indices=indices, values=[round(weights[index], _DIGITS) for index in indices])


@dataclass(frozen=True, eq=False)
class DenseEncoder:
    """LSA: tf-idf rows projected on the leading right singular vectors of the document matrix.

    columns: token → column. weights: idf per column. components: columns × dimension, float64.
    Source: Deerwester et al. (1990), with 1 + ln(tf) and smoothed idf as weights.
    """

    name: ClassVar[str] = "lsa"

    columns: Mapping[str, int]
    weights: NDArray[np.float64]
    components: NDArray[np.float64]

    @classmethod
    def fit(cls, texts: Sequence[str]) -> DenseEncoder:
        """Fit an encoder to the documents. Raises: ConfigurationError: no text has a word."""
        counts = [Counter(tokenise(text)) for text in texts]
        frequency = Counter(token for count in counts for token in count)
        if not frequency:
            raise ConfigurationError("texts must hold at least one word that is not a stop word")
        columns = {token: column for column, token in enumerate(sorted(frequency))}
        weights = np.array([np.log((1 + len(texts)) / (1 + frequency[token])) + 1 for token in columns])
        rows = [_weigh(count, columns, weights) for count in counts]
        matrix = csr_array(
            (
                np.concatenate([values for _, values in rows]),
                np.concatenate([indices for indices, _ in rows]),
                np.cumsum([0, *(len(indices) for indices, _ in rows)]),
            ),
            shape=(len(texts), len(columns)),
        )
        return cls(columns=columns, weights=weights, components=_right_vectors(matrix))

    @property
    def dimension(self) -> int:
        """How many numbers each vector has."""
        return int(self.components.shape[1])

    def encode(self, text: str) -> list[float]:
        """Return the text's vector, of length 1.

        All zero when the documents have none of its words. A zero vector has no direction and so no neighbours:
        a search leaves the dense part out, which is a result and not an error.
        """
        indices, values = _weigh(Counter(tokenise(text)), self.columns, self.weights)
        projected = values @ self.components[indices]
        length = float(np.linalg.norm(projected))
        # A word that the kept components do not see projects to rounding noise, which must not be blown up to 1.
        if length < 1e-9:
            return [0.0] * self.dimension
        return [round(float(value), _DIGITS) for value in projected / length]


def _weigh(
    counts: Mapping[str, int], columns: Mapping[str, int], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the columns and tf-idf values of the known words; the values together have length 1."""
    counts_by_column = sorted((columns[token], count) for token, count in counts.items() if token in columns)
    indices = np.array([column for column, _ in counts_by_column], dtype=np.int64)
    values = (1 + np.log(np.array([count for _, count in counts_by_column], dtype=np.float64))) * weights[indices]
    length = float(np.linalg.norm(values))
    return indices, values / length if length else values


def _right_vectors(matrix: csr_array) -> NDArray[np.float64]:
    smallest = min(matrix.shape)
    if smallest <= 2:
        # The sparse solver wants fewer vectors than the matrix has rows or columns; one or two need no solver.
        right = np.linalg.svd(matrix.toarray(), full_matrices=False)[2][:1]
    else:
        # ARPACK starts, and restarts, from random vectors unless it is told otherwise.
        start = np.full(smallest, 1 / np.sqrt(smallest))
        _, _, right = svds(matrix, k=min(MAXIMUM_DIMENSION, smallest - 1), v0=start, rng=0)
    # A singular vector's sign is arbitrary: make its largest entry positive.
    largest = right[np.arange(len(right)), np.argmax(np.abs(right), axis=1)]
    return np.ascontiguousarray((right * np.where(largest < 0, -1.0, 1.0)[:, None]).T)
