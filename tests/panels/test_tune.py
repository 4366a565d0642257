"""The panel without a browser: settings are traits, what is on screen is a study, and a move shows at once."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import traitlets
from eighth_alternative import ROW, Eighth
from ipywidgets.widgets.widget import _instances
from scripted_runs import PATIENCE_S, SMALL, Scripted, measured_of

from docmind_lab.core.alternative_catalogue import CATALOGUE
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.findings.study import Study
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.views.panels import engine as engine_module
from docmind_lab.views.panels.panel_settings import PanelChoice
from docmind_lab.views.panels.study_tabs import VIEWS, StudyTabs
from docmind_lab.views.panels.tune_panel import TunePanel, tune


@pytest.fixture
def panels() -> Iterator[list[TunePanel]]:
    made: list[TunePanel] = []
    yield made
    for panel in made:
        panel.close()
        panel._painter.wait(PATIENCE_S)


@pytest.fixture
def make(panels: list[TunePanel], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a panel over an executor, without a pause between frames.

    drawn: whether pictures are; a third of a second each is for the tests that look at them.
    """

    def made(executor: Scripted | None = None, choice: PanelChoice = SMALL, *, drawn: bool = False) -> TunePanel:
        if not drawn:
            monkeypatch.setattr(StudyTabs, "draw", lambda _, tables: f"<p>{len(tables.runs)} runs</p>")
        workers = (executor or Scripted()).workers
        panels.append(TunePanel(choice, workers=workers, frame_every_s=0.0))
        return panels[-1]

    return made


def on_screen(panel: TunePanel, view: str) -> str:
    return str(panel.tabs.page(view).value)


def test_whoever_waits_for_the_end_of_the_runs_reads_the_last_status(make: Any) -> None:
    panel = make()
    seen: list[tuple[str, bool]] = []
    panel.observe(lambda change: change.new or seen.append((panel.status, panel.stop_button.disabled)), "running")
    panel.wait(PATIENCE_S)
    panel.runs = 3
    panel.wait(PATIENCE_S)
    assert seen
    assert all("complete, " in status and is_disabled for status, is_disabled in seen)


def test_the_study_on_screen_is_that_of_the_code(make: Any) -> None:
    panel = make()
    study = panel.wait(PATIENCE_S)
    comparison = SMALL.comparison(Settings())
    expected = Study.of([measured_of(order) for order in comparison.orders()], {})
    for table in ("runs", "calls", "events"):
        pd.testing.assert_frame_equal(getattr(study, table), getattr(expected, table))
    assert study.manifest["study_id"] == comparison.study_id
    assert study.manifest["complete"]
    assert panel.code == SMALL.code()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decision_timeout_s", 8.0),
        ("runs", 2),
        ("seed", 11),
        ("deadline_propagation", "off"),
        ("router_injection", True),
        ("latency_profile", "typical"),
        ("fault", "stall=5@1"),
        ("stops_on_disconnect", False),
        ("workload", "research"),
    ],
)
def test_every_setting_moves_its_control_and_the_control_moves_it(make: Any, name: str, value: object) -> None:
    panel = make()
    control = panel.controls.of(name)
    before = getattr(panel, name)
    setattr(panel, name, value)
    assert control.value == value
    control.value = before
    assert getattr(panel, name) == before
    setattr(panel, name, value)
    panel.wait(PATIENCE_S)
    assert getattr(panel._sweep.choice, name) == value
    in_names = name in ("deadline_propagation", "workload")  # of the alternatives, and of the system
    assert repr(value) in panel.code or f'"{value}"' in panel.code or in_names or "goes-on" in panel.code


def test_choosing_another_workload_begins_with_its_own_budget_and_latencies(make: Any) -> None:
    panel = make()
    panel.controls.of("workload").value = "research"
    defaults = workload_kind("research").defaults["virtual"]
    assert (panel.decision_timeout_s, panel.latency_profile) == (defaults.decision_timeout_s, defaults.profile)
    panel.decision_timeout_s = 9.0
    panel.workload = "supervisor"  # by code: nothing else changes
    assert panel.decision_timeout_s == 9.0
    assert panel.controls.of("workload").value == "supervisor"


def test_the_slider_is_logarithmic_and_rounds_what_is_dragged_and_not_what_is_set(make: Any) -> None:
    panel = make()
    panel.controls.slider.value = 10**1.32
    assert panel.decision_timeout_s == 20.9
    assert panel.controls.typed.value == 20.9
    panel.decision_timeout_s = 12.345
    assert panel.controls.slider.value == 12.345
    assert panel.decision_timeout_s == 12.345
    # A browser moves what code has set to the nearest of its steps, 7.94 and 8.32, which is no drag.
    panel.decision_timeout_s = 8.0
    panel.controls.slider.value = 10**0.9
    assert panel.decision_timeout_s == 8.0
    panel.controls.slider.value = 10**0.92
    assert panel.decision_timeout_s == 8.32


def test_an_alternative_that_was_added_to_the_catalogue_has_a_checkbox(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, Eighth.name, ROW)
    panel = make()
    assert panel.controls.boxes["H"].description == "H eighth"


def test_checkboxes_choose_alternatives_and_a_variant_gets_one(make: Any) -> None:
    panel = make()
    panel.controls.boxes["C"].value = True
    assert panel.alternatives == ("A", "B", "C")
    panel.alternatives = ("hard_timeout:naive", "cooperative")
    assert panel.alternatives == ("B:naive", "A")
    assert panel.controls.boxes["B:naive"].value
    assert not panel.controls.boxes["B"].value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decision_timeout_s", 0, "decision_timeout_s|decision timeout"),
        ("decision_timeout_s", -3, "decision_timeout_s|decision timeout"),
        ("decision_timeout_s", 1e9, "decision_timeout_s must be between 0.1 and 600 s"),
        ("runs", 0, "runs must be between 1 and 1000, not"),
        ("runs", -3, "runs must be between 1 and 1000, not"),
        ("seed", -3, "seed must be between 0 and 2147483647, not -3"),
        ("fault", "hangs", "did you mean 'hang'"),
        ("latency_profile", "fastest", "fastest"),
        ("alternatives", (), "at least one"),
        ("alternatives", ("A", "cooperative"), "names one twice"),
        ("alternatives", ("G",), "G"),
        ("clock", "sundial", "sundial"),
        ("workload", "reserch", "research"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_taken_back(make: Any, name: str, value: object, message: str) -> None:
    """By code it is an error; what is typed in a control is named in the status."""
    panel = make()
    panel.wait(PATIENCE_S)
    before = getattr(panel, name)
    with pytest.raises((ConfigurationError, traitlets.TraitError), match=message):
        setattr(panel, name, value)
    assert getattr(panel, name) == before
    assert not panel.running
    if name in ("alternatives", "clock", "workload"):
        return  # nothing can be typed there
    control = panel.controls.of(name)
    # As a browser sends it.
    control.set_state({"value": value})
    assert re.search(message, panel.status)
    assert getattr(panel, name) == control.value == before


def test_a_move_is_seen_before_any_run_is_done(make: Any) -> None:
    executor = Scripted(held=True)
    panel = make(executor, drawn=True)
    executor.let_go(6)
    panel.wait(PATIENCE_S)
    panel.decision_timeout_s = 8.0
    assert panel.status == "8 s: being computed; on screen are the runs before: decision timeout (s) 20 → 8"
    assert "Below are the runs before: decision timeout (s) 20 → 8." in on_screen(panel, "Timeline")
    executor.let_go(6)
    panel.wait(PATIENCE_S)
    assert "Below are the runs before" not in on_screen(panel, "Timeline")
    assert panel.status.startswith("8 s: complete, 6 of 6 runs done. In time: A cooperative 0 of 3")


def test_only_the_tab_in_front_is_drawn(make: Any) -> None:
    panel = make()
    panel.wait(PATIENCE_S)
    assert [name for name in VIEWS if "No run is done yet" not in on_screen(panel, name)] == ["Timeline"]
    panel.tabs.view = "Overrun"
    panel.wait(PATIENCE_S)
    assert on_screen(panel, "Overrun") == "<p>6 runs</p>"
    assert "No run is done yet" in on_screen(panel, "Completion")


@pytest.mark.parametrize("view", ["Timeline", "Completion", "Overrun"])
def test_every_picture_has_words_and_a_table_beside_it(make: Any, view: str) -> None:
    panel = make(drawn=True)
    panel.tabs.view = view
    panel.wait(PATIENCE_S)
    shown = on_screen(panel, view)
    assert 'img alt="' in shown
    assert 'alt=""' not in shown
    assert "<caption>" in shown
    assert '<th scope="row">A cooperative</th>' in shown


def test_the_table_is_the_summary_of_the_study(make: Any) -> None:
    panel = make(drawn=True)
    panel.tabs.view = "Table"
    study = panel.wait(PATIENCE_S)
    assert study._repr_html_().partition("<ul>")[2] in on_screen(panel, "Table")


def test_another_question_is_another_timeline(make: Any) -> None:
    panel = make(drawn=True)
    panel.wait(PATIENCE_S)
    assert f"seed {run_seed(7, 1)}" in on_screen(panel, "Timeline")
    panel.tabs.question_seed = run_seed(7, 3)
    panel.wait(PATIENCE_S)
    assert f"seed {run_seed(7, 3)}" in on_screen(panel, "Timeline")


def test_stop_is_for_what_runs_and_keeps_what_is_done(make: Any) -> None:
    executor = Scripted(held=True)
    panel = make(executor)
    executor.let_go(2)
    executor.until_asked(4)
    assert not panel.stop_button.disabled
    panel.stop_button.click()
    executor.let_go(2)
    study = panel.wait(PATIENCE_S)
    assert panel.stop_button.disabled
    assert not panel.running
    assert 2 <= len(study.runs) <= 4
    assert not study.manifest["complete"]
    assert panel.status.startswith("20 s: stopped, ")
    # Idle now: a late click must not reach the runs that come next.
    panel.stop()
    panel.run_button.click()
    executor.let_go(6 - len(study.runs))
    assert len(panel.wait(PATIENCE_S).runs) == 6


def test_the_wall_clock_is_measured_on_request_only(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def runs(comparison: Any, settings: Any) -> Any:
        asked.append(comparison)
        yield from (measured_of(order) for order in comparison.orders())

    monkeypatch.setattr(engine_module, "runs_on_the_wall_clock", runs)
    panel = make(choice=dataclasses.replace(SMALL, clock="wall"))
    panel.decision_timeout_s = 2.0
    assert asked == []
    assert not panel.running
    assert "press Run for 6 runs" in panel.status
    with pytest.raises(ConfigurationError, match="measured nothing yet"):
        _ = panel.study
    panel.run()
    assert len(panel.wait(PATIENCE_S).runs) == 6
    assert [comparison.decision_timeout_s for comparison in asked] == [2.0]


def test_what_fails_is_said_and_raised_to_who_waits(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(comparison: Any, settings: Any) -> Any:
        raise ServiceError("the services did not start")
        yield

    monkeypatch.setattr(engine_module, "runs_on_the_wall_clock", runs)
    panel = make(choice=dataclasses.replace(SMALL, clock="wall"))
    panel.run()
    with pytest.raises(ServiceError, match="did not start"):
        panel.wait(PATIENCE_S)
    assert panel.status == "20 s: the services did not start"
    assert not panel.running


def test_fifty_moves_leave_no_thread_and_no_growing_memory(make: Any) -> None:
    panel = make()
    panel.wait(PATIENCE_S)
    made = len(_instances)
    for step in range(50):
        panel.decision_timeout_s = 5.0 + step
    panel.wait(PATIENCE_S)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("docmind-panel")]
    assert len(panel._engine.known) <= 6 * 52
    assert panel._engine.known.most == 4000
    assert len(_instances) == made
    assert panel.study.runs["decision_timeout_s"].unique().tolist() == [54.0]


def test_two_panels_do_not_disturb_each_other(make: Any) -> None:
    first, second = make(), make(choice=dataclasses.replace(SMALL, decision_timeout_s=8.0))
    first.fault = "hang"
    assert first.wait(PATIENCE_S).runs["fault"].unique().tolist() == ["hang:synthesis"]
    assert second.wait(PATIENCE_S).runs["fault"].unique().tolist() == ["none"]


def test_a_closed_panel_has_no_widget_and_takes_no_request(make: Any) -> None:
    executor = Scripted(held=True)
    panel = make(executor)
    executor.until_asked(2)
    panel.close()
    executor.let_go(2)
    assert panel._engine.wait(PATIENCE_S)
    assert panel.widget.comm is None
    assert panel.controls.slider.comm is None
    assert len(executor.asked) == 2


def test_a_notebook_gets_a_widget_and_a_terminal_gets_text(make: Any) -> None:
    panel = make()
    panel.wait(PATIENCE_S)
    assert "application/vnd.jupyter.widget-view+json" in panel._repr_mimebundle_()
    assert repr(panel) == f"TunePanel({panel.status})"


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigurationError, match="has no argument 'timeout': now decision_timeout_s"):
        tune(timeout=3)


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
