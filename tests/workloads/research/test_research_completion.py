"""Exactly one completion for every source that was started, whatever ends it; and what a killed process leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from research_fakes import FakeSearching, fake_model, run, source, task, two_items

from docmind_lab.core.sync_async import finish
from docmind_lab.systems.research.loop import SourceRun
from docmind_lab.systems.research.research_calls import CallPlace
from docmind_lab.systems.research.research_graph import run_to_end
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.tasks import ResearchLimits

BOTH = ("one", "two")


def logged(folder: Path) -> list[dict[str, object]]:
    completions: list[dict[str, object]] = json.loads((folder / "results.json").read_text(encoding="utf-8"))[
        "completions"
    ]
    return completions


def once_each(done) -> bool:
    started = {(c.hypothesis, c.source) for c in done.ledger.completions()}
    return len(started) == len(done.ledger.completions())


def test_a_completion_has_the_fields_that_people_debug_by(tmp_path):
    run(limits=ResearchLimits(max_queries_per_source=2), folder=tmp_path)
    (event,) = logged(tmp_path)
    expected = {
        "source": "one",
        "exit_reason": "max_queries_reached",
        "queries_executed": 2,
        "results_found": 4,
        "results_accepted": 4,
        "saturation_decision": "CONTINUE",
        "reasoning": "more may come",
        "note": "Reached max_queries_per_source (2) before saturation",
    }
    assert {name: event[name] for name in expected} == expected


def test_without_any_decision_the_event_says_null(tmp_path):
    run(limits=ResearchLimits(max_queries_per_source=1), folder=tmp_path)
    assert logged(tmp_path)[0]["saturation_decision"] is None


@pytest.mark.parametrize("cancel_after_s", [0.5, 1.5, 2.5, 4.5, 7.5, 12.5])
def test_a_cancelled_run_completes_each_source_that_was_under_way_once(cancel_after_s, tmp_path):
    limits = ResearchLimits(max_queries_per_source=99)
    done = run(asked=task(2, BOTH), limits=limits, mode="async", cancel_after_s=cancel_after_s, folder=tmp_path)
    assert isinstance(done.error, TimeoutError)
    assert done.reasons() == {"h1 one": "cancelled", "h1 two": "cancelled"}
    assert [event["exit_reason"] for event in logged(tmp_path)] == ["cancelled", "cancelled"]
    assert done.ended_at_s == cancel_after_s
    # What was kept until then is what the run has shown.
    assert tuple(done.state["documents"]) == tuple(item.as_document() for item in done.ledger.items())
    assert len(done.ledger.items()) == 4 * len([a for a in done.ledger.attempts() if a.source == "one"])


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("drain_after_s", [0.5, 2.5, 6.5])
def test_a_drained_run_completes_each_source_once_at_its_next_step(mode, drain_after_s):
    limits = ResearchLimits(max_queries_per_source=99)
    done = run(asked=task(2, BOTH), limits=limits, mode=mode, drain_after_s=drain_after_s)
    assert type(done.error).__name__ == "GraphDrained"
    assert done.reasons() == {"h1 one": "cancelled", "h1 two": "cancelled"}
    assert once_each(done)
    assert done.ended_at_s == drain_after_s + 0.5


@pytest.mark.parametrize("where", ["write", "filter", "judge", "find"])
def test_an_exception_of_any_phase_completes_the_source_once(where):
    def broken(*given):
        raise RuntimeError("a defect")

    model = fake_model(**({} if where == "find" else {where: broken}))
    searching = FakeSearching(broken if where == "find" else two_items)
    done = run(model, searching, asked=task(1, BOTH))
    assert set(done.reasons().values()) == {"source_error"}
    assert (len(done.ledger.completions()), done.error) == (2, None)


class Interrupted:
    """A loop that the user's Ctrl-C arrives in."""

    def invoke(self, state, config):
        raise KeyboardInterrupt


def test_an_interrupt_of_the_interpreter_goes_on_and_leaves_a_completion():
    ledger = ResearchLedger(ResearchLimits())
    ledger.begin(task())
    work = SourceRun(task().hypotheses[0], source("one"), ledger, CallPlace({}, ledger), 3)
    with pytest.raises(KeyboardInterrupt):
        finish(run_to_end(work, Interrupted(), {}))  # type: ignore[arg-type]
    assert [c.exit_reason for c in ledger.completions()] == ["cancelled"]


# ---- 12: what is on disk


def test_results_are_on_disk_after_each_query_and_never_half(tmp_path, monkeypatch):
    seen = []
    replace = os.replace

    def watched(beside, path):
        seen.append(len(json.loads(Path(beside).read_text(encoding="utf-8"))["attempts"]))
        replace(beside, path)
        json.loads(Path(path).read_text(encoding="utf-8"))

    monkeypatch.setattr(os, "replace", watched)
    run(limits=ResearchLimits(max_queries_per_source=3), folder=tmp_path)
    assert seen == [0, 1, 2, 3, 3], "the last time with how the source ended"
