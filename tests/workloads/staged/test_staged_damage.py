"""Damaged chunks and damaged calls through the whole ladder: nothing is lost in silence, doubled or made up."""

from __future__ import annotations

import random

import pytest
from damage_operators import OPERATORS, damaged_chunk, random_calls
from langchain_core.messages import AIMessage
from staged_fakes import result_of, run_of, said_model

from docmind_lab.systems.staged.graph_store import TABLES, GraphStore, key_of
from docmind_lab.systems.staged.staged_workload import build_staged_graph, staged_chunks

SEED = 20_251_012


def strings(value: object) -> set[str]:
    """Every text in a call's arguments, as names compare."""
    if isinstance(value, dict):
        return set().union(*(strings(item) for item in value.values()), set())
    if isinstance(value, list):
        return set().union(*(strings(item) for item in value), set())
    return {key_of(value)} if isinstance(value, str) else set()


def check(number: int) -> str:
    """One damaged chunk and one damaged reply, processed twice; the outcome."""
    draw = random.Random(f"{SEED}/{number}")
    chunks = staged_chunks()
    text = damaged_chunk(draw, draw.choice(chunks).text)
    names = list(OPERATORS)
    operator = names[number % len(names)]
    damaged = OPERATORS[operator](draw, random_calls(draw))
    said = AIMessage(damaged.text, response_metadata={"finish_reason": damaged.finish_reason})
    graph = build_staged_graph(said_model(said))
    store = GraphStore()
    first = result_of(graph.invoke(*run_of(store, text, chunk=str(number))))
    rows = {table: store.rows(table) for table in TABLES}
    again = result_of(graph.invoke(*run_of(store, text, chunk=str(number))))
    context = (number, operator, text, damaged.text)

    # Never a silent no-op: something confirmed is in the store, or the text was blank and it says so.
    assert (first.confirmed > 0) == (first.outcome != "skipped_empty") == bool(rows["entities"] or rows["evidence"]), (
        context
    )
    assert (first.outcome == "skipped_empty") == (not text.strip().strip("\u200b\ufeff\x00\x01\x07")), context
    # Never a duplicate, within a chunk or over two.
    assert again.outcome == first.outcome, context
    assert {table: store.rows(table) for table in TABLES} == rows, context
    assert len(rows["evidence"]) <= 1, context
    # Never an altered argument: what a suggested call has written is what somebody had truly asked for.
    true = set().union(*(strings(arguments) for _, arguments in damaged.expected), set())
    for row in rows["entities"]:
        if row["origin"] == "suggested":
            assert row["key"] in true, context
    for row in rows["observations"]:
        if row["origin"] == "suggested":
            assert {row["entity"], row["key"]} <= true, context
    for row in rows["relations"]:
        if row["origin"] == "suggested":
            assert {row["subject"], row["predicate"], row["object"]} <= true, context
    store.close()
    return first.outcome


@pytest.mark.parametrize("count", [10 * len(OPERATORS), pytest.param(10_000, marks=pytest.mark.full)])
def test_damaged_chunks_and_calls_are_never_lost_doubled_or_altered(count):
    outcomes = {check(number) for number in range(count)}
    assert outcomes == {"suggested", "generated", "forced", "skipped_empty"}
