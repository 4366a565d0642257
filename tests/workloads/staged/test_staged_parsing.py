"""The parser on texts whose true calls are known: by hand, and by random damage."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from damage_operators import OPERATORS, Damaged, damaged_texts
from langchain_core.messages import AIMessage

from docmind_lab.systems.staged.parsing import ToolCall, parse_message, parse_text, parse_tool_calls

SEED = 20_251_011
CORPUS = tomllib.loads((Path(__file__).parent / "malformed_tool_calls.toml").read_text(encoding="utf-8"))
CALLS = {name: tuple(json.loads(call)) for name, call in CORPUS["calls"].items()}


def found_in(text: str, finish_reason: str) -> tuple[tuple[str, dict], ...]:
    return tuple((call.name, dict(call.arguments)) for call in parse_tool_calls(text, finish_reason))


def exact_shares(made: list[tuple[str, Damaged]]) -> dict[str, float]:
    """Operator → share of its texts that were read exactly; worst first."""
    right, all_of = Counter(), Counter()
    for name, damaged in made:
        all_of[name] += 1
        right[name] += found_in(damaged.text, damaged.finish_reason) == damaged.expected
    return dict(sorted(((name, right[name] / all_of[name]) for name in all_of), key=lambda item: item[1]))


def altered(made: list[tuple[str, Damaged]]) -> list[str]:
    """Texts of which a last call was read that nobody had made. The whole truth is what was there before the cut."""
    wrong = []
    for _, damaged in made:
        found = found_in(damaged.text, damaged.finish_reason)
        if found and damaged.expected[: len(found)] != found:
            wrong.append(damaged.text)
    return wrong


def test_at_least_95_percent_of_the_corpus_by_hand_are_read_exactly(record_property):
    wrong = [
        case
        for case in CORPUS["case"]
        if found_in(case["text"], case.get("finish_reason", "stop")) != tuple(CALLS[name] for name in case["expected"])
    ]
    record_property("worst_category", Counter(case["category"] for case in wrong).most_common(1))
    assert len(wrong) <= 0.05 * len(CORPUS["case"]), wrong


@pytest.mark.parametrize("count", [20 * len(OPERATORS), pytest.param(10_000, marks=pytest.mark.full)])
def test_at_least_95_percent_of_damaged_texts_are_read_exactly_and_no_cut_call_is_made_up(count, record_property):
    made = damaged_texts(count, SEED)
    shares = exact_shares(made)
    record_property("worst_category", next(iter(shares.items())))
    assert sum(shares.values()) / len(shares) >= 0.95
    cuts = ("cut and said", "cut in silence", "cut inside a fence", "closers missing")
    ends = [item for item in made if item[0] in cuts]
    assert len(ends) > count // 8
    assert altered(ends) == []


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
