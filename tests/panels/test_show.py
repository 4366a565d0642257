"""Panels of finished studies: a chooser of conditions, and from runs to calls to events."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
from scripted_runs import SMALL, measured_of

from docmind_lab.analysis.study import Study
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.interfaces.panels import browse, show
from docmind_lab.interfaces.panels.choice import PanelChoice
from docmind_lab.interfaces.panels.run_browser import call_rows, event_rows, run_rows


def _study(*choices: PanelChoice) -> Study:
    orders = [order for choice in choices for order in choice.comparison(Settings()).orders()]
    return Study.of([measured_of(order) for order in orders], {"design": {"seed": 7}})


def test_one_condition_needs_no_chooser() -> None:
    panel = show(_study(SMALL))
    assert panel._chooser.layout.display == "none"
    assert len(panel.study.runs) == 6
    assert "<img" in panel.tabs.page("Timeline").value


def test_the_conditions_of_a_study_are_chosen_from() -> None:
    panel = show(
        _study(SMALL, dataclasses.replace(SMALL, decision_timeout_s=8.0), dataclasses.replace(SMALL, fault="hang"))
    )
    named = [name for name, _ in panel._chooser.options]
    assert named == [
        "8 s decision timeout, no fault",
        "20 s decision timeout, no fault",
        "20 s decision timeout, fault hang:synthesis",
    ]
    before = panel.tabs.page("Timeline").value
    panel.condition = 2
    assert panel.study.runs["fault"].unique().tolist() == ["hang:synthesis"]
    assert set(panel.study.calls["run_id"]) == set(panel.study.runs["run_id"])
    assert panel.tabs.page("Timeline").value != before
    assert panel._chooser.value == 2
    with pytest.raises(ConfigurationError, match="between 0 and 2"):
        panel.condition = 3


@pytest.mark.parametrize("view", ["Completion", "Overrun", "Table", "Calls"])
def test_every_tab_of_a_finished_study_is_drawn_when_it_is_chosen(view: str) -> None:
    panel = show(_study(SMALL))
    panel.tabs.view = view
    if view == "Calls":
        assert len(panel.tabs.browser.calls()) == 4
    else:
        assert "cannot be drawn" not in panel.tabs.page(view).value
        assert "A cooperative" in panel.tabs.page(view).value.replace("A  cooperative", "A cooperative")


def test_an_empty_study_is_refused() -> None:
    whole = _study(SMALL)
    with pytest.raises(ConfigurationError, match="nothing to show"):
        show(Study(whole.runs.iloc[:0], whole.calls.iloc[:0], whole.events.iloc[:0]))


def test_a_browser_lists_runs_by_alternative_and_outcome() -> None:
    study = _study(SMALL)
    browser = browse(study, arm="B  hard timeout")
    questions = {1: "h04", 2: "h01", 3: "h05"}
    assert [name for name, _ in browser._runs.options] == [
        f"B hard timeout · 20 s · {questions[repeat]} (seed {seed}) · answered, back after {10 + repeat} s"
        for seed, repeat in sorted((run_seed(7, repeat), repeat) for repeat in questions)
    ]
    assert browser.run_id == browser._runs.value
    browser.arm = "all"
    assert len(browser._runs.options) == 6
    browser.outcome = "answered"
    assert len(browser._runs.options) == int((study.runs["outcome"] == "answered").sum())


def test_a_browser_shows_the_rows_of_the_chosen_run_by_filters() -> None:
    study = _study(SMALL)
    browser = browse(study)
    run_id = study.runs["run_id"].iloc[-1]
    browser.run_id = run_id
    assert browser._runs.value == run_id
    pd.testing.assert_frame_equal(browser.calls(), call_rows(study, run_id))
    assert run_id in browser._timeline.value
    browser._filters["seen_from"].value = "server"
    assert browser.calls_where == {"seen_from": "server"}
    assert set(browser.calls()["seen_from"]) == {"server"}
    assert "Calls of the run: 2 of 4 rows" in browser._calls.value
    browser.event = "run_started"
    assert browser.events()["event"].tolist() == ["run_started"]
    assert "application/vnd.jupyter.widget-view+json" in browser._repr_mimebundle_()


def test_a_run_stays_chosen_when_the_tables_grow() -> None:
    browser = browse(_study(SMALL))
    chosen = browser._study.runs["run_id"].iloc[4]
    browser.run_id = chosen
    browser.show(_study(SMALL, dataclasses.replace(SMALL, alternatives=("E",))))
    assert browser.run_id == chosen
    assert len(browser._runs.options) == 9


def test_rows_are_filtered_and_in_order() -> None:
    study = _study(SMALL)
    runs = run_rows(study)
    assert runs["arm"].astype("str").tolist() == ["A  cooperative"] * 3 + ["B  hard timeout"] * 3
    assert run_rows(study, outcome="failed").empty
    run_id = runs["run_id"].iloc[0]
    assert call_rows(study, run_id, role="router", seen_from="client")["role"].tolist() == ["router"]
    assert call_rows(study, run_id)["started_at_s"].is_monotonic_increasing
    assert event_rows(study, run_id, event="horizon").empty
