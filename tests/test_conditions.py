"""Which runs are compared: what was the same for all of them, and what tells them apart."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sample_runs import sample_run

from docmind_lab.tables.conditions import by_condition, varying, with_arms
from docmind_lab.tables.frames import to_frame


def runs_of(*changes: dict[str, Any]) -> pd.DataFrame:
    return to_frame("runs", [sample_run(**{"alternative": "cooperative", "repeat": 0, **change}) for change in changes])


def test_arms_stand_in_the_order_of_every_figure() -> None:
    runs = runs_of(
        {"alternative": "hard_timeout", "alternative_options": '{"naive": true}'},
        {"alternative": "hard_timeout"},
        {"alternative": "unguarded"},
        {"alternative": "cooperative"},
    )
    assert list(with_arms(runs)["arm"].cat.categories) == [
        "control  unguarded",
        "A  cooperative",
        "B  hard timeout",
        "B  hard timeout (naive)",
    ]


def test_retries_and_colour_are_said_only_where_one_alternative_has_several() -> None:
    runs = runs_of(
        {"alternative": "async_cancellation", "node_mode": "async"},
        {"alternative": "async_cancellation", "node_mode": "blocking"},
        {"alternative": "cooperative", "retries": "budgeted:1"},
    )
    assert list(with_arms(runs)["arm"]) == [
        "C  async cancellation, node mode async",
        "C  async cancellation, node mode blocking",
        "A  cooperative",
    ]


def test_conditions_come_by_budget_and_without_a_fault_first() -> None:
    runs = runs_of(
        {"decision_timeout_s": 4.0, "horizon_s": 20.0},
        {"fault": "hang"},
        {"fault": "none"},
    )
    found = [
        (condition["decision_timeout_s"], condition["fault"], len(group)) for condition, group in by_condition(runs)
    ]
    assert found == [(2.0, "none", 1), (2.0, "hang", 1), (4.0, "none", 1)]


def test_a_horizon_that_follows_the_budget_is_no_condition_of_its_own() -> None:
    assert varying(runs_of({}, {"decision_timeout_s": 4.0, "horizon_s": 20.0})) == ["decision_timeout_s"]
    assert varying(runs_of({}, {"horizon_s": 20.0})) == ["horizon_s"]
    assert varying(runs_of({}, {})) == []
