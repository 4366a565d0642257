"""Exactly one completion for every source that was started, whatever ends it."""

from __future__ import annotations

import pytest
from research_fakes import FakeSearching, fake_model, run, source, task, two_items

from docmind_lab.core.sync_async import finish
from docmind_lab.systems.research.loop import SourceRun
from docmind_lab.systems.research.research_calls import CallPlace
from docmind_lab.systems.research.research_graph import run_to_end
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.tasks import ResearchLimits

BOTH = ("one", "two")


def once_each(done) -> bool:
    started = {(c.hypothesis, c.source) for c in done.ledger.completions()}
    return len(started) == len(done.ledger.completions())


def test_a_completion_says_what_was_done_and_the_last_decision_if_there_was_one():
    for queries, decision in ((2, "CONTINUE"), (1, None)):
        (ended,) = run(limits=ResearchLimits(max_queries_per_source=queries)).ledger.completions()
        assert (ended.source, ended.exit_reason, ended.queries_executed) == ("one", "max_queries_reached", queries)
        assert (ended.results_found, ended.results_accepted) == (2 * queries, 2 * queries)
        assert ended.saturation_decision == decision


@pytest.mark.parametrize("cancel_after_s", [0.5, 1.5, 2.5, 4.5, 7.5, 12.5])
def test_a_cancelled_run_completes_each_source_that_was_under_way_once(cancel_after_s):
    limits = ResearchLimits(max_queries_per_source=99)
    done = run(asked=task(2, BOTH), limits=limits, mode="async", cancel_after_s=cancel_after_s)
    assert isinstance(done.error, TimeoutError)
    assert done.reasons() == {"h1 one": "cancelled", "h1 two": "cancelled"}
    assert once_each(done)
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
