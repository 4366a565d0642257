"""Questions to an agent, and how its result is read."""

from __future__ import annotations

import types
from typing import Any

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.workloads.agents.agent import text_of
from docmind_lab.workloads.agents.load import as_question, load_agent


def thing(**attributes: Any) -> Any:
    return types.SimpleNamespace(**attributes)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("a text", "a text"),
        (thing(text="a"), "a"),
        (thing(content="a"), "a"),
        (thing(output="a"), "a"),
        (thing(final_output="a"), "a"),
        (thing(answer="a"), "a"),
        (thing(response=thing(content="a")), "a"),
        (thing(raw="a"), "a"),
        ({"answer": "a"}, "a"),
        (thing(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (thing(text=lambda: "never called", output="a"), "a"),
        (42, "42"),
        (None, ""),
    ],
)
def test_the_text_of_a_result_is_read_from_the_first_attribute_that_has_one(result: Any, text: str) -> None:
    assert text_of(result) == text


def takes(question: str, depth: int = 1) -> str:
    return question


@pytest.mark.parametrize(
    ("item", "question", "keywords", "rest"),
    [
        ("why?", "why?", {}, {}),
        ({"question": "why?"}, "why?", {}, {}),
        ({"input": "why?"}, "why?", {}, {}),
        ({"question": "why?", "depth": 2}, "why?", {"depth": 2}, {}),
        ({"input": {"question": "why?", "depth": 2}, "gold": ["x"]}, "why?", {"depth": 2}, {"gold": ["x"]}),
        ({"question": "why?", "id": "q1"}, "why?", {}, {"id": "q1"}),
    ],
)
def test_a_question_is_a_text_or_a_mapping_with_keywords_of_the_function(
    item: Any, question: str, keywords: dict[str, Any], rest: dict[str, Any]
) -> None:
    made = as_question(load_agent(takes), item, "line 1")
    assert made == {"input": {"question": question, "keywords": keywords}, **rest}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"prompt": "why?"}, "line 1: a question has the key question or input; this has prompt"),
        ({"question": "why?", "tone": 1}, "line 1: the agent takes no argument 'tone'; it takes question, depth"),
        (["why?"], "line 1: a question is a text, not a list"),
        ("  ", "line 1: the question is empty; write one"),
        ("why?", "line 1: the agent needs the argument 'depth'; add the key to the input"),
    ],
)
def test_an_item_that_is_no_question_is_named_with_what_would_fit(item: Any, message: str) -> None:
    def needs(question: str, depth: int) -> str:
        return question

    with pytest.raises(ConfigurationError) as refused:
        as_question(load_agent(needs), item, "line 1")
    assert str(refused.value) == message
