"""Whole runs of the ladder in virtual time: every alternative, and the guarantee that some of them break."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from virtual_runs import VirtualRuns, events_of, frames_of

from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.systems.staged.staged_events import stages_table
from docmind_lab.systems.staged.staged_script import MANNERS, manner_of
from docmind_lab.systems.staged.staged_workload import recall_and_f1, staged_chunks

EVERYONE = "control,A,B,C,D,E,F"


@pytest.fixture(scope="module")
def ladders() -> Iterator[VirtualRuns]:
    with VirtualRuns.of("staged") as made:
        yield made


def hanging(ladders: VirtualRuns, letter: str) -> MeasuredRun:
    """The run under an alternative whose agent hangs, with a deadline of 8 s."""
    runs: dict[str, MeasuredRun] = ladders.once(
        ladders.measure_each, EVERYONE, "hang:primary", question="retry-after.md#1", timeout_s=8.0
    )
    return runs[letter]


def confirmed_at(run: MeasuredRun) -> list[float]:
    return [at_s for at_s, detail in events_of(run, "graph_write") if detail["confirmed"]]


# ---- every alternative


def test_every_alternative_runs_the_ladder_and_says_the_same_when_there_is_time(ladders):
    runs = ladders.measure_each(EVERYONE, question="retry-after.md#1", timeout_s=60.0)
    assert {run.run.outcome for run in runs.values()} == {"answered"}
    assert len({(run.run.source_recall, run.run.answer_score, run.run.documents_count) for run in runs.values()}) == 1
    assert len({run.run.returned_at_s for run in runs.values()}) == 1
    assert all(run.run.workload == "staged" and run.run.source_recall > 0 for run in runs.values())
    assert all(run.run.recall_at_deadline == run.run.source_recall for run in runs.values())


def test_who_knows_the_deadline_keeps_the_last_write_and_who_is_cancelled_loses_it(ladders):
    """The guarantee: a chunk leaves something behind. The agent hangs, and the rungs below it are there for that."""
    runs = {letter: hanging(ladders, letter) for letter in EVERYONE.split(",")}
    for letter in "AE":
        assert confirmed_at(runs[letter]), letter
        assert max(confirmed_at(runs[letter])) <= runs[letter].run.returned_at_s < 8.0, letter
        assert runs[letter].run.documents_count > 0, letter
    for letter in "CF":
        assert (runs[letter].run.outcome, confirmed_at(runs[letter])) == ("timed_out", []), letter
        assert not events_of(runs[letter], "stage_ended"), letter
    # B's caller is told of nothing, and the ladder goes on behind its back and writes.
    b = runs["B"]
    assert (b.run.outcome, b.run.documents_count, b.run.source_recall) == ("timed_out", 0, 0.0)
    assert min(confirmed_at(b)) > b.run.returned_at_s == pytest.approx(8.0, abs=1e-9)
    # D's flag is seen when the agent's step is over, and keeps the rungs below it from ever being climbed.
    assert (runs["D"].run.stop_reason, confirmed_at(runs["D"])) == ("stop_flag", [])
    assert runs["D"].run.returned_at_s > 8.0
    # The control waits for the agent's own timeout, and then has the same as A.
    assert runs["control"].run.returned_at_s == pytest.approx(12.0, abs=1e-6)
    assert confirmed_at(runs["control"])


def test_cancellation_that_knows_the_deadline_keeps_the_last_write_too(ladders):
    (run,) = ladders.measure_each("C:propagate", "hang:primary", question="retry-after.md#1", timeout_s=8.0).values()
    assert run.run.outcome == "partial"
    assert confirmed_at(run)


def test_the_timeout_of_the_agent_is_the_smaller_of_its_own_and_what_is_left_less_the_reserve(ladders):
    for timeout_s, expected_s, reason in ((8.0, 7.75, "deadline"), (40.0, 12.0, "")):
        (run,) = ladders.measure_each("A", "hang:primary", question="retry-after.md#1", timeout_s=timeout_s).values()
        (ended,) = [detail for _, detail in events_of(run, "stage_ended") if detail["stage"] == "primary"]
        assert (ended["outcome"], ended["timeout_s"]) == ("timeout", pytest.approx(expected_s, abs=1e-6))
        assert ended["took_s"] == pytest.approx(expected_s, abs=1e-6)
        assert (run.run.stop_reason, run.run.outcome) == (reason, "partial" if reason else "answered")


def test_a_sync_model_under_cancellation_goes_on_after_the_return_and_nobody_writes_its_reply(ladders):
    own = ladders.measure_each("C", question="budget.md#3", timeout_s=8.0)["C"]
    sync = ladders.measure_each("C", question="budget.md#3", timeout_s=8.0, mode="sync")["C"]
    assert own.run.quiescent_at_s == pytest.approx(8.0, abs=1e-6)
    assert sync.run.returned_at_s == pytest.approx(8.0, abs=1e-6)
    assert sync.run.quiescent_at_s > 8.5
    assert max(confirmed_at(sync)) < 8.0


def test_a_service_that_fails_is_an_error_of_the_agent_and_not_of_the_run(ladders):
    (run,) = ladders.measure_each("A", "http_500:primary", question="retry-after.md#1", timeout_s=30.0).values()
    (ended,) = [detail for _, detail in events_of(run, "stage_ended") if detail["stage"] == "primary"]
    assert (ended["outcome"], ended["error_type"]) == ("error", "OpenAIAPIError")
    assert (run.run.outcome, run.run.stop_reason) == ("answered", "")


# ---- the table, and equal tables


def test_the_stages_table_has_each_rung_that_began_and_counts_writes_after_the_return(ladders):
    table = stages_table(*frames_of([hanging(ladders, letter) for letter in "ABC"])).set_index(["alternative", "stage"])
    assert list(table.loc["cooperative"].index) == ["primary", "suggested", "generated", "finalize"]
    assert list(table.loc["async_cancellation"].index) == ["primary"]
    cut = table.loc[("async_cancellation", "primary")]
    assert (cut["outcome"], cut["writes_confirmed"]) == ("cut", 0)
    assert math.isnan(cut["ended_at_s"])
    late, written = table.loc["hard_timeout"], len(confirmed_at(hanging(ladders, "B")))
    assert late["writes_after_return"].sum() == late["writes_confirmed"].sum() == written > 0
    assert table.loc["cooperative", "writes_after_return"].sum() == 0
    assert table.loc[("cooperative", "primary"), "timeout_s"] == pytest.approx(7.75)
    assert table.loc["cooperative", "fell_back"].tolist() == [True, True, False, False]


def test_a_run_that_is_forgotten_leaves_no_store_behind(ladders):
    hanging(ladders, "B")
    assert ladders.system.workload._stores == {}  # type: ignore[attr-defined]


# ---- what runs are asked


def test_gold_stands_in_the_passages_word_for_word_and_relations_join_gold_entities():
    chunks = staged_chunks()
    assert len({chunk.id for chunk in chunks}) == len(chunks) >= 20
    for chunk in chunks:
        folded = " ".join(chunk.text.split()).casefold()
        entities = [gold.removeprefix("entity:") for gold in chunk.gold if gold.startswith("entity:")]
        related = [gold.removeprefix("relation:").split("|") for gold in chunk.gold if gold.startswith("relation:")]
        assert [name for name in entities if name not in folded] == [], chunk.id
        assert all(end in entities for pair in related for end in pair), chunk.id
        assert len(chunk.gold_topics) == len(chunk.gold) > 1


def test_the_passages_meet_every_manner_of_the_simulated_model():
    assert {manner_of(chunk.text) for chunk in staged_chunks()} == set(MANNERS)


@pytest.mark.parametrize(
    ("gold", "found", "recall", "f1"),
    [("ab", "ab", 1.0, 1.0), ("ab", "ax", 0.5, 0.5), ("ab", "", 0.0, 0.0), ("abcd", "abxyzw", 0.5, 0.4)],
)
def test_recall_is_the_share_of_gold_and_f1_weighs_it_against_what_is_not(gold, found, recall, f1):
    assert recall_and_f1(gold, found) == (recall, pytest.approx(f1))
    assert all(math.isnan(value) for value in recall_and_f1("", found))
