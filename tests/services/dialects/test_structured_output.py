"""Structured output: what the model gives is valid under the schema, and a loop over it ends."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from own_runs import simulated
from pydantic import BaseModel, Field

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.scripted_model import Conversation
from docmind_lab.services.scripted_model.schema_values import value_for

QUESTION = "Compare the quoll with the wombat. Which of 3 animals hunts at night, and when?"
# Typical latencies for some dozens of calls.
AMPLE_S = 600.0


def asked(step: str = "1.0.1", seed: int = 7, text: str = QUESTION) -> Conversation:
    return Conversation(({"role": "user", "content": text},), key=DrawKey(seed, "judge", step))


# ---- values under a schema

NAMES = st.sampled_from(["query", "name", "score", "is_valid", "items", "path", "when", "n"])
INTEGERS = st.builds(
    lambda low, width, step: {"type": "integer", "minimum": low, "maximum": low + width + step, "multipleOf": step},
    st.integers(-50, 50),
    st.integers(0, 30),
    st.integers(1, 7),
)
NUMBERS = st.builds(
    lambda low, width: {"type": "number", "exclusiveMinimum": low, "maximum": low + width},
    st.floats(-50, 50),
    st.floats(0.5, 20),
)
TEXTS = st.one_of(
    st.just({"type": "string"}),
    st.builds(
        lambda short, more: {"type": "string", "minLength": short, "maxLength": short + more},
        st.integers(0, 300),
        st.integers(0, 20),
    ),
    st.sampled_from(["date", "date-time", "email", "uri", "uuid", "ipv4", "time"]).map(
        lambda form: {"type": "string", "format": form}
    ),
    st.sampled_from(
        [
            r"^[A-Z]{3}-\d{4}$",
            r"^(yes|no|maybe)$",
            r"^\+?[0-9]{1,3}[ -]\d{3,}$",
            r"[a-z_][a-z0-9_]*",
            r"^(?:a|b)+c?$",
            r"^\w+@\w+\.(com|org)$",
            r"^[^\s]+$",
            r"^#[0-9a-fA-F]{6}$",
        ]
    ).map(lambda pattern: {"type": "string", "pattern": pattern}),
)
PLAIN = st.one_of(
    INTEGERS,
    NUMBERS,
    TEXTS,
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.lists(st.sampled_from(["a", "b", "FINISH", 3, None]), min_size=1, max_size=3, unique=True).map(
        lambda options: {"enum": options}
    ),
    st.sampled_from([{"const": 5}, {"const": "x"}, {"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/tree"}]),
)


def _object(fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in required if name in fields],
        "additionalProperties": False,
    }


SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.builds(_object, st.dictionaries(NAMES, inner, max_size=4), st.lists(NAMES, max_size=4, unique=True)),
        st.builds(
            lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
            inner,
            st.integers(0, 4),
            st.integers(0, 3),
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        inner.map(lambda each: {"anyOf": [{"type": "null"}, each]}),
        inner.map(lambda each: {"allOf": [each, {"description": "one of several"}]}),
    ),
    max_leaves=8,
)
DEFINITIONS = {
    "leaf": _object({"title": {"type": "string"}, "n": {"type": "integer"}}, ["title", "n"]),
    "tree": _object(
        {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        ["name", "children"],
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("file_path", "Read /data/a-1/in.json, please.", "/data/a-1/in.json"),
        ("filename", "What does notes.md say?", "notes.md"),
        ("path", "See https://example.org/a/page for more", "notes.txt"),
        ("url", "Summarise https://example.org/a/page.", "https://example.org/a/page"),
        ("url", "Summarise the page", "https://example.com/"),
        ("order_id", "Where is my order A-17, which I paid on 3 May?", "A-17"),
        ("orderId", "Cancel order 12 of the customer.", "12"),
        ("invoice_number", "Send me invoice no. 2026-081.", "2026-081"),
        ("ticket_id", "My ticket is open.", "1"),
        ("member_id", "Which of 3 is it?", "researcher"),
        ("recipient_email", "Tell them.", "user@example.com"),
        ("start_date", "Which files are there?", "2026-01-15"),
    ],
)
def test_an_argument_that_stands_for_one_thing_is_what_the_question_shows_of_it(
    name: str, text: str, value: str
) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    assert value_for(schema, asked(text=text)) == {name: value}


def test_a_text_that_is_no_sentence_is_bounded() -> None:
    answer = " ".join(["tide #1: high"] * 400)
    assert len(value_for({"type": "string"}, asked(), name="subtotal", answer=answer).split()) <= 50


@given(SCHEMAS, st.integers(0, 1000))
@settings(max_examples=100)
def test_a_value_is_valid_under_its_schema(schema: dict[str, Any], seed: int) -> None:
    import jsonschema  # takes two seconds in each process that only collects the tests

    whole = {**schema, "$defs": DEFINITIONS}
    value = value_for(whole, asked(seed=seed))
    jsonschema.validate(value, whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    assert value == value_for(whole, asked(seed=seed)), "the same call gets the same value"
    json.dumps(value)


class Address(BaseModel):
    street: str = Field(min_length=3, max_length=40)
    zip_code: str = Field(pattern=r"^\d{5}$")


class Person(BaseModel):
    """A person, with what schemas in use have."""

    name: str
    age: int = Field(ge=18, le=30)
    height_m: float = Field(gt=1.4, lt=1.5)
    email: str | None
    address: Address
    others: list[Address] = Field(min_length=2, max_length=3)
    kind: Literal["a", "b"]
    either: Address | int
    scores: dict[str, float]
    boss: Person | None = None


@pytest.mark.parametrize("seed", range(20))
def test_a_value_is_read_by_the_pydantic_model_of_its_schema(seed: int) -> None:
    Person.model_validate(value_for(Person.model_json_schema(), asked(seed=seed)))


def test_texts_and_numbers_are_taken_from_the_request_and_the_rest_is_drawn() -> None:
    kinds = {"query": "string", "reason": "string", "a": "integer"}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}
    value = value_for(schema, asked())
    assert (value["query"], value["a"]) == (QUESTION, 3)
    assert value["reason"] in QUESTION
    assert len({value_for({"enum": list(range(100))}, asked(seed=seed)) for seed in range(30)}) > 15


# ---- loops


class Route(BaseModel):
    """Who is next."""

    next: Literal["researcher", "coder", "FINISH"]


class Verdict(BaseModel):
    is_sufficient: bool
    binary_score: str = Field(description="Whether it is grounded, 'yes' or 'no'")


class Drafts(TypedDict):
    question: str
    drafts: Annotated[list[str], operator.add]


def _model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", api_key="unused", **options)


@pytest.mark.parametrize(
    ("method", "shows"),
    [
        ("json_schema", "name"),
        ("function_calling", "name"),
        ("json_mode", "name"),
        ("json_schema", "message"),
        ("json_schema", "nothing"),
    ],
)
def test_a_supervisor_by_structured_output_visits_each_worker_once_and_ends(method: Any, shows: str) -> None:
    router = _model().with_structured_output(Route, method=method)

    def supervise(state: MessagesState) -> Command[Any]:
        system = 'You choose the next worker. Respond in JSON such as {"next": "researcher or coder or FINISH"}.'
        chosen: Any = router.invoke([("system", system), *state["messages"]])
        return Command(goto=END if chosen.next == "FINISH" else chosen.next)

    def worker(name: str) -> Any:
        def work(state: MessagesState) -> dict[str, Any]:
            spoken = HumanMessage("It is done.", name=name if shows == "name" else None)
            return {"messages": [] if shows == "nothing" else [spoken]}

        return work

    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", supervise, destinations=("researcher", "coder", END))
    for name in ("researcher", "coder"):
        graph.add_node(name, worker(name))
        graph.add_edge(name, "supervisor")
    graph.add_edge(START, "supervisor")
    (measured,) = simulated(graph.compile(), alternatives="unguarded", decision_timeout_s=AMPLE_S)
    assert measured.run.outcome == "answered"
    assert measured.run.llm_calls == 3, "one for each worker, and one that ends it"


@pytest.mark.parametrize("field", ["is_sufficient", "binary_score"])
@pytest.mark.parametrize("seed", range(3))
def test_a_judge_sends_a_draft_back_once_at_the_most(field: str, seed: int) -> None:
    judge = _model().with_structured_output(Verdict)

    def write(state: Drafts) -> dict[str, Any]:
        return {"drafts": [str(_model().invoke(state["question"]).content)]}

    def decide(state: Drafts) -> str:
        verdict: Any = judge.invoke(f"Is this draft good enough? {state['drafts'][-1]}")
        return END if getattr(verdict, field) in (True, "yes") else "write"

    graph = StateGraph(Drafts)
    graph.add_node("write", write)
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", decide, ["write", END])
    (measured,) = simulated(
        graph.compile(), alternatives="unguarded", decision_timeout_s=AMPLE_S, given={"question": QUESTION}, seed=seed
    )
    assert measured.run.outcome == "answered"
    assert measured.run.llm_calls in (2, 4)


# ---- LangChain's ways to ask for it


def look_up(query: str, limit: int, units: Literal["km", "miles"]) -> str:
    """Look something up."""
    assert isinstance(limit, int)
    return f"The quoll hunts at night, says {query} in {limit} {units}."


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Finding(BaseModel):
    """What was found."""

    summary: str
    confidence: float = Field(ge=0, le=1)


MODELS = {
    "chat": lambda: _model(),
    "responses": lambda: _model(use_responses_api=True),
    "anthropic": lambda: ChatAnthropic(model="some-claude", api_key="unused"),
}


@pytest.mark.parametrize(
    ("model", "strategy"),
    [("chat", ProviderStrategy), ("chat", ToolStrategy), ("responses", ProviderStrategy), ("anthropic", ToolStrategy)],
)
def test_an_agent_calls_its_tools_once_and_then_answers_in_its_response_format(model: str, strategy: Any) -> None:
    agent = create_agent(MODELS[model](), tools=[look_up, add], response_format=strategy(Finding))
    (measured,) = simulated(agent, alternatives="unguarded", decision_timeout_s=AMPLE_S)
    assert measured.run.outcome == "answered"
    tools = [call.call_id for call in measured.calls if call.kind == "tool" and call.seen_from == "client"]
    assert (measured.run.llm_calls, len(tools)) == (2, 2), "both tools in one reply, then the answer"
