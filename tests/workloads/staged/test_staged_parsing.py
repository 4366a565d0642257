"""The parser on texts written by hand, with what each text truly asks for."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from docmind_lab.systems.staged.parsing import ToolCall, parse_message, parse_text, parse_tool_calls

CORPUS = tomllib.loads((Path(__file__).parent / "malformed_tool_calls.toml").read_text(encoding="utf-8"))
CALLS = {name: tuple(json.loads(call)) for name, call in CORPUS["calls"].items()}


def found_in(text: str, finish_reason: str) -> tuple[tuple[str, dict], ...]:
    return tuple((call.name, dict(call.arguments)) for call in parse_tool_calls(text, finish_reason))


def test_every_text_is_read_exactly() -> None:
    wrong = [
        case
        for case in CORPUS["case"]
        if found_in(case["text"], case.get("finish_reason", "stop")) != tuple(CALLS[name] for name in case["expected"])
    ]
    assert wrong == []


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_a_call_that_is_cut_anywhere_is_never_read_from_what_is_left_of_it(finish_reason):
    whole = json.dumps({"name": "create_entity", "arguments": {"name": "Oslo", "population": 717_710}})
    assert [parse_tool_calls(whole[:end], finish_reason) for end in range(len(whole))] == [[]] * len(whole)


def test_of_a_text_that_was_cut_the_last_call_is_left_out_even_if_it_looks_whole():
    first, last = ({"name": "create_entity", "arguments": {"name": name}} for name in ("Oslo", "Bergen"))
    text = f"{json.dumps(first)} and {json.dumps(last)}"
    assert [call.arguments["name"] for call in parse_tool_calls(text)] == ["Oslo", "Bergen"]
    assert [call.arguments["name"] for call in parse_tool_calls(text, "length")] == ["Oslo"]


def test_repaired_calls_are_flagged_and_others_are_not():
    strict, mended = parse_tool_calls(
        "{\"name\": \"f\", \"arguments\": {\"city\": \"Oslo\"}} then {'name': 'g', 'arguments': {'city': 'Bergen'}}"
    )
    assert (strict.repaired, mended.repaired) == (False, True)
    (string,) = parse_tool_calls('{"name": "f", "arguments": "{\\"city\\": \\"Oslo\\",}"}')
    assert string == ToolCall("f", {"city": "Oslo"}, repaired=True)


def test_a_last_call_that_is_left_out_is_told_of_and_an_invalid_one_is_counted():
    assert parse_text('[{"name": "f", "arguments": {"city": "Os').dropped_last
    assert parse_text('[{"name": "f", "arguments": 3}, {"name": "f", "arguments": {}}]').invalid == 1


def test_native_calls_come_first_and_native_ones_with_damaged_arguments_are_mended():
    call = {"name": "f", "args": {"city": "Oslo"}, "id": "1", "type": "tool_call"}
    damaged = {"name": "g", "args": "{'city': 'Bergen',}", "id": "2", "error": None, "type": "invalid_tool_call"}
    cut = {**damaged, "args": '{"city": "Ber'}
    text = '{"name": "h", "arguments": {}}'
    parsed = parse_message(AIMessage(text, tool_calls=[call], invalid_tool_calls=[damaged, cut]))
    assert parsed.calls == (ToolCall("f", {"city": "Oslo"}), ToolCall("g", {"city": "Bergen"}, repaired=True))
    assert parse_message(AIMessage(text)).calls == (ToolCall("h", {}),)
    assert not parse_message(AIMessage(text, response_metadata={"finish_reason": "length"})).calls


def test_ten_thousand_brackets_of_noise_cost_little():
    assert parse_tool_calls("[{" * 10_000) == []
