"""Whole runs in virtual time whose calls have limits of their own, under faults (limits.md 2)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import Cooperative
from docmind_lab.core.deadlines import PropagationPolicy
from docmind_lab.core.limits import Limits
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.experiments.measurement.measured_run import MeasuredRun

PROPAGATING = ("A", "B:propagate", "C:propagate", "D:propagate", "E", "F:propagate")
# Without a fault synthesis is under way from 4.072 to 7.256 s, and the first question takes 10.1 s.
BEGUN_S, TAKES_S, SILENT_S, IDLE_S = 4.072, 3.184, 8.0, 5.0


def ends_of_synthesis(run: MeasuredRun) -> Sequence[tuple[str, str, float]]:
    """Outcome, what cut it, and when it ended, of each request of synthesis as its client saw it."""
    mine = (call for call in run.calls if call.seen_from == "client" and call.role == "synthesis")
    return [(call.outcome, call.cut_by, pytest.approx(call.ended_at_s, abs=0.01)) for call in mine]


@pytest.mark.parametrize("name", PROPAGATING)
def test_a_model_that_thinks_in_silence_is_let_go_on_by_a_total_and_cut_by_an_idle_limit(
    virtual_runs: VirtualRuns, name: str
) -> None:
    fault = f"silent_thinking={SILENT_S:g}:synthesis"
    allowed = virtual_runs.measure(f"{name}+limits:total=15", fault, timeout_s=30.0)
    assert ends_of_synthesis(allowed) == [("ok", "", BEGUN_S + SILENT_S + TAKES_S)]
    assert allowed.run.outcome == "answered"
    cut = virtual_runs.measure(f"{name}+limits:idle={IDLE_S:g}", fault, timeout_s=30.0)
    first, second = ends_of_synthesis(cut)
    assert first == ("timeout", "idle", BEGUN_S + IDLE_S)
    assert second[:2] == ("timeout", "idle"), "every attempt is struck, and the limit is each attempt's own"


@pytest.mark.parametrize("name", PROPAGATING)
def test_a_call_that_a_limit_has_cut_is_tried_again_and_its_run_is_answered(
    virtual_runs: VirtualRuns, name: str
) -> None:
    plain, limited = (
        virtual_runs.measure(arm, "dead@1:synthesis", timeout_s=20.0) for arm in (name, f"{name}+limits:total=5")
    )
    assert plain.run.outcome in ("timed_out", "partial"), "the only request has all of the time there is"
    assert len(ends_of_synthesis(plain)) == 1
    first, second = ends_of_synthesis(limited)
    assert first == ("timeout", "total", BEGUN_S + 5.0)
    assert (second[0], limited.run.outcome) == ("ok", "answered")


def test_a_policy_of_no_retries_lets_a_cut_call_fail(virtual_runs: VirtualRuns) -> None:
    alternative = Cooperative(policy=PropagationPolicy(retries=0, policies=TimePolicies(limits=Limits(total_s=5))))
    run = virtual_runs.measure(alternative, "hang@1:synthesis", timeout_s=20.0)
    assert ends_of_synthesis(run) == [("timeout", "total", BEGUN_S + 5.0)]
    assert run.run.outcome != "answered"
