"""The handbook: the same in every Python, linked, and holding the answers to its questions."""

from __future__ import annotations

import importlib.resources
import re

import pytest
from qdrant_client import QdrantClient

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.answer_scores import answer_score, contains_fact, normalise
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.results import RetrievedDocument
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.strategies import search

LIBRARY = handbook()
QUESTIONS = load_questions("handbook")


def test_the_handbook_is_the_same_in_every_version():
    # Pinned: whoever changes a page or how it is cut changes results that are compared across versions.
    assert LIBRARY.fingerprint == "82c7c9f21a5ff7824c5ec86fee661b46"
    assert handbook() is LIBRARY


def test_it_has_a_page_for_each_word_and_each_page_fits_the_corpus():
    assert len(LIBRARY.topics) == 12
    folder = importlib.resources.files("docmind_lab.core.data").joinpath("handbook")
    for topic in LIBRARY.topics:
        assert 150 <= len(folder.joinpath(topic).read_text(encoding="utf-8").split()) <= 400


def test_every_link_leads_to_a_page_and_every_page_is_linked():
    texts = " ".join(chunk.text for chunk in LIBRARY.chunks)
    assert set(re.findall(r"\]\(([^)]+)\)", texts)) <= set(LIBRARY.topics)
    linked = {target for targets in LIBRARY.references.values() for target in targets}
    assert linked >= set(LIBRARY.topics) - {"common-random-numbers.md", "router-injection.md"}
    assert set(LIBRARY.references) == set(LIBRARY.topics)


def test_there_are_twelve_questions_with_ids_in_order():
    assert [question.id for question in QUESTIONS] == [f"h{number:02d}" for number in range(1, 13)]
    assert 4 <= sum(question.complex for question in QUESTIONS) <= 6
    assert load_questions() is QUESTIONS


def test_the_corpus_that_left_is_refused_by_its_name():
    with pytest.raises(ConfigurationError, match=r"language_reference has left the lab.*leave documents out"):
        load_questions("language_reference")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_every_gold_topic_holds_a_gold_fact_and_every_fact_is_in_one_passage(question: Question):
    assert set(question.gold_topics) <= set(LIBRARY.topics)
    gold = [chunk for chunk in LIBRARY.chunks if chunk.topic in question.gold_topics]
    holders = [{c.topic for c in gold if contains_fact(normalise(c.text), normalise(f))} for f in question.gold_facts]
    assert all(holders)
    assert set().union(*holders) == set(question.gold_topics)
    assert all(3 <= len(fact.split()) <= 10 for fact in question.gold_facts)
    assert not any(contains_fact(normalise(question.text), normalise(fact)) for fact in question.gold_facts)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_an_answer_that_quotes_the_gold_passages_scores_one(question: Question):
    documents = [RetrievedDocument(chunk.id, chunk.text) for chunk in LIBRARY.chunks]
    quoted = [
        next(d for d in documents if contains_fact(normalise(d.content), normalise(f))) for f in question.gold_facts
    ]
    answer = " ".join(f"In short, {f} [{d.id}]." for f, d in zip(question.gold_facts, quoted, strict=True))
    assert answer_score(question, answer, documents) == 1.0


def test_the_search_finds_a_gold_page_for_most_questions():
    # A corpus on which nothing is found could not tell one alternative from another.
    client = QdrantClient(":memory:")
    index = SearchIndex.build(client, LIBRARY)
    found = [{d.topic for d in search(client, index, "hybrid", q.text)} & set(q.gold_topics) for q in QUESTIONS]
    client.close()
    assert sum(map(bool, found)) >= 8
