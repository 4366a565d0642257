"""`show(study)` and `browse(study)`: the views of a finished study."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import traitlets

from docmind_lab.analysis.conditions import by_condition, condition_columns, in_words
from docmind_lab.analysis.plots.look import context_of
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import StudyTables
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.interfaces.panels.page import PANEL_CLASS, STATUS_CLASS, close_all, style_and_script, text_html
from docmind_lab.interfaces.panels.run_browser import RunBrowser
from docmind_lab.interfaces.panels.study_tabs import StudyTabs


class StudyPanel(traitlets.HasTraits):
    """The panel that `show` returns: tabs over one condition of a study.

    Args:
        study: The study; one with several conditions has a chooser.

    Attributes:
        condition: Number of the condition on screen, counted as in the chooser; a trait.
    """

    condition = traitlets.Int(0)

    def __init__(self, study: Study) -> None:
        super().__init__()
        if study.runs.empty:
            raise ConfigurationError("study.runs is empty: there is nothing to show; measure some runs first")
        self.whole = study
        columns = condition_columns(study.runs)
        conditions = list(by_condition(study.runs))
        self._runs = [group for _, group in conditions]
        names = [in_words(values, columns) or "the only condition" for values, _ in conditions]
        self._chooser = widgets.Dropdown(
            options=[(name, place) for place, name in enumerate(names)],
            description="Condition",
            style={"description_width": "initial"},
            layout={"width": "auto", "display": "none" if len(names) == 1 else None},
        )
        self._status = widgets.HTML()
        self._status.add_class(STATUS_CLASS)
        self.tabs = StudyTabs(self._draw, study.manifest)
        self.widget = widgets.VBox([*style_and_script(), self._chooser, self._status, self.tabs.widget])
        self.widget.add_class(PANEL_CLASS)
        traitlets.link((self, "condition"), (self._chooser, "value"))
        self.observe(lambda _: self._draw(), "condition")
        self._draw()

    @property
    def study(self) -> Study:
        """The part of the study on screen: the runs of the chosen condition, with their calls and events."""
        runs = self._runs[self.condition]
        ids = set(runs["run_id"])
        calls, events = (frame[frame["run_id"].isin(ids)] for frame in (self.whole.calls, self.whole.events))
        return Study(runs, calls, events, self.whole.manifest)

    def close(self) -> None:
        """Remove the panel from every page."""
        close_all(self.widget)

    def _draw(self) -> None:
        study = self.study
        self.tabs.put(self.tabs.view, self.tabs.draw(study), study)
        self._status.value = text_html(f"{context_of(study.runs)} · {len(study.runs)} runs")

    @traitlets.validate("condition")
    def _check_condition(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self._runs):
            raise ConfigurationError(
                f"condition must be between 0 and {len(self._runs) - 1}, not {proposal['value']}: the study has so many"
            )
        return int(proposal["value"])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def __repr__(self) -> str:
        return f"StudyPanel({len(self._runs)} conditions, {len(self.whole.runs)} runs)"


def show(study: Study) -> StudyPanel:
    """Show the tabs of a finished study.

    Args:
        study: The study; one with several conditions has a chooser.

    Raises:
        ConfigurationError: It has no runs.
    """
    return StudyPanel(study)


def browse(study: StudyTables, **choices: Any) -> RunBrowser:
    """Browse the runs of a study, and the calls and events of one of them.

        dl.browse(study)
        dl.browse(study, arm="B  hard timeout", calls_where={"seen_from": "server"})

    Args:
        study: A study, or anything else with its three tables.
        choices: Traits of `RunBrowser`.
    """
    return RunBrowser(study, **choices)
