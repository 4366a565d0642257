"""JSON that a prompt asks for in prose: what the simulated model answers fits what was shown."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.prompts import PromptTemplate
from pydantic import BaseModel, Field

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.scripted_model.any_agent import reply_of_assistant
from docmind_lab.services.scripted_model.conversation import Conversation, Reply
from docmind_lab.services.scripted_model.shown_json import example_shown


def reply(prompt: str, seed: int = 7, **asked: Any) -> Reply:
    messages = ({"role": "system", "content": prompt}, {"role": "user", "content": "What is a tide?"})
    return reply_of_assistant(Conversation(messages, key=DrawKey(seed, "grader", "1"), **asked))


def replied(prompt: str, seed: int = 7) -> str:
    return reply(prompt, seed).text


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: types_of(each) for name, each in value.items()}
    return [types_of(value[0])] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize(
    ("prompt", "types"),
    [
        ('Grade it. Reply with JSON: {"score": int, "reason": str}', {"score": "int", "reason": "str"}),
        ('Respond ONLY with JSON: "a" (integer), "b" (list of texts) and `c`.', {"a": "int", "b": ["str"], "c": "str"}),
        ("Return a JSON array of strings.", ["str"]),
        ('Return ONLY a JSON array of file names (no ending). Example: ["tidal_rules"]', ["str"]),
        ('Return a JSON list of objects, each with "title" and "url".', [{"title": "str", "url": "str"}]),
        ('Answer as JSON: {{"x": ..., "y": [1, 2]}}', {"x": "str", "y": ["int"]}),
        (
            'Respond in JSON:\n{\n  "ok": true/false,  // or\n  "tags": ["..."],\n}',
            {"ok": "bool", "tags": ["str"]},
        ),
        ('Return JSON like {"steps": [{"id": 1, "task": "..."}, ...]}', {"steps": [{"id": "int", "task": "str"}]}),
        ("Return a JSON object.", {"answer": "str"}),
        (
            'Respond with ONLY this JSON:\n{\n"score": <integer 0-10>,\n"done": <true if score >= 6, else false>\n}',
            {"score": "int", "done": "bool"},
        ),
        ('Return ONLY valid JSON:\n{"skills": string[], "years": number[],}', {"skills": ["str"], "years": ["float"]}),
        ('Reply in JSON format: {"risk": <float between 0 and 1>, "why": "<text>"}', {"risk": "float", "why": "str"}),
        ('Return JSON: [{"a": str}, ...]', [{"a": "str"}]),
        ('Return JSON: {"why": "a short list of reasons", "ok": true|false}', {"why": "str", "ok": "bool"}),
    ],
)
def test_json_is_answered_that_fits_what_is_shown(prompt: str, types: Any) -> None:
    assert {json.dumps(types_of(json.loads(replied(prompt, seed)))) for seed in range(20)} == {json.dumps(types)}


@pytest.mark.parametrize(
    ("prompt", "key", "options"),
    [
        (
            'Respond with JSON: {"a": 1, "kind": "<one of: hate_speech, bias, none>"}',
            "kind",
            {"hate_speech", "bias", "none"},
        ),
        (
            "Give a binary score 'yes' or 'no'.\nProvide the binary score as a JSON with a single key 'score'.",
            "score",
            {"yes", "no"},
        ),
        ('Respond with JSON: {"next": "writer" | "critic" | "FINISH"}', "next", {"writer", "critic", "FINISH"}),
        ('Return JSON: {"score": <integer 1-5>}', "score", {1, 2, 3, 4, 5}),
    ],
)
def test_a_choice_is_one_of_the_options_and_a_number_in_the_range(prompt: str, key: str, options: set[Any]) -> None:
    found = [json.loads(replied(prompt, seed)) for seed in range(20)]
    assert {(each[0] if isinstance(each, list) else each)[key] for each in found} <= options


@pytest.mark.parametrize(
    ("prompt", "asked", "is_guess"),
    [
        ('Reply with JSON: {"score": int}', {}, False),
        ('The JSON schema: {"properties": {"score": {"type": "integer"}}}. Answer in it as JSON.', {}, False),
        ("Answer 'yes' or 'no'.", {}, False),
        ("Answer the question.", {}, False),
        ('Reply with JSON that has "score" and "reason".', {}, True),
        ("Reply in JSON.", {}, True),
        ("Reply with one word: Researcher, Writer, or DONE", {}, False),
        # JSON mode.
        ('Answer in JSON such as {"a": 1}.', {"output_schema": {}}, False),
        ("Answer in JSON.", {"output_schema": {}}, True),
    ],
)
def test_a_reply_says_whether_its_shape_is_a_guess(prompt: str, asked: dict[str, Any], is_guess: bool) -> None:
    assert reply(prompt, **asked).is_guess is is_guess


@pytest.mark.parametrize(
    "prompt",
    ["Explain what JSON is.", "Which parser reads JSON fastest?", 'The set {"a": 1} is shown.', "Use {name: value}."],
)
def test_prose_is_answered_where_no_json_is_asked_for(prompt: str) -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(replied(prompt))


class Source(BaseModel):
    title: str
    url: str = Field(description="where it is")


class Report(BaseModel):
    """A report with everything that schemas have."""

    verdict: Literal["accept", "revise"]
    score: int = Field(ge=1, le=10)
    share: float = Field(ge=0, le=1)
    sources: list[Source] = Field(min_length=1, max_length=3)
    note: str | None = None


@pytest.mark.parametrize(
    "parser", [PydanticOutputParser(pydantic_object=Report), JsonOutputParser(pydantic_object=Report)]
)
def test_langchains_format_instructions_are_followed(parser: Any) -> None:
    template = PromptTemplate.from_template(
        "Review it.\n{format}\nThe draft: {draft}", partial_variables={"format": parser.get_format_instructions()}
    )
    for seed in range(20):
        found = parser.parse(replied(template.format(draft='It says {"a": 1}.'), seed))
        Report.model_validate(found if isinstance(found, dict) else found.model_dump())


ODD = ("{" * 5_000, '{"a": ' * 2_000, "[" * 9_000, '{"a' + " " * 9_000, "{a: " + "(" * 5_000, "{a: " + "<" * 5_000)


@pytest.mark.parametrize("text", ODD)
def test_what_nobody_can_read_takes_no_time(text: str) -> None:
    assert (example_shown(f"Return JSON: {text}") or {"type": "object"})["type"] in ("object", "array")


def test_agents_that_write_to_each_other_come_to_an_end() -> None:
    tools = {"send_message": {"properties": {"text": {"type": "string"}}}}
    messages: list[dict[str, Any]] = []
    calls = []
    for turn in range(5):
        messages.append({"role": "user", "content": f"Message {turn} of a colleague."})
        reply = reply_of_assistant(Conversation(tuple(messages), tools=tools))
        calls.append(len(reply.tool_calls))
        made = [{"id": "1", "function": {"name": call.name, "arguments": "{}"}} for call in reply.tool_calls]
        messages.append({"role": "assistant", "content": reply.text, "tool_calls": made})
    assert calls == [1, 1, 1, 0, 0]
    assert messages[-1]["content"]
