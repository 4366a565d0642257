"""The encoders: weights that can be worked out by hand, and vectors that are equal everywhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.encoders import MAXIMUM_DIMENSION, DenseEncoder, SparseEncoder, token_id, tokenise

TEXTS = (
    "A generator yields values lazily",
    "Iterators and generators produce values",
    "The lock is released by the context manager",
    "Entering a context acquires the lock",
)


@pytest.fixture(scope="module")
def dense() -> DenseEncoder:
    return DenseEncoder.fit(TEXTS)


def test_tokens_are_lower_case_stems_without_stop_words_in_order():
    assert tokenise("The Generators, and __enter__() of a generator") == ["generat", "__enter__", "generat"]


def test_token_ids_are_the_same_in_every_process():
    assert (token_id("yield"), token_id("generat")) == (435863427, 1995917382)


def test_document_weights_are_bm25s_without_the_inverse_document_frequency():
    encoder = SparseEncoder(average_length=4.0)
    vector = encoder.encode_document("lock lock manager")
    weights = dict(zip(vector.indices, vector.values, strict=True))
    discount = 1.2 * (0.25 + 0.75 * 3 / 4)
    assert vector.indices == sorted(weights)
    assert weights[token_id("lock")] == pytest.approx(2 * 2.2 / (2 + discount), abs=1e-6)
    assert weights[token_id("manag")] == pytest.approx(1 * 2.2 / (1 + discount), abs=1e-6)


def test_a_query_weighs_each_different_word_once():
    vector = SparseEncoder(average_length=4.0).encode_query("lock the lock manager")
    assert vector.indices == sorted([token_id("lock"), token_id("manag")])
    assert vector.values == [1.0, 1.0]


def test_the_average_length_counts_tokens():
    assert SparseEncoder.fit(["one lock", "the lock of two managers held"]).average_length == 3.0


@pytest.mark.parametrize("fit", [SparseEncoder.fit, DenseEncoder.fit])
@pytest.mark.parametrize("texts", [[], ["the of and"]])
def test_texts_without_words_are_refused(fit, texts: list[str]):
    with pytest.raises(ConfigurationError, match="word"):
        fit(texts)


def test_texts_about_one_thing_are_nearer_than_texts_about_another(dense: DenseEncoder):
    query = np.array(dense.encode("lazily generated values"))
    nearness = [float(query @ np.array(dense.encode(text))) for text in TEXTS]
    assert min(nearness[:2]) > max(nearness[2:])


def test_a_query_without_a_known_word_is_the_zero_vector(dense: DenseEncoder):
    assert dense.encode("xylophone") == dense.encode("") == [0.0] * dense.dimension


def test_the_dimension_is_below_the_number_of_documents_and_of_words_and_the_maximum(dense: DenseEncoder):
    assert dense.dimension == len(TEXTS) - 1
    many = DenseEncoder.fit([f"lock w{number}" for number in range(MAXIMUM_DIMENSION + 2)])
    assert many.dimension == MAXIMUM_DIMENSION


@pytest.mark.parametrize("texts", [["lock"], ["lock manager"], ["lock", "lock"], ["lock"] * 5])
def test_the_smallest_corpora_can_be_encoded(texts: list[str]):
    assert DenseEncoder.fit(texts).encode("lock") == [1.0]


@pytest.mark.parametrize("texts", [TEXTS, ["ab", "  "], ["abc abc", "abc", "cba", "the"], ["aa bb"] * 3])
def test_every_vector_has_length_one_or_zero_whatever_the_corpus(texts: list[str]):
    encoder = DenseEncoder.fit(texts)
    for text in (*texts, "xylophone"):
        length = math.hypot(*encoder.encode(text))
        assert length == pytest.approx(1.0, abs=1e-5) or length == 0.0


def test_the_largest_entry_of_every_component_is_positive(dense: DenseEncoder):
    for component in dense.components.T:
        assert component[np.argmax(np.abs(component))] > 0


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns all the time: at the usual interval a shared stemmer would pass by luck."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_threads_do_not_disturb_each_others_stems():
    # Words that no other test has stemmed, so that every thread really stems.
    words = ["".join(pair) + "zlock" for pair in product("bcdfghjkmnpqrt", repeat=3)]
    with ThreadPoolExecutor(8) as pool:
        stems = list(pool.map(lambda word: tokenise(f"{word}ing"), words))
    assert stems == [[word] for word in words]
