"""What a graph is asked, and the line that says what does not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from own_runs import QUESTION, graph_of, simulated
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.own import read_inputs
from docmind_lab.systems.own.inputs import fingerprint


class Report(TypedDict, total=False):
    question: str
    limit: int
    tags: list[str]


class Checked(BaseModel):
    question: str
    limit: int = 3


class Conversation(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    mood: str = ""

    @field_validator("mood")
    @classmethod
    def known(cls, mood: str) -> str:
        if mood == "odd":
            raise LookupError("no such mood")
        return mood


def graph_over(schema: Any) -> Any:
    return graph_of(schema=schema, only=lambda state: {})


TALK, REPORT, CHECKED = graph_over(MessagesState), graph_over(Report), graph_over(Checked)


def test_a_text_is_the_users_message_where_there_are_messages() -> None:
    (asked,) = read_inputs(TALK, [QUESTION])
    (message,) = asked.given["messages"]
    assert isinstance(message, HumanMessage)
    assert message.text == QUESTION


def test_an_input_is_checked_as_the_first_node_sees_it_after_the_reducers() -> None:
    graph = graph_over(Conversation)
    (asked,) = read_inputs(graph, [{"messages": [QUESTION]}])
    assert asked.given == {"messages": [QUESTION]}
    with pytest.raises(ConfigurationError, match=r"inputs item 1: messages: "):
        read_inputs(graph, [{"messages": [{"content": "of nobody"}]}])


def test_an_exception_of_the_schemas_own_validator_is_one_line() -> None:
    with pytest.raises(ConfigurationError, match="inputs item 1: the graph's input schema: LookupError: no such mood"):
        read_inputs(graph_over(Conversation), [{"messages": [QUESTION], "mood": "odd"}])


def test_each_line_of_a_file_is_one_input_and_empty_lines_are_none(tmp_path: Path) -> None:
    path = tmp_path / "inputs.jsonl"
    # With a byte order mark, and a line separator of Unicode's in a text, as other programs write them.
    lines = [{"question": "a\u2028b"}, {"question": "b", "limit": 2}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text(f"\ufeff{text}\n\n", encoding="utf-8")
    assert [dict(asked.given) for asked in read_inputs(REPORT, path)] == lines
    assert [asked.id for asked in read_inputs(REPORT, str(path))] == ["001", "002"]


def test_an_input_may_bring_its_name_and_its_gold() -> None:
    (asked,) = read_inputs(TALK, [{"input": "why?", "gold": ["because"], "id": "q"}])
    assert (asked.id, asked.gold_facts, asked.given["messages"][0].text) == ("q", ("because",), "why?")


def test_equal_inputs_have_one_name_and_others_another() -> None:
    one, same, other = (read_inputs(REPORT, [{"question": text}]) for text in ("a", "a", "b"))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


@pytest.mark.parametrize(
    ("graph", "lines", "said"),
    [
        (REPORT, '{"question": "a"}\n{"query": "b"}', r"line 2: the graph's input has no key 'query'; it has question"),
        (REPORT, '{"limit": "3"}', r'line 1: limit must be an integer, not "3"'),
        (REPORT, '{"limit": true}', r"line 1: limit must be an integer, not true"),
        (REPORT, '"a text"', r"line 1: a text fits an input with messages; this graph's has question, limit, tags"),
        (REPORT, "[1]", r"line 1: an input is a JSON object or a text, not a list"),
        (REPORT, '{"question": ', r"inputs\.jsonl, line 1 is not JSON"),
        (REPORT, "\n", r"there are no inputs"),
        (CHECKED, '{"limit": 2}', r"line 1: question: Field required"),
        (TALK, '{"input": "a", "gold": "b"}', r"line 1: gold must be a list of texts"),
        (TALK, '{"input": "a", "id": "x"}\n{"input": "b", "id": "x"}', r"two inputs have the id 'x'"),
    ],
)
def test_what_does_not_fit_is_named_by_line_and_key_in_one_line(
    graph: Any, lines: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said) as raised:
        read_inputs(graph, path)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_and_a_single_input_are_told() -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.jsonl cannot be read \(No such file"):
        read_inputs(REPORT, "nowhere.jsonl")
    with pytest.raises(ConfigurationError, match="put the one into brackets"):
        read_inputs(REPORT, {"question": "a"})


def test_a_state_that_is_a_plain_dict_takes_any_key() -> None:
    builder: Any = StateGraph(dict)
    graph = builder.add_node("look", lambda state: {**state, "seen": True}).add_edge(START, "look").compile()
    (measured,) = simulated(graph, alternatives="A", decision_timeout_s=5.0, given={"task": "tides", "steps": []})
    assert measured.run.outcome == "answered"


class Trip(BaseModel):
    city: str
    days: int = 1


@dataclass
class Traveller:
    name: str


class Typed(TypedDict, total=False):
    trip: Trip | None
    travellers: list[Traveller]
    turns: list[BaseMessage]
    plain: dict[str, Any]


def test_what_a_state_declares_as_an_object_becomes_one() -> None:
    line = {
        "trip": {"city": "Delft", "days": 2},
        "travellers": [{"name": "Ada"}],
        "turns": [{"role": "user", "content": "Where?"}, {"type": "ai", "content": "There."}],
        "plain": {"city": "Delft"},
    }
    (made,) = read_inputs(graph_over(Typed), [line])
    assert made.given["trip"] == Trip(city="Delft", days=2)
    assert made.given["travellers"] == [Traveller("Ada")]
    assert [type(turn) for turn in made.given["turns"]] == [HumanMessage, AIMessage]
    assert made.given["plain"] == {"city": "Delft"}


@pytest.mark.parametrize("line", [{"trip": {"town": "Delft"}}, {"trip": None}, {"turns": [1, 2]}])
def test_what_makes_no_such_object_is_given_as_it_stands(line: dict[str, Any]) -> None:
    (made,) = read_inputs(graph_over(Typed), [line])
    assert made.given == line
