"""The figure of what roles left of their budgets: the frame behind it, and what is drawn of it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.analysis.plots.budgets import budget_slack, slack_frame, slack_summary
from docmind_lab.analysis.role_times import order_of_work, visits_of
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.analysis.tables.records import CallRecord
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN

DIVIDED = '{"allocation": "equal"}'


def tables(calls: list[CallRecord], **options: str) -> Any:
    """A study of cooperative runs, one for each run id in the calls. options: of a run, by its id."""
    runs = [
        sample_run("cooperative", number, run_id=run_id, alternative_options=options.get(run_id, "{}"))
        for number, run_id in enumerate(dict.fromkeys(made.run_id for made in calls))
    ]
    return SimpleNamespace(runs=to_frame("runs", runs), calls=to_frame("calls", calls), events=to_frame("events", []))


def test_slack_is_what_was_left_of_the_timeout_less_what_the_visit_took() -> None:
    study = tables([call("r", "router", 0.5, 0.8), call("r", "router", 0.8, 1.0, attempt=2)])
    (row,) = slack_frame(study).to_dict("records")
    assert row["allotted_s"] == pytest.approx(1.5)
    assert row["took_s"] == pytest.approx(0.5)
    assert row["slack_s"] == pytest.approx(1.0)
    assert (row["cut"], row["lower_bound"]) == (False, False)


def test_under_an_allocation_a_role_is_given_the_cap_of_its_first_call() -> None:
    calls = [call("r", "retrieval", 0.5, 0.6, timeout_s=0.4), call("r", "retrieval", 0.6, 0.7, "1.0.2", timeout_s=60.0)]
    (row,) = slack_frame(tables(calls, r=DIVIDED)).to_dict("records")
    assert row["allotted_s"] == pytest.approx(0.4)
    assert row["slack_s"] == pytest.approx(0.2)


def test_a_call_that_is_not_over_by_the_horizon_counts_until_then_and_as_cut() -> None:
    (row,) = slack_frame(tables([call("r", "synthesis", 1.0, NAN, outcome="abandoned")])).to_dict("records")
    assert (row["took_s"], row["slack_s"]) == (9.0, -8.0)
    assert (row["cut"], row["lower_bound"]) == (True, True)


def test_parallel_tasks_of_a_handoff_are_one_visit_and_two_handoffs_are_two() -> None:
    calls = [
        call("r", "retrieval", 0.2, 0.5, "2.0.1"),
        call("r", "retrieval", 0.2, 0.9, "2.1.1"),
        call("r", "router_engine", 0.3, 0.4, "2.0.1", kind="retrieval"),
        call("r", "retrieval", 1.2, 1.3, "5.0.1"),
    ]
    assert [round(took_s, 9) for took_s in slack_frame(tables(calls))["took_s"]] == [0.7, 0.1]


def test_roles_stand_in_the_order_in_which_they_come_also_one_that_only_long_runs_need() -> None:
    short = [call(f"short{n}", role, at_s, at_s + 0.1) for n in range(3) for role, at_s in (("a", 0.0), ("c", 0.2))]
    long = [call("long", role, at_s, at_s + 0.1) for role, at_s in (("a", 0.0), ("b", 0.5), ("c", 1.0))]
    study = tables(short + long)
    assert order_of_work(visits_of(study.calls, study.runs)) == ["a", "b", "c"]


def test_the_summary_counts_visits_and_those_that_were_cut() -> None:
    calls = [call("x", "router", 0.0, 0.5), call("y", "router", 0.0, 2.0, outcome="timeout")]
    (row,) = slack_summary(slack_frame(tables(calls))).to_dict("records")
    assert (row["visits"], row["cut"], row["lower_bounds"]) == (2, 1, 0)
    assert row["median_s"] == pytest.approx(0.75)


def test_every_visit_is_drawn_once_and_the_median_where_it_is() -> None:
    calls = [
        call("x", "router", 0.0, 0.5),
        call("y", "router", 0.0, 2.0, outcome="timeout"),
        call("z", "router", 0.0, 0.1, timeout_s=0.3),
        call("z", "planner", 0.2, 0.3, timeout_s=0.5, step="2.0.1"),
    ]
    study = tables(calls, z=DIVIDED)
    ax = budget_slack(study)
    drawn = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    assert list(drawn["points:router:0"].get_xdata()) == pytest.approx([1.5])
    assert list(drawn["cut:router:0"].get_xdata()) == pytest.approx([0.0])
    assert list(drawn["points:router:1"].get_xdata()) == pytest.approx([0.2])
    assert list(drawn["median:planner:1"].get_xdata()) == pytest.approx([0.4, 0.4])
    points = sum(len(line.get_xdata()) for gid, line in drawn.items() if gid.startswith(("points:", "cut:")))
    assert points == len(slack_frame(study))
    # Each row has a place of its own, under the name of its role.
    heights = [line.get_ydata().mean() for gid, line in drawn.items() if gid.startswith("median:")]
    assert len(set(heights)) == len(heights)
    assert all(math.isfinite(height) for height in heights)
    plt.close(ax.figure)


def test_axes_that_are_handed_in_are_drawn_on() -> None:
    _, given = plt.subplots()
    assert budget_slack(tables([call("x", "router", 0.0, 0.5)]), ax=given) is given
    plt.close(given.figure)


def test_nothing_to_draw_is_refused_by_name() -> None:
    study = tables([call("x", "router", 0.0, 0.5, seen_from="server")])
    with pytest.raises(ConfigurationError, match="client rows"):
        slack_frame(study)
    with pytest.raises(ConfigurationError, match="runs is empty"):
        slack_frame(SimpleNamespace(runs=to_frame("runs", []), calls=study.calls, events=pd.DataFrame()))
