"""The panel over real processes: a moved slider is answered from traces at once, and its code makes its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pandas as pd
import pytest

from docmind_lab.views.panels.tune_panel import TunePanel, tune

PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def panel() -> Iterator[TunePanel]:
    panel = tune(decision_timeout_s=20.0, runs=2, alternatives=("A", "B", "D"))
    panel.wait(PATIENCE_S)
    assert panel._control_engine is not None
    assert panel._control_engine.wait(PATIENCE_S)
    yield panel
    panel.close()


def test_the_control_is_measured_when_the_runs_are_done(panel: TunePanel) -> None:
    assert panel._preview.knows(panel.choice)
    assert panel._quick.value == ""


def test_a_moved_slider_shows_what_traces_say_and_that_they_say_it(panel: TunePanel) -> None:
    shown: list[str] = []
    panel._quick.observe(lambda change: shown.append(str(change.new)), "value")
    panel.decision_timeout_s = 6
    study = panel.wait(PATIENCE_S)
    assert "6 s, from traces: 2 runs of the control, replayed" in shown[0]
    assert "Virtual time measures the same now." in shown[0]
    in_time = int(study.runs.query("alternative == 'cooperative'")["answered_in_time"].sum())
    assert f'<th scope="row">A cooperative</th><td>{in_time} of 2</td>' in shown[0]
    assert shown[-1] == "", "once it is measured, nothing is shown from traces"


def test_what_is_asked_for_now_does_not_wait_for_the_control(panel: TunePanel, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    assert panel._control_engine is not None
    monkeypatch.setattr(panel._control_engine, "stop", lambda: stopped.append("control"))
    panel.run()
    panel.wait(PATIENCE_S)
    assert stopped == ["control"]


def test_traces_of_other_settings_answer_nothing(panel: TunePanel) -> None:
    preview = panel._preview
    assert preview.answer(dataclasses.replace(panel.choice, fault="hang")) == ""
    assert preview.answer(dataclasses.replace(panel.choice, clock="wall")) == ""
    assert preview.answer(dataclasses.replace(panel.choice, alternatives=("A:equal",))) == ""
    assert preview.answer(dataclasses.replace(panel.choice, stops_on_disconnect=False)) != ""


@pytest.mark.full
@pytest.mark.wall
def test_the_code_makes_the_same_tables_also_of_runs_that_were_known() -> None:
    # Processes start, import the stack and index a corpus: seconds, minutes on a machine that does much else.
    panel = tune(decision_timeout_s=20.0, runs=2, alternatives=("B",))
    try:
        panel.wait(300)
        # The runs of B come from the store, under the names of another study.
        panel.alternatives = ("A", "B")
        study = panel.wait(300)
        names: dict[str, object] = {}
        exec(panel.code, names)
        for table in ("runs", "calls", "events"):
            pd.testing.assert_frame_equal(getattr(study, table), getattr(names["study"], table))
    finally:
        panel.close()
