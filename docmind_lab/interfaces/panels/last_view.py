"""Which runs a view is drawn of, so that it is drawn again only when those have changed."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.panels.panel_run import PanelRun
from docmind_lab.interfaces.panels.study_tabs import Content, StudyTabs


@dataclass(frozen=True)
class LastView:
    """What was drawn last, and the runs that it was drawn of."""

    view: str = ""
    runs: tuple[MeasuredRun, ...] = ()
    content: Content = ""

    def is_of(self, view: str, runs: tuple[MeasuredRun, ...]) -> bool:
        """Whether it is this view of these very runs."""
        return view == self.view and len(runs) == len(self.runs) and all(map(operator.is_, runs, self.runs))


def runs_in_front(sweep: PanelRun, tabs: StudyTabs) -> tuple[MeasuredRun, ...]:
    """The runs that the view in front shows: in the timeline those of its question, as soon as there is one."""
    asked = [run for run in sweep.measured if run.run.seed == tabs.question_seed] if tabs.view == "Timeline" else []
    return tuple(asked) or sweep.measured
