"""The ladder: which rung writes what, and what is promised whatever happens on it."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import pytest
from graph_fakes import FakeModel
from staged_fakes import FailingStore, calling, climbed, entity, in_text, relation, result_of, run_of, said_model

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.staged.graph_store import GraphStore
from docmind_lab.systems.staged.parsing import ToolCall
from docmind_lab.systems.staged.stage_calls import ordered
from docmind_lab.systems.staged.staged_state import LadderFailed, StagedOptions
from docmind_lab.systems.staged.staged_workload import build_staged_graph

CITIES = (entity("Oslo"), entity("Bergen"))
OBSERVED = ("add_observation", {"entity": "Oslo", "text": "It is a city."})


def names(store: GraphStore, table: str = "entities") -> list[str]:
    return [row["name"] for row in store.rows(table)]


# ---- rungs


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ((calling(*CITIES),), "agent"),
        ((in_text(*CITIES),), "suggested"),
        (("Oslo is a city.",), "generated"),
        (("",), "generated"),
        ((RuntimeError("out of order"),), "generated"),
        ((calling(("create_entity", {"name": ""})), in_text(*CITIES)), "suggested"),
    ],
)
def test_rungs_are_climbed_until_one_write_is_confirmed_and_the_outcome_names_the_rung(says, outcome):
    result, store = climbed(*says)
    assert (result.outcome, result.confirmed > 0) == (outcome, True)
    assert {row["origin"] for table in ("entities", "evidence") for row in store.rows(table)} == {outcome}


def test_finalize_runs_after_every_rung_and_writes_one_evidence_linked_once_to_each_touched_name():
    for says in ((calling(*CITIES, OBSERVED, *CITIES),), (in_text(*CITIES, OBSERVED),), ("hm",)):
        _, store = climbed(*says)
        assert names(store, "evidence") == ["Evidence src-7"]
        linked = [row["name"] for row in store.rows("evidence_links")]
        assert {"oslo", "bergen"} <= set(linked)
        assert len(linked) == len(set(linked))


def test_names_are_taken_from_results_too_and_evidence_is_never_linked_to_itself():
    answered = {"status": "ok", "id": "entity:oslo", "names": ["Oslo", "Kristiania", "Evidence src-7"]}
    store = FailingStore({"add_entity": lambda: answered})
    result, _ = climbed(calling(entity("Oslo")), store=store)
    assert result.warnings == ()
    assert [row["name"] for row in store.rows("evidence_links")] == ["kristiania", "oslo"]


def test_a_text_without_names_gets_evidence_and_its_document():
    result, store = climbed("hm", text="0 1 2 3 !!!")
    assert result.outcome == "forced"
    assert (names(store), names(store, "evidence")) == (["Document src"], ["Evidence src-7"])
    assert {row["origin"] for row in store.rows("entities")} == {"forced"}


@pytest.mark.parametrize("text", ["", " \n\t", "\u00a0\u200b\ufeff"])
def test_a_blank_text_is_skipped_and_never_said_to_be_written(text):
    result, store = climbed(calling(*CITIES), text=text)
    assert (result.outcome, result.confirmed > 0, store.count()) == ("skipped_empty", False, 0)


# ---- order, limits, invalid calls


def test_observations_come_first_then_entities_others_and_relations_and_each_kind_as_it_came():
    calls = [
        ToolCall(name, {"n": n})
        for n, name in enumerate(("create_relation", "set_entity_type", "create_entity", "add_observation") * 2)
    ]
    kinds = ["add_observation", "create_entity", "set_entity_type", "create_relation"]
    assert [(call.name, call.arguments["n"]) for call in ordered(calls)] == [
        (kind, n) for kind, places in zip(kinds, ((3, 7), (2, 6), (1, 5), (0, 4)), strict=True) for n in places
    ]
    with pytest.raises(ConfigurationError, match="primary_timeout_s"):
        StagedOptions(primary_timeout_s=0.0)


def test_an_invalid_call_is_skipped_and_counted_and_its_siblings_are_run():
    invalid = [("create_entity", {"name": ["Oslo"]}), ("no_such_tool", {}), ("create_relation", {"subject": "Oslo"})]
    for said in (calling(*invalid, *CITIES), in_text(*invalid, *CITIES)):
        result, store = climbed(said)
        assert (result.skipped, names(store)) == (3, ["Bergen", "Oslo"])


def test_every_native_call_is_answered_even_those_that_were_not_run():
    message = calling(*(entity(f"City {n}") for n in range(12)), ("no_such_tool", {}))
    message.invalid_tool_calls = [
        {"name": "create_entity", "args": "{'name': 'Oslo'", "id": "cut", "error": None, "type": "invalid_tool_call"}
    ]
    graph = build_staged_graph(said_model(message))
    state = graph.invoke(*run_of(GraphStore()))
    told = {m.tool_call_id: json.loads(m.content) for m in state["messages"] if m.type == "tool"}
    assert len(told) == 14
    assert told["cut"] == {"status": "error", "error_type": "invalid_call"}
    assert sum(result["status"] == "ok" for result in told.values()) == 10


def test_at_most_ten_calls_are_run_at_once_and_the_rest_is_counted_as_dropped():
    cities = [entity(f"City {n}") for n in range(14)]
    result, store = climbed(in_text(*cities))
    assert (result.dropped, len(names(store))) == (4, 10)
    few, store = climbed(in_text(*cities), options=StagedOptions(max_calls=3))
    assert (few.dropped, len(names(store))) == (11, 3)


# ---- relations


def test_relations_are_normalised_and_deduped_on_the_triple():
    same = [
        relation("Oslo", "Bergen"),
        ("create_relation", {"from": {"name": "OSLO"}, "to": {"name": "bergen "}, "type": "Near"}),
        ("create_relation", {"source": "Oslo", "target": "Bergen", "relation": "near"}),
    ]
    result, store = climbed(calling(*CITIES, *same))
    assert len(store.rows("relations")) == 1
    assert (result.unconfirmed, result.skipped) == (0, 0)


def test_only_an_unconfirmed_relation_is_retried_once_at_the_end():
    store = FailingStore({})
    result, _ = climbed(calling(relation("Oslo", "Bergen")), calling(*CITIES), store=store)
    assert [(row["subject"], row["object"]) for row in store.rows("relations")] == [("oslo", "bergen")]
    assert (store.tried.count("relate"), result.unconfirmed, result.warnings) == (2, 1, ())
    confirmed = FailingStore({})
    climbed(calling(*CITIES, relation("Oslo", "Bergen")), store=confirmed)
    assert confirmed.tried.count("relate") == 1


def test_a_relation_that_fails_again_is_a_warning_and_no_failure():
    store = FailingStore({"relate": lambda: "ok"})
    twice = (relation("Oslo", "Bergen"), relation("OSLO", "Bergen"))
    result, _ = climbed(calling(*CITIES), calling(*twice), store=store)
    assert (result.outcome, result.warnings) == ("agent", ("relation_not_written",))
    assert store.tried.count("relate") == 3  # each call once, and their one triple once more


# ---- failures


def refused() -> object:
    raise sqlite3.OperationalError("database is locked")


@pytest.mark.parametrize(
    "answer", [refused, lambda: None, lambda: "ok", lambda: {"status": "error", "error_type": "full"}, lambda: True]
)
@pytest.mark.parametrize("says", [(calling(*CITIES),), (in_text(*CITIES),), ("hm",)])
def test_where_nothing_is_confirmed_there_is_a_dead_letter_and_an_error_and_never_a_success(answer, says):
    store = FailingStore({"*": answer})
    with pytest.raises(LadderFailed, match="nothing could be written of chunk 7 of src") as failed:
        climbed(*says, store=store)
    (letter,) = store.rows("dead_letters")
    record = json.loads(letter["record"])
    assert (record["outcome"], record["confirmed"], store.count()) == ("failed", 0, 0)
    assert failed.value.record == {**record, "kept": True}


def test_a_dead_letter_that_cannot_be_kept_is_in_the_error():
    class Dead(FailingStore):
        def add_dead_letter(self, source, chunk, record):
            refused()

    with pytest.raises(LadderFailed, match="did not take its dead letter") as failed:
        climbed("hm", store=Dead({"*": refused}))
    assert failed.value.record["kept"] is False


def test_a_rung_that_fails_never_repeats_what_is_confirmed():
    store = FailingStore({"relate": refused})
    says = (calling(entity("Oslo")), calling(entity("Oslo"), entity("Bergen")), RuntimeError("gone"))
    result, _ = climbed(*says, store=store)
    assert (result.outcome, store.tried.count("add_entity")) == ("agent", 2)


def test_a_chunk_that_is_processed_again_on_another_rung_too_creates_no_duplicate():
    store = GraphStore()
    climbed(calling(*CITIES, OBSERVED, relation("Oslo", "Bergen")), store=store)
    before = store.count()
    climbed(calling(*CITIES, OBSERVED, relation("Oslo", "Bergen")), store=store)
    climbed(in_text(*CITIES, OBSERVED), store=store)
    assert store.count() == before
    assert {row["origin"] for row in store.rows("entities")} == {"agent"}


# ---- time


def test_without_time_for_the_agent_the_rungs_below_still_write():
    graph = build_staged_graph(said_model(calling(*CITIES)), StagedOptions(reserve_s=10.0))
    result = result_of(graph.invoke(*run_of(GraphStore(), deadline_ts=Deadline.after(5.0).at_s)))
    assert (result.outcome, result.confirmed > 0) == ("generated", True)


def test_an_agent_that_is_cut_keeps_its_writes_and_goes_straight_to_the_end():
    store = GraphStore()
    result, _ = climbed(calling(*CITIES), TimeoutError("cut"), store=store)
    assert (result.outcome, names(store)) == ("agent", ["Bergen", "Oslo"])
    assert {row["origin"] for row in store.rows("evidence")} == {"agent"}


def test_an_agent_that_never_ends_is_ended_after_its_rounds():
    result, _ = climbed(*[calling(entity("Oslo"))] * 50, options=StagedOptions(max_rounds=3))
    assert (result.outcome, result.confirmed) == ("agent", 2)


def test_the_async_side_cuts_a_model_that_takes_no_part_in_deadlines():
    class Endless(FakeModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            await asyncio.Event().wait()

    graph = build_staged_graph(Endless(say=None), StagedOptions(reserve_s=0.0))

    state = asyncio.run(graph.ainvoke(*run_of(GraphStore(), deadline_ts=Deadline.after(0.05).at_s)))
    assert state["outcome"] == "generated"


def test_it_works_outside_and_inside_a_running_loop_in_both_modes():
    graph = build_staged_graph(said_model(calling(*CITIES)))

    async def inside() -> tuple[object, object]:
        blocking = result_of(graph.invoke(*run_of(GraphStore())))
        return blocking, result_of(await graph.ainvoke(*run_of(GraphStore())))

    outside = result_of(graph.invoke(*run_of(GraphStore())))
    assert asyncio.run(inside()) == (outside, outside)


def test_a_run_without_a_store_says_what_is_missing():
    graph = build_staged_graph(said_model())
    with pytest.raises(ConfigurationError, match="graph_store"):
        graph.invoke({"messages": [("human", "Oslo")]})


def test_what_a_cut_message_says_last_is_not_written():
    result, store = climbed(in_text(*CITIES, finish_reason="length"))
    assert (result.outcome, names(store)) == ("suggested", ["Oslo"])
