"""Runs that need not be computed again: found by what determines them, under whatever name, and not without end."""

from __future__ import annotations

import dataclasses

from scripted_runs import SMALL, measured_of

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.comparison.virtual import simulated
from docmind_lab.experiments.measurement.run import RunOrder
from docmind_lab.views.panels.choice import PanelChoice
from docmind_lab.views.panels.engine import KnownRuns


def _orders(choice: PanelChoice) -> tuple[list[RunOrder], Simulated]:
    comparison = choice.comparison(Settings())
    return comparison.orders(), simulated(comparison, Settings())


def test_a_run_comes_back_under_the_names_of_who_asks() -> None:
    known = KnownRuns()
    orders, system = _orders(SMALL)
    for order in orders:
        known.keep(order, system, measured_of(order))
    # Another number of alternatives is another study, whose runs have other names.
    others, other_system = _orders(dataclasses.replace(SMALL, alternatives=("B", "A", "C")))
    found = [known.find(order, other_system) for order in others]
    again = {order.facts.run_id: measured_of(order) for order in others}
    assert [run is None for run in found] == [order.facts.alternative == "async_cancellation" for order in others]
    # By their text: a NaN is not equal to another.
    assert all(repr(run) == repr(again[run.run.run_id]) for run in found if run is not None)
    assert {run.run.study_id for run in found if run is not None} == {others[0].facts.study_id}


def test_every_setting_tells_runs_apart() -> None:
    known = KnownRuns()
    orders, system = _orders(SMALL)
    for order in orders:
        known.keep(order, system, measured_of(order))
    changes = (
        {"decision_timeout_s": 19.0},
        {"seed": 50},
        {"deadline_propagation": "off", "alternatives": ("A",)},
        {"policies": "hedge:2s", "alternatives": ("A",)},
        {"router_injection": True},
        {"latency_profile": "typical"},
        {"fault": "hang"},
        {"stops_on_disconnect": False},
    )
    for change in changes:
        others, other_system = _orders(dataclasses.replace(SMALL, **change))
        assert [known.find(order, other_system) for order in others] == [None] * len(others), change


def test_those_longest_unused_are_forgotten_first() -> None:
    known = KnownRuns(most=4)
    orders, system = _orders(SMALL)
    for order in orders[:4]:
        known.keep(order, system, measured_of(order))
    assert known.find(orders[0], system) is not None
    for order in orders[4:]:
        known.keep(order, system, measured_of(order))
    assert len(known) == 4
    assert [known.find(order, system) is not None for order in orders] == [True, False, False, True, True, True]
