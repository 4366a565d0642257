"""The questions: that the running Python's reference holds their answers, and how recall and answers are scored."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.docmind.retrieval import (
    Question,
    RetrievedDocument,
    answer_score,
    load_language_reference,
    load_questions,
    source_recall,
)
from docmind_lab.docmind.retrieval.questions import contains_fact, normalise, split_sentences

QUESTIONS = load_questions()
QUESTION = Question("q", "?", ("with", "try"), ("the suite is executed", "an exception is suppressed"))
DOCUMENTS = (
    RetrievedDocument("with#1", 'First "the suite"\n   is executed. Then more.'),
    RetrievedDocument("with#2", "If true, an *exception* is suppressed."),
    RetrievedDocument("try#1", "Nothing of the kind."),
)


def test_there_are_forty_questions_with_ids_in_order():
    assert [question.id for question in QUESTIONS] == [f"q{number:02d}" for number in range(1, 41)]
    assert len({question.text for question in QUESTIONS}) == 40


def test_about_a_third_of_the_questions_join_two_parts():
    assert 10 <= sum(question.complex for question in QUESTIONS) <= 15


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_every_gold_topic_exists_and_every_gold_fact_is_in_one_passage_of_them(question: Question):
    chunks = load_language_reference()
    assert 1 <= len(question.gold_topics) <= 3
    assert 1 <= len(question.gold_facts) <= 3
    assert set(question.gold_topics) <= {chunk.topic for chunk in chunks}
    gold = [normalise(chunk.text) for chunk in chunks if chunk.topic in question.gold_topics]
    for fact in question.gold_facts:
        assert 3 <= len(fact.split()) <= 10
        assert any(contains_fact(text, normalise(fact)) for text in gold), fact


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_every_gold_topic_holds_a_gold_fact(question: Question):
    chunks = load_language_reference()
    for topic in question.gold_topics:
        texts = [normalise(chunk.text) for chunk in chunks if chunk.topic == topic]
        assert any(contains_fact(text, normalise(fact)) for text in texts for fact in question.gold_facts), topic


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_no_question_gives_its_answer_away(question: Question):
    assert not any(contains_fact(normalise(question.text), normalise(fact)) for fact in question.gold_facts)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_an_answer_that_quotes_the_gold_passages_scores_one(question: Question):
    documents, answer = [], []
    for fact in question.gold_facts:
        chunk = next(
            c
            for c in load_language_reference()
            if c.topic in question.gold_topics and contains_fact(normalise(c.text), normalise(fact))
        )
        documents.append(RetrievedDocument(chunk.id, chunk.text))
        answer.append(f"In short, {fact} [{chunk.id}].")
    assert answer_score(question, " ".join(answer), documents) == 1.0


@pytest.mark.parametrize(
    ("topics", "recall"), [((), 0.0), (("for",), 0.0), (("with", "for", "with"), 0.5), (("try", "with"), 1.0)]
)
def test_recall_is_the_share_of_gold_topics_returned(topics: tuple[str, ...], recall: float):
    assert source_recall(QUESTION, topics) == recall


def test_scores_without_gold_are_not_numbers():
    assert math.isnan(source_recall(Question("q", "?"), ["with"]))
    assert math.isnan(answer_score(Question("q", "?"), "Anything [with#1].", DOCUMENTS))


@pytest.mark.parametrize(
    "answer",
    [
        "The suite is executed [with#1].",
        "The suite is executed. [with#1]",
        "The suite is executed.[with#1]",
        "The suite is executed.\n[with#1]",
        "the `suite` is\n   **executed** [with#1]",
        "Well, “the suite is executed” [try#1, with#1].",
        "The suite is executed [try#1][with#1].",
        "The suite [with#1] is executed.",
        "The suite is executed. [with#1] and so on",
        "One. [try#1] The suite is executed. [with#1] Two.",
        "- one\n- the suite is executed [with#1]\n- two",
    ],
)
def test_a_fact_counts_when_its_sentence_cites_a_passage_that_states_it(answer: str):
    assert answer_score(QUESTION, answer, DOCUMENTS) == 0.5


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The suite is executed.",
        "The suite is executed [try#1].",
        "The suite is executed [with#9].",
        "The suite is executed (with#1).",
        "The suite is executed. Another thing [with#1].",
        "[with#1] Hello. The suite is executed.",
        "- the suite is executed\n- another thing [with#1]",
        "The suite is executed\n\n[with#1] begins another paragraph.",
        "The suite is executedly so [with#1].",
        "The suite runs [with#1].",
    ],
)
def test_a_fact_without_its_proof_counts_nothing(answer: str):
    assert answer_score(QUESTION, answer, DOCUMENTS) == 0.0


def test_each_fact_needs_a_proof_of_its_own():
    answer = "The suite is executed. [with#1] Otherwise an exception is suppressed. [with#2]"
    assert answer_score(QUESTION, answer, DOCUMENTS) == 1.0
    assert answer_score(QUESTION, answer.replace("with#2", "with#1"), DOCUMENTS) == 0.5


def test_brackets_that_cite_nothing_belong_to_the_text():
    question = Question("q", "?", ("augassign",), ("writes the result back to a[i]",))
    document = RetrievedDocument("augassign#2", 'it writes the result back to "a[i]".')
    assert answer_score(question, "It writes the result back to a[i] [augassign#2].", [document]) == 1.0


def test_sentences_end_at_stops_paragraphs_and_bullets_but_not_at_abbreviations():
    answer = "Lists, e.g. these, work. [a#1] Do they?\n\nYes\n- one\n- two"
    assert split_sentences(answer) == ("Lists, e.g. these, work. [a#1]", "Do they?", "Yes", "- one", "- two")


@given(st.text())
def test_normalising_twice_changes_nothing(text: str):
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(alphabet="ab.!? \n-[#1]"))
def test_splitting_into_sentences_loses_no_word(text: str):
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.text(), st.lists(st.sampled_from(["with", "try", "for"])))
def test_scores_are_shares(answer: str, topics: list[str]):
    assert 0.0 <= source_recall(QUESTION, topics) <= 1.0
    assert 0.0 <= answer_score(QUESTION, answer, DOCUMENTS) <= 1.0
