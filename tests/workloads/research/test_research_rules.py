"""Units that the loop rests on: limits, exit precedence, near-duplicates, keys of items, decisions."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from types import SimpleNamespace

import pytest
from doc_pages import section_of

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.research.exits import EXIT_REASONS
from docmind_lab.systems.research.loop import SourceRun
from docmind_lab.systems.research.research_calls import Accepted, MalformedDecision, NextQuery, Saturation
from docmind_lab.systems.research.research_ledger import ResearchLedger, SearchAttempt, word_jaccard, words_of
from docmind_lab.systems.research.sources import Item, unseen
from docmind_lab.systems.research.tasks import DEFAULT_MAX_QUERIES, Hypothesis, ResearchLimits

# ---- limits


def test_the_defaults_are_those_of_the_architecture():
    limits = ResearchLimits()
    times = (limits.llm_timeout_seconds, limits.max_time_per_source_seconds, limits.max_time_minutes)
    assert times == (180.0, 300.0, 120.0)
    assert not any("task" in name for name in vars(limits))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_queries_per_source", -1),
        ("max_queries_per_source", 2.5),
        ("max_queries_per_source", True),
        ("max_queries_per_source", {"manual": -1}),
        ("max_time_per_source_seconds", -1),
        ("max_time_per_source_seconds", float("nan")),
        ("max_time_minutes", "an hour"),
        ("max_time_minutes", float("inf")),
        ("llm_timeout_seconds", 0),
        ("llm_retries", -1),
        ("max_concurrent_sources", 0),
        ("hypotheses_at_once", 0),
    ],
)
def test_a_limit_that_cannot_hold_is_refused_by_name_with_a_remedy(field, value):
    with pytest.raises(ConfigurationError, match=rf"^{field}.*; try \d"):
        ResearchLimits(**{field: value})


def test_a_limit_for_a_source_that_does_not_exist_is_refused():
    limits = ResearchLimits(max_queries_per_source={"manaul": 3})
    with pytest.raises(ConfigurationError, match=r"manaul.*manual, forum"):
        limits.check_sources(["manual", "forum"])


def test_a_source_that_a_mapping_leaves_out_has_the_default_number_of_queries():
    given = {"manual": 9}
    limits = ResearchLimits(max_queries_per_source=given)
    given["forum"] = 1
    assert (limits.max_queries("manual"), limits.max_queries("forum")) == (9, DEFAULT_MAX_QUERIES)


# ---- exits


def test_saturation_comes_before_the_number_before_the_time_before_the_budget():
    names = ("llm_saturated", "max_queries_reached", "time_limit_reached", "research_budget_exhausted")
    for held in product((False, True), repeat=4):
        saturated, counted, late, spent = held
        limits = ResearchLimits(max_time_per_source_seconds=0.0 if late else 60.0)
        ledger = SimpleNamespace(limits=limits, elapsed_s=lambda: 1.0)
        place = SimpleNamespace(budget_over=lambda spent=spent: spent)
        work = SourceRun(Hypothesis("h1", "?"), None, ledger, place, max_queries=3 if counted else 4)
        work.history = [SearchAttempt("h1", "manual", "q")] * 3
        work.decision = Saturation(decision="SATURATED" if saturated else "CONTINUE", reasoning="so")
        work.check()
        assert work.exit_reason == next((name for name, holds in zip(names, held, strict=True) if holds), None), held


# ---- near-duplicates


def test_queries_that_share_four_words_of_five_are_one():
    one, other = words_of("How are generators closed?"), words_of("how are GENERATORS closed early")
    assert word_jaccard(one, other) == 0.8
    ledger = ResearchLedger(ResearchLimits())
    assert ledger.ask("manual", "How are generators closed?")
    assert not ledger.ask("manual", "how are GENERATORS closed early")
    assert ledger.ask("manual", "how are generators closed early today")
    assert ledger.ask("forum", "How are generators closed?"), "another source knows nothing of it"


def test_of_hypotheses_that_ask_the_same_at_once_exactly_one_gets_through():
    ledger, gate = ResearchLedger(ResearchLimits()), threading.Barrier(2)

    class Meeting(list):
        def append(self, words):
            # Two that both found the query new would meet here; the lock keeps the second away.
            with contextlib.suppress(threading.BrokenBarrierError):
                gate.wait(0.1)
            super().append(words)

    ledger._asked["manual"] = Meeting()
    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(lambda _: ledger.ask("manual", "the very same query"), range(2))) == 1


# ---- items


def test_an_item_without_address_and_id_is_kept_under_a_hash_of_its_content():
    bare = Item("Some  `remark`\nof a person", source="forum")
    assert bare.key.startswith("content:")
    assert bare.key == Item("some remark of a PERSON", source="elsewhere").key
    assert bare.key != Item("another remark", source="forum").key
    assert unseen([bare, Item("another remark")], []) == (bare, Item("another remark"))


def test_an_address_tells_items_apart_before_an_id_and_an_id_only_within_its_source():
    assert Item("x", url="urn:a", id="1", source="s").key == Item("y", url="urn:a", source="t").key
    assert Item("x", id="1", source="s").key != Item("x", id="1", source="t").key


def test_of_items_with_one_key_the_first_is_kept():
    first, again = Item("one", url="urn:a"), Item("two", url="urn:a")
    assert unseen([first, again], []) == (first,)
    assert unseen([first, again], ["urn:a"]) == ()


# ---- decisions


@pytest.mark.parametrize(
    "reply",
    [
        "SATURATED",
        "",
        '["SATURATED"]',
        '{"decision": "SATURATED"}',
        '{"decision": "SATURATED", "reasoning": "  "}',
        '{"decision": "SATURATED", "reasoning": 3}',
        '{"decision": "saturated enough", "reasoning": "so"}',
        '{"decision": true, "reasoning": "so"}',
        '{"decision": ["SATURATED"], "reasoning": "so"}',
    ],
)
def test_a_decision_of_another_shape_or_without_reasoning_is_malformed(reply):
    with pytest.raises(MalformedDecision):
        Saturation.read(reply)


def test_a_decision_in_a_code_fence_is_read():
    fenced = '```json\n{"decision": "CONTINUE", "reasoning": "more\\nto come"}\n```'
    assert (Saturation.read(fenced).decision, Saturation.read(fenced).reasoning) == ("CONTINUE", "more to come")


def test_a_query_needs_its_reasoning_too_and_may_be_empty():
    assert NextQuery.read('{"query": " ", "reasoning": "none left"}').query == ""
    with pytest.raises(MalformedDecision):
        NextQuery.read('{"query": "x"}')
    with pytest.raises(MalformedDecision):
        NextQuery.read('{"query": null, "reasoning": "so"}')


@pytest.mark.parametrize("numbers", [[0], [4], ["1"], [True], 1, None])
def test_a_filter_may_only_accept_what_was_there(numbers):
    with pytest.raises(MalformedDecision):
        Accepted.read(json.dumps({"accepted": numbers, "reasoning": "so"}), of=3)


def test_accepted_places_are_in_order_and_once():
    assert Accepted.read('{"accepted": [3, 1, 3], "reasoning": "so"}', of=3).accepted == (1, 3)


def test_the_documentation_names_every_reason_and_every_limit():
    text = section_of("systems.md", "The research loop")
    limits = [field.name for field in dataclasses.fields(ResearchLimits)]
    assert [name for name in (*EXIT_REASONS, *limits) if f"`{name}" not in text.replace("=", "`")] == []
