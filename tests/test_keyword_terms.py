"""Keywords that are stop words elsewhere are terms where a text speaks of them as keywords."""

from __future__ import annotations

import pytest

from docmind_lab.core.keyword_terms import keyword_terms
from docmind_lab.docmind.retrieval import SparseEncoder
from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import extract_answer

WITH = 'The "with" statement wraps the execution of a block.'
TRY = 'The "try" statement names handlers for the execution of a block.'


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What does a with statement do?", {"with": 1}),
        ("Is the in operator the same as `in` in a for-loop?", {"in": 2, "for": 1}),
        ("What goes with a statement, as in operators?", {}),
        ("What does a try statement do?", {}),
    ],
)
def test_a_keyword_is_a_term_where_a_text_speaks_of_it_as_one(text: str, terms: dict[str, int]) -> None:
    assert keyword_terms(text) == terms


def test_a_search_for_a_keyword_matches_passages_about_it_and_weighs_other_words_as_before() -> None:
    encoder = SparseEncoder.fit([WITH, TRY])
    query = set(encoder.encode_query("What does a with statement do?").indices)
    shared = [query & set(encoder.encode_document(text).indices) for text in (WITH, TRY)]
    assert shared[0] > shared[1]
    plain = encoder.encode_document(WITH.replace('"', ""))
    about = dict(zip(*[getattr(encoder.encode_document(WITH), name) for name in ("indices", "values")], strict=True))
    bare = encoder.encode_document(WITH.replace('"with" statement', "statement with"))
    assert all(about[index] == value for index, value in zip(bare.indices, bare.values, strict=True))
    assert len(plain.indices) == len(bare.indices) + 1


def test_an_answer_about_a_keyword_is_made_of_sentences_about_it() -> None:
    answer = extract_answer("What does a with statement do?", [Document("try#1", TRY), Document("with#1", WITH)])
    assert answer == f"{WITH} [with#1]"
