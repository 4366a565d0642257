"""What a panel shows at once when its decision timeout moves: the runs of its control, replayed.

preview = TracePreview()
preview.learn(sweep)            # when its runs are done
preview.answer(choice)          # a table for another decision timeout, in milliseconds
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pandas as pd

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.text import number, one_line
from docmind_lab.findings.what_if.what_if import what_if
from docmind_lab.tables.traces.rules import NamedRule, rule_of
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study
from docmind_lab.views.panels.panel_run import PanelRun
from docmind_lab.views.panels.panel_settings import PanelChoice
from docmind_lab.views.reports.report_html import table_html
from docmind_lab.views.reports.report_model import Table


class TracePreview:
    """The traces of a panel's control, by the settings that they are of; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._traces: dict[PanelChoice, tuple[float, Traces]] = {}

    def learn(self, sweep: PanelRun) -> None:
        """Keep the control's runs of a request that is done, unless runs observed for longer are known."""
        choice = sweep.choice
        if sweep.state != "done" or choice.clock != "virtual":
            return
        with self._lock:
            known_s, _ = self._traces.get(_key(choice), (0.0, None))
        if known_s >= choice.decision_timeout_s:
            return
        try:
            traces = traces_of_study(sweep.study())
        except DocmindLabError:
            return  # a panel without the control has nothing to replay
        with self._lock:
            self._traces[_key(choice)] = (choice.decision_timeout_s, traces)

    def answer(self, choice: PanelChoice) -> str:
        """Return a table of what the alternatives would do at the decision timeout; "" where no trace can say."""
        with self._lock:
            _, traces = self._traces.get(_key(choice), (0.0, None))
        rules = _rules(choice)
        if traces is None or not rules or choice.clock != "virtual":
            return ""
        behaviour = "stops" if choice.stops_on_disconnect else "goes-on"
        frame = what_if(traces, [choice.decision_timeout_s], rules, behaviour).frame
        rows = pd.DataFrame(
            {
                "alternative": [one_line(str(arm)) for arm in frame["arm"]],
                "in time": [f"{count} of {runs}" for count, runs in zip(frame["in_time"], frame["runs"], strict=True)],
                "callers late": frame["overran"],
                "late work (s a run)": [
                    f"{'≥ ' if is_bound and seconds else ''}{number(seconds, 1)}"
                    for seconds, is_bound in zip(frame["busy_after_s"], frame["lower_bounds"], strict=True)
                ],
            }
        )
        title = (
            f"{choice.decision_timeout_s:g} s, from traces: {len(traces)} runs of the control, replayed. "
            "Virtual time measures the same now."
        )
        return table_html(Table(title, rows))

    def knows(self, choice: PanelChoice) -> bool:
        """Whether it has runs of the control under these settings, whatever the decision timeout."""
        with self._lock:
            return _key(choice) in self._traces


def control_of(choice: PanelChoice) -> PanelChoice:
    """Return the settings with the control in place of the alternatives."""
    return dataclasses.replace(choice, alternatives=("unguarded",), deadline_propagation="own")


def _key(choice: PanelChoice) -> PanelChoice:
    """The settings that a trace of the control depends on."""
    same = {"decision_timeout_s": 1.0, "stops_on_disconnect": True}
    return dataclasses.replace(control_of(choice), **same)  # type: ignore[arg-type]


def _rules(choice: PanelChoice) -> list[NamedRule]:
    """The rules of the panel's alternatives, without those that a trace cannot say of."""
    rules = []
    for name in choice.named_alternatives():
        with contextlib.suppress(ConfigurationError):
            rules.append(rule_of(name))
    return rules
