"""A brownout: model calls whose work begins between two instants are slower."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from flat_compare import compare_by

from docmind_lab.services.plan import Pace, Plan, Wait


def test_work_that_begins_in_the_window_takes_longer_and_the_end_of_the_window_is_outside() -> None:
    plan = Plan((Wait(1.0), Wait(2.0, tokens=4)), "llm", paces=(Pace(3.0, 10.0, 20.0),), slowdown=0.5)
    seconds = {
        at: [step.seconds for step in plan.steps_beside(0, at) if isinstance(step, Wait)] for at in (9.9, 10, 20)
    }
    assert seconds == {9.9: [1.0, 2.0], 10: [3.0, 6.0], 20: [1.0, 2.0]}
    assert [step.seconds for step in plan.steps_beside(2, 15.0) if isinstance(step, Wait)] == [3.0, 12.0]


def model_calls(**options: Any) -> tuple[pd.DataFrame, int]:
    """The model calls of a run as its server saw them, and how many requests the run says that a fault struck."""
    study = compare_by(**options, alternatives="unguarded", runs=1, seed=5, workers=1)
    calls = study.calls[(study.calls["seen_from"] == "server") & (study.calls["kind"] == "llm")]
    calls = calls.assign(took_s=calls["ended_at_s"] - calls["started_at_s"] - calls["queue_wait_s"])
    return calls.set_index("call_id")[["started_at_s", "took_s"]], int(study.runs["faulted_calls"].iloc[0])


def test_a_run_meets_it_in_virtual_time_from_its_first_request_on() -> None:
    usual, none_struck = model_calls(decision_timeout_s=100)
    found, struck = model_calls(decision_timeout_s=100, faults="brownout=3@2-6")
    slow = found.reindex(usual.index)
    inside = slow["started_at_s"].between(2.0, 6.0, inclusive="left")
    assert 0 < inside.sum() < len(slow)
    ratio = slow["took_s"] / usual["took_s"]
    assert ratio[inside].tolist() == pytest.approx([3.0] * int(inside.sum()))
    assert ratio[~inside].tolist() == pytest.approx([1.0] * int((~inside).sum()))
    assert (none_struck, struck) == (0, inside.sum())
