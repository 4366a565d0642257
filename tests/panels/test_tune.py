"""The panel without a browser: settings are traits, what is on screen is a study, and a move shows at once."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Iterator
from typing import Any

import graphs_agent
import pandas as pd
import pytest
import traitlets
from eighth_alternative import ROW, Eighth
from ipywidgets.widgets.widget import _instances
from scripted_runs import PATIENCE_S, SMALL, Scripted, measured_of

import docmind_lab as dl
from docmind_lab.core.alternative_catalogue import CATALOGUE
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Workers
from docmind_lab.findings.study import Study
from docmind_lab.views.panels import engine as engine_module
from docmind_lab.views.panels import tune_panel
from docmind_lab.views.panels.page import VIEWS, view_html
from docmind_lab.views.panels.panel_settings import PanelChoice
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
    """A function that makes a panel over an executor, without pictures and without a pause between frames."""
    monkeypatch.setattr(
        tune_panel, "view_html", lambda view, tables, _, narrow: f"<p>{view}: {len(tables.runs)} runs</p>"
    )

    def made(executor: Scripted | None = None, choice: PanelChoice = SMALL) -> TunePanel:
        workers = (executor or Scripted()).workers
        panels.append(TunePanel(choice, workers=workers, frame_every_s=0.0))
        return panels[-1]

    return made


def control_of(panel: TunePanel, name: str) -> dict[str, Any]:
    return next(control for control in panel.form["controls"] if control["name"] == name)


def told(panel: TunePanel, name: str, value: object) -> None:
    """As a page sends it."""
    panel._handle_custom_msg({"set": name, "to": value, "id": "page-1"}, [])
    assert panel.form["heard"] == "page-1"


def test_whoever_waits_for_the_end_of_the_runs_reads_the_last_status(make: Any) -> None:
    panel = make()
    seen: list[tuple[str, bool]] = []
    panel.observe(lambda change: change.new or seen.append((panel.status, panel.progress)), "running")
    panel.wait(PATIENCE_S)
    panel.runs = 3
    panel.wait(PATIENCE_S)
    assert seen
    assert all("complete, " in status and progress == (6, 6) for status, progress in seen)


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
        ("server", "goes-on"),
    ],
)
def test_every_setting_moves_its_control_and_the_control_moves_it(make: Any, name: str, value: object) -> None:
    panel = make()
    before = getattr(panel, name)
    setattr(panel, name, value)
    assert control_of(panel, name)["value"] == value
    told(panel, name, before)
    assert getattr(panel, name) == before
    told(panel, name, value)
    panel.wait(PATIENCE_S)
    assert getattr(panel._sweep.choice, name) == value
    in_names = name == "deadline_propagation"  # of the alternatives
    assert repr(value) in panel.code or in_names


def test_whom_a_fault_strikes_is_a_choice_of_its_own(make: Any) -> None:
    panel = make()
    told(panel, "fault", "hang")
    assert (control_of(panel, "fault")["value"], control_of(panel, "strikes")["value"]) == ("hang", "synthesis")
    told(panel, "strikes", "planner")
    assert panel.fault == "hang:planner"
    assert control_of(panel, "fault")["value"] == "hang"
    panel.fault = "stall=5@1:*:0.2"
    assert control_of(panel, "fault")["value"] == "stall=5@1:*:0.2"
    assert ["stall=5@1:*:0.2"] * 2 in map(list, control_of(panel, "fault")["options"])
    told(panel, "fault", "none")
    assert "strikes" not in [control["name"] for control in panel.form["controls"]]


def test_an_alternative_that_was_added_to_the_catalogue_has_a_checkbox(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE, Eighth.name, ROW)
    panel = make()
    assert ("H", "H eighth") in control_of(panel, "alternatives")["options"]


def test_checkboxes_choose_alternatives_and_a_variant_gets_one(make: Any) -> None:
    panel = make()
    told(panel, "alternatives", ["A", "B", "C"])
    assert panel.alternatives == ("A", "B", "C")
    panel.alternatives = ("hard_timeout:naive", "cooperative")
    assert panel.alternatives == ("B:naive", "A")
    assert ("B:naive", "B hard timeout (naive)") in control_of(panel, "alternatives")["options"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decision_timeout_s", 0, "decision_timeout_s must be between"),
        ("decision_timeout_s", "soon", "decision_timeout_s must be a number, not 'soon'"),
        ("decision_timeout_s", 1e9, "decision_timeout_s must be between 0.1 and 600, not"),
        ("runs", 0, "runs must be between 1 and 1000, not"),
        ("runs", 2.5, "runs must be a whole number, not 2.5"),
        ("seed", -3, "seed must be between 0 and 2147483647, not -3"),
        ("fault", "hangs", "did you mean 'hang'"),
        ("latency_profile", "fastest", "fastest"),
        ("alternatives", (), "at least one"),
        ("alternatives", ("A", "cooperative"), "names one twice"),
        ("alternatives", ("G",), "G"),
        ("clock", "sundial", "sundial"),
        ("server", "stops-so", "server behaviour must be one of"),
        ("question", -1, "question must be a whole number"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_taken_back(make: Any, name: str, value: object, message: str) -> None:
    """By code it is an error; what is typed in a page is answered beside its control, until it is mended."""
    panel = make()
    panel.wait(PATIENCE_S)
    before, status = getattr(panel, name), panel.status
    with pytest.raises((ConfigurationError, traitlets.TraitError)):
        setattr(panel, name, value)
    told(panel, name, value)
    assert getattr(panel, name) == before
    assert (panel.running, panel.status) == (False, status)
    assert re.search(message, panel._errors[name])
    if name != "question":
        assert control_of(panel, name)["error"] == panel._errors[name]
    told(panel, name, before)
    assert not any(control["error"] for control in panel.form["controls"])


def test_a_move_is_seen_before_any_run_is_done(make: Any) -> None:
    executor = Scripted(held=True)
    panel = make(executor)
    executor.let_go(6)
    panel.wait(PATIENCE_S)
    panel.decision_timeout_s = 8.0
    assert panel.status == "8 s: being computed; on screen are the runs before: decision timeout (s) 20 → 8"
    assert panel.note == "Below are the runs before: decision timeout (s) 20 → 8."
    executor.let_go(6)
    panel.wait(PATIENCE_S)
    assert panel.note == ""
    assert panel.status.startswith("8 s: complete, 6 of 6 runs done. In time: A cooperative 0 of 3")


def test_the_view_in_front_is_drawn(make: Any) -> None:
    panel = make()
    panel.wait(PATIENCE_S)
    assert panel.page == "<p>Timeline: 6 runs</p>"
    told(panel, "view", "Overrun")
    panel.wait(PATIENCE_S)
    assert panel.page == "<p>Overrun: 6 runs</p>"


@pytest.mark.parametrize("view", VIEWS[:3])
def test_every_picture_has_words_and_a_table_beside_it_and_the_colours_of_its_page(make: Any, view: str) -> None:
    study = make().wait(PATIENCE_S)
    for narrow in (False, True):
        shown = view_html(view, study, narrow=narrow)
        assert re.search(r'<svg [^>]*role="img" aria-label="[A-Z][^"]+"', shown)
        assert not re.search(r"<svg [^>]*width=", shown)
        assert "var(--docmind-ink)" in shown
        assert not re.search("#(ffffff|1a1a1a|f4f4f4)", shown)
        assert "<caption>" in shown
        assert '<th scope="row">A cooperative</th>' in shown


def test_a_view_that_cannot_be_drawn_says_why(make: Any) -> None:
    study = make().wait(PATIENCE_S)
    shown = view_html("Timeline", dataclasses.replace(study, calls=study.calls.iloc[:0]))
    assert shown.startswith('<p class="error">Timeline cannot be drawn: calls has no rows')


def test_the_table_is_the_summary_of_the_study(make: Any) -> None:
    study = make().wait(PATIENCE_S)
    assert study._repr_html_() in view_html("Table", study)


def test_another_question_is_another_timeline_and_has_a_number_and_words(make: Any) -> None:
    study = make().wait(PATIENCE_S)
    ids = [study.runs.set_index("seed").loc[run_seed(7, number), "question_id"].iloc[0] for number in (1, 3)]
    assert [f"question {each}" in view_html("Timeline", study, n) for each, n in zip(ids, (1, 3), strict=True)] == [
        True
    ] * 2
    questions = make().form["questions"]
    assert [text.partition(" · ")[0] for text in questions] == ["most work after its deadline", "1", "2", "3"]


def test_stop_is_for_what_runs_and_keeps_what_is_done(make: Any) -> None:
    executor = Scripted(held=True)
    panel = make(executor)
    executor.let_go(2)
    executor.until_asked(4)
    assert panel.running
    panel._handle_custom_msg({"do": "stop"}, [])
    executor.let_go(2)
    study = panel.wait(PATIENCE_S)
    assert not panel.running
    assert 2 <= len(study.runs) <= 4
    assert not study.manifest["complete"]
    assert panel.status.startswith("20 s: stopped, ")
    # Idle now: a late click must not reach the runs that come next.
    panel.stop()
    panel._handle_custom_msg({"do": "run"}, [])
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
    assert (panel.status, panel.error) == ("20 s: not measured", "the services did not start")
    assert not panel.running
    monkeypatch.undo()
    panel.clock = "virtual"
    panel.wait(PATIENCE_S)
    assert panel.error == ""


def test_fifty_moves_leave_no_thread_and_no_growing_memory(make: Any) -> None:
    panel = make()
    panel.wait(PATIENCE_S)
    made = len(_instances)
    for step in range(50):
        panel.decision_timeout_s = 5.0 + step
    panel.wait(PATIENCE_S)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("docmind-panel")]
    assert len(panel._engine._known._packed) <= 6 * 52
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
    assert panel.comm is None
    assert not [thread.name for thread in threading.enumerate() if thread.name == "docmind-panel-runs"]
    assert len(executor.asked) == 2


@pytest.mark.parametrize("is_cold", [True, False])
def test_that_processes_start_is_said_only_when_they_do(
    make: Any, monkeypatch: pytest.MonkeyPatch, is_cold: bool
) -> None:
    monkeypatch.setattr(Workers, "is_cold", property(lambda _: is_cold))
    executor = Scripted(held=True)
    panel = make(executor)
    executor.until_asked(2)
    assert panel.status == "20 s: 0 of 6 runs done" + ("; worker processes start, which takes some seconds" * is_cold)
    executor.let_go(6)
    panel.wait(PATIENCE_S)


def test_a_graph_object_runs_here_and_its_nodes_are_the_rows_of_the_picture() -> None:
    executor = Scripted()
    panel = tune(
        dl.graph(graphs_agent.make(), ["What is yield?"]), 8, alternatives=("A", "B"), runs=1, workers=executor.workers
    )
    try:
        study = panel.wait(PATIENCE_S)
        assert executor.asked == []
        assert set(study.calls["role"]) == {"model", "tools"}
        assert {"<!-- model -->", "<!-- tools -->"} <= set(re.findall("<!-- .* -->", panel.page))
    finally:
        panel.close()


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
