"""What the model says to a user's own agent: each tool once, answers from results, and protocols in words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.scripted_model import Conversation, Reply, reply_to
from docmind_lab.services.scripted_model.decisions import decide, decide_boolean, options_in
from docmind_lab.services.scripted_model.schema_rules import text_matching

QUESTION = "What is 12 times 3?"


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


MULTIPLY = tool("multiply", a={"type": "integer"}, b={"type": "integer"})
SEARCH = tool("search", query={"type": "string"})
NOTE = tool("Finding", summary={"type": "string"})
HAND_OVER = [tool("transfer_to_flights"), tool("transfer_to_hotels")]


def reply(*later: dict[str, Any], tools: list[Any] | None = None, text: str = QUESTION, **asked: Any) -> Reply:
    messages = [{"role": "user", "content": text}, *later]
    return reply_to(Conversation.from_request({"messages": messages, "tools": tools or [], **asked}))


def called(*names: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name}} for name in names]}


def result(text: str, call_id: str = "c") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def names_of(said: Reply) -> list[str]:
    return [call.name for call in said.tool_calls]


def test_independent_tools_are_called_in_one_reply_with_arguments_of_their_types() -> None:
    said = reply(tools=[MULTIPLY, SEARCH])
    assert [(call.name, dict(call.arguments)) for call in said.tool_calls] == [
        ("multiply", {"a": 12, "b": 3}),
        ("search", {"query": QUESTION}),
    ]


def test_tools_are_called_one_at_a_time_where_parallel_calls_are_not_allowed() -> None:
    assert names_of(reply(tools=[MULTIPLY, SEARCH], parallel_tool_calls=False)) == ["multiply"]
    later = [called("multiply"), result("36")]
    assert names_of(reply(*later, tools=[MULTIPLY, SEARCH], parallel_tool_calls=False)) == ["search"]


TEXT, OPTIONAL = {"type": "string"}, {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
KEPT = {"type": "string", "default": "harbour"}
LISTED = {"type": "string", "description": "The type of chart: 'bar', 'line', 'pie'."}


@pytest.mark.parametrize(
    ("name", "properties", "required", "is_forced", "given"),
    [
        # What has a default keeps it; an empty one is none, and a schema may be just true.
        ("plot", {"kept": KEPT, "query": {**TEXT, "default": ""}, "any": True, "chart": LISTED}, [], False, "qac"),
        # What need not be given is left out, but where the tool is forced by its name.
        ("look_up", {"kept": KEPT, "query": TEXT, "remark": TEXT}, ["query"], True, "qr"),
        ("look_up", {"kept": KEPT, "query": TEXT, "remark": TEXT}, ["query"], False, "q"),
        # A schema of an answer gets what may be left out, but no error.
        ("ExtractedClaim", {"policy": OPTIONAL, "error_message": OPTIONAL, "what": TEXT}, ["what"], True, "pw"),
    ],
)
def test_a_tool_is_given_the_arguments_that_it_asks_for(
    name: str, properties: dict[str, Any], required: list[str], is_forced: bool, given: str
) -> None:
    parameters = {"type": "object", "properties": properties, "required": required}
    offered = {"type": "function", "function": {"name": name, "parameters": parameters}}
    choice = {"tool_choice": {"type": "function", "function": {"name": name}}} if is_forced else {}
    (call,) = reply(tools=[offered], **choice).tool_calls
    assert {argument[0] for argument in call.arguments} == set(given)
    assert call.arguments.get("chart", "bar") in {"bar", "line", "pie"}
    assert isinstance(call.arguments.get("policy", ""), str)


def test_a_result_that_is_no_sentence_is_passed_on() -> None:
    assert reply(called("multiply"), result("36"), tools=[MULTIPLY]) == Reply("36")


def test_a_tool_named_as_a_class_is_the_last_one() -> None:
    assert names_of(reply(tools=[NOTE, SEARCH], tool_choice="required")) == ["search"]
    said = reply(called("search"), result("36"), tools=[NOTE, SEARCH], tool_choice="required")
    assert [(call.name, dict(call.arguments)) for call in said.tool_calls] == [("Finding", {"summary": "36"})]


def test_a_named_tool_is_called_and_with_none_allowed_no_tool_is() -> None:
    named = {"type": "function", "function": {"name": "search"}}
    assert names_of(reply(tools=[MULTIPLY, SEARCH], tool_choice=named)) == ["search"]
    assert names_of(reply(tools=[MULTIPLY, SEARCH], tool_choice="none")) == []


def test_an_agent_that_can_hand_over_does_its_own_work_first() -> None:
    tools = [*HAND_OVER, SEARCH]
    assert names_of(reply(tools=tools)) == ["search"]
    assert names_of(reply(called("search"), result("36"), tools=tools)) == ["transfer_to_flights"]


# ---- protocols in words

REACT = """Answer the following questions as best you can. You have access to the following tools:
search(query: str), add(a, b)
Use the following format:
Question: the input question you must answer
Thought: you should always think about what to do
Action: the action to take, should be one of [search, add]
Action Input: the input to the action
Observation: the result of the action
Final Answer: the final answer to the original input question
Begin!

Question: Why?
Thought:"""


def test_a_react_prompt_gets_each_action_once_and_then_the_final_answer() -> None:
    first = reply(text=REACT).text
    assert "Action: search\nAction Input: Why?" in first
    second = reply(text=f"{REACT} {first}\nObservation: because\nThought:").text
    assert "Action: add" in second
    third = reply(text=f"{REACT} {first}\nObservation: because\nThought: {second}\nObservation: 42\nThought:").text
    assert third.endswith("Final Answer: 42")


# ---- decisions


def at(step: str, *messages: dict[str, Any], seed: int = 1) -> Conversation:
    first = {"role": "user", "content": QUESTION}
    return Conversation((first, *messages), key=DrawKey(seed, "judge", step))


def test_a_judge_sends_back_at_one_step_of_a_run_at_the_most() -> None:
    for seed in range(200):
        verdicts = [
            decide_boolean(at(f"{step}.0.{call}", seed=seed), "approved") for step in range(20) for call in (1, 2)
        ]
        # Each judge could send back once, were it asked at every step.
        assert verdicts.count(False) == 1


@pytest.mark.parametrize(
    ("name", "options", "ends"),
    [
        ("approved", None, True),
        ("needs_revision", None, False),
        # What speaks against a request is not so.
        *((name, None, False) for name in ("is_off_topic", "spam", "injection_detected", "is_invalid")),
        ("grade", ["funny", "not funny"], "funny"),
        ("binary_score", ["yes", "no"], "yes"),
        ("needs_search", ["yes", "no"], "no"),
        ("verdict", ["revise", "accept"], "accept"),
    ],
)
def test_a_client_that_does_not_say_its_step_is_never_sent_back(name: str, options: Any, ends: Any) -> None:
    one = at("4")
    assert (decide_boolean(one, name) if options is None else decide(one, name, options)) == ends


def test_options_are_chosen_in_their_order_and_then_the_end() -> None:
    options = ["writer", "coder", "FINISH"]
    spoken: list[dict[str, Any]] = []
    chosen = []
    for _ in range(3):
        chosen.append(decide(at("9", *spoken), "next", options))
        spoken.append({"role": "user", "name": f"{chosen[-1]}_agent", "content": "Done."})
    assert chosen == options


def test_a_worker_that_is_never_seen_does_not_keep_a_supervisor_going() -> None:
    spoken = [{"role": "user", "name": "writer", "content": "Done."}] * 40
    assert decide(at("9", *spoken), "next", ["writer", "coder", "FINISH"]) == "FINISH"


@pytest.mark.parametrize(
    ("description", "options"),
    [
        ("Documents are relevant to the question, 'yes' or 'no'", ("yes", "no")),
        ("One of (accept|revise)", ("accept", "revise")),
        ("The user's question", ()),
        ("The 'name' of it", ()),
    ],
)
def test_options_are_read_off_a_description(description: str, options: tuple[str, ...]) -> None:
    assert options_in(description) == options


@pytest.mark.parametrize("pattern", [r"^\d{3}-\d{2}$", r"[A-F]+\.txt", r"(cat|dog)s?", r"^.{5,7}$", r"^(?!x)[a-z]\w*$"])
def test_a_text_of_a_pattern_matches_it(pattern: str) -> None:
    for seed in range(20):
        text = text_matching(pattern, DrawKey(seed, "", "").uniform)
        assert re.search(pattern, text), text


@pytest.mark.parametrize(
    ("pattern", "shortest", "text"),
    [
        ("^[a-z]+$", 50, "[a-z]{50}"),
        ("^[a-z]+$", 500, "[a-z]{500}"),
        # The order of a set of characters is not the same in every process, and the text is.
        (r'^[^"\W]{12}[\w-]\W$', 0, "LCFNnWotFEFjz-"),
        # Expressions of other languages.
        (r"^\p{L}-\d$", 0, "a-[0-9]"),
        (r"^(?<year>[12]{4})$", 0, "[12]{4}"),
        (r"^(a|b)\1$", 0, "aa|bb"),
    ],
)
def test_a_text_of_a_pattern_is_as_long_as_is_asked_for_and_the_same_everywhere(
    pattern: str, shortest: int, text: str
) -> None:
    assert re.fullmatch(text, text_matching(pattern, DrawKey(7, "", "").uniform, shortest))


@pytest.mark.parametrize(
    ("pattern", "said"), [("[", r"'\[' cannot be read"), ("a++b", "cannot be read"), ("(a{60000}){60000}", "too long")]
)
def test_a_pattern_that_no_text_is_written_for_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        text_matching(pattern, DrawKey(7, "", "").uniform)


def test_the_numbers_of_an_example_are_not_exceeded() -> None:
    text = 'Answer in this JSON format: {"best": 0, "steps": 4, "share": 0.9, "price": 12.5}'
    for seed in range(20):
        conversation = Conversation.from_request({"messages": [{"role": "user", "content": text}]})
        said = json.loads(reply_to(replace(conversation, key=DrawKey(seed, "assistant", "0"))).text)
        assert said["best"] == 0
        assert 1 <= said["steps"] <= 4
        assert 0 <= said["share"] <= 1
        assert 0 <= said["price"] <= 12.5


def test_a_loop_that_must_call_tools_ends_though_its_nodes_speak_as_the_user() -> None:
    tools = [tool("Plan", text={"type": "string"}), tool("Opening", text={"type": "string"}), tool("FinishReport")]
    asked = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    messages: list[dict[str, Any]] = []
    names = []
    while len(names) < 9 and "FinishReport" not in names:
        names += names_of(reply(*messages, **asked))
        messages += [called(names[-1]), result("done"), {"role": "user", "content": f"{names[-1]} is done. Go on."}]
    assert names == ["Plan", "Opening", "FinishReport"]
