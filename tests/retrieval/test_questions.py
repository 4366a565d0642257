"""How recall and answers are scored."""

from __future__ import annotations

import math

import pytest

from docmind_lab.systems.base.answer_scores import answer_score, source_recall, split_sentences
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.results import RetrievedDocument

QUESTION = Question("q", "?", ("with", "try"), ("the suite is executed", "an exception is suppressed"))
DOCUMENTS = (
    RetrievedDocument("with#1", 'First "the suite"\n   is executed. Then more.'),
    RetrievedDocument("with#2", "If true, an *exception* is suppressed."),
    RetrievedDocument("try#1", "Nothing of the kind."),
)


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
    sentences = split_sentences(answer)
    assert "".join("".join(sentences).split()) == "".join(answer.split()), "no word is lost"
    assert sentences == ("Lists, e.g. these, work. [a#1]", "Do they?", "Yes", "- one", "- two")
