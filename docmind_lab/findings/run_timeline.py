"""One run as lines of text: its calls on a time axis, the deadline, and other events.

                               0 s                       2.0 s              4.1 s
llm        router      0.0.1   ├──────┤                   ┊                           0.31 s  ok
llm        synthesis   2.0.1                     ├────────┊──────────────▶            2.20 s  abandoned
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.alternative_catalogue import label_of
from docmind_lab.core.errors import NoSuchRecord
from docmind_lab.core.text import one_line
from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import rows_of

_SHOWN_EVENTS = {
    "returned": "the caller returned",
    "stop_requested": "the stop flag was raised",
    "checkpoint_blocked": "a late checkpoint was kept out",
    "handoff_refused": "a handoff was refused",
    "retry": "a failed call is tried again",
    "deadline_cut": "a call was cut by the deadline",
    "router_fallback": "the injected router gave nothing; explicit retrieval followed",
    "quiet": "nothing was at work any more",
    "horizon": "observation ended, the run still at work",
}
_LEAST_BAR = 20


@dataclass(frozen=True)
class RunTimeline:
    """The calls and events of one run, drawn as text. Raises NoSuchRecord, in `of`, for an unknown run."""

    run: Mapping[str, Any]
    calls: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study, run_id: str) -> RunTimeline:
        """Return the timeline of the run with this id, or of the only one whose id ends with it.

        Raises: NoSuchRecord naming the nearest ids.
        """
        ids = [str(known) for known in study.runs["run_id"]]
        result = [known for known in ids if known == run_id] or [known for known in ids if known.endswith(run_id)]
        if len(result) != 1:
            what = f"{len(result)} runs whose ids end with" if result else "no run"
            examples = ", ".join((result or ids)[:5])
            raise NoSuchRecord(f"the study has {what} {run_id!r}; runs are named like {examples}")
        (run,) = rows_of(study.runs[study.runs["run_id"] == result[0]])
        calls = study.calls[(study.calls["run_id"] == result[0]) & (study.calls["seen_from"] == "client")]
        events = study.events[study.events["run_id"] == result[0]]
        in_order = calls.sort_values(["started_at_s", "call_id", "attempt"])
        return cls(run, rows_of(in_order), rows_of(events.sort_values("at_s")))

    @property
    def end_s(self) -> float:
        """The end of the axis, in seconds since the run's start."""
        ends = [self.run["decision_timeout_s"], self.run["returned_at_s"], self.run["quiescent_at_s"]]
        return max(float(end) for end in ends if not math.isnan(float(end)))

    def title(self) -> str:
        """Describe which run this is and how it ended."""
        run = self.run
        label = one_line(label_of(str(run["alternative"]), str(run["alternative_options"])))
        back = "never came back" if math.isnan(run["returned_at_s"]) else f"back after {run['returned_at_s']:.3f} s"
        reason = f" ({run['stop_reason']})" if run["stop_reason"] else ""
        return (
            f"{run['run_id']} · {label} · question {run['question_id']} · {run['decision_timeout_s']:g} s decision "
            f"timeout · {run['outcome']}{reason}, {back}"
        )

    def lines(self, width: int = 120) -> list[str]:
        """Return the axis and one line for each call, at most `width` characters where labels allow it."""
        label_width = max((len(label) for _, label in self._labels()), default=0)
        bar_width = max(_LEAST_BAR, width - label_width - 32)
        axis = _Axis(self.end_s, float(self.run["decision_timeout_s"]), bar_width)
        rows = [" " * label_width + "  " + axis.header()]
        for call, label in self._labels():
            bar = axis.bar(call["started_at_s"], call["ended_at_s"])
            rows.append(f"{label:<{label_width}}  {bar}  {_note(call)}")
        return rows

    def _labels(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        for call in self.calls:
            attempt = f" #{call['attempt']}" if call["attempt"] > 1 else ""
            yield call, f"{call['kind']:<9} {call['role']:<11} {call['step']}{attempt}"

    def notes(self) -> list[str]:
        """Return the other events, in order: "2.003 s  the caller returned"."""
        lines = []
        for event in self.events:
            if event["event"] in _SHOWN_EVENTS:
                detail = json.loads(event["detail"])
                sentence = ", ".join(f"{name} {value}" for name, value in detail.items() if not isinstance(value, list))
                role = f"{event['role']}: " if event["role"] else ""
                text = _SHOWN_EVENTS[event["event"]] + (f" ({sentence})" if sentence else "")
                lines.append(f"{event['at_s']:8.3f} s  {role}{text}")
        return lines


def _note(call: Mapping[str, Any]) -> str:
    late = ", sent after the deadline" if call["started_after_deadline"] else ""
    error = f" {call['error_type']}" if call["error_type"] else ""
    took = "never ended" if math.isnan(call["latency_s"]) else f"{call['latency_s']:.3f} s"
    return f"{took:>9}  {call['outcome']}{error}{late}"


@dataclass(frozen=True)
class _Axis:
    end_s: float
    deadline_s: float
    width: int

    def _column(self, at_s: float) -> int:
        return min(self.width - 1, max(0, round(at_s / self.end_s * (self.width - 1)))) if self.end_s > 0 else 0

    def header(self) -> str:
        at = self._column(self.deadline_s)
        text = f"deadline {self.deadline_s:g} s"
        start = min(max(4, at - len(text) // 2), self.width - len(text))
        end = f"{self.end_s:.3g} s"
        line = f"{'0 s':<{start}}{text}"
        return line if len(line) + len(end) + 2 > self.width else f"{line:<{self.width - len(end)}}{end}"

    def bar(self, begun_s: float, ended_s: float) -> str:
        cells = [" "] * self.width
        deadline = self._column(self.deadline_s)
        cells[deadline] = "┊"
        first = self._column(begun_s)
        last = self.width - 1 if math.isnan(ended_s) else self._column(ended_s)
        for column in range(first, last + 1):
            cells[column] = "┿" if column == deadline and first < deadline < last else "━"
        if math.isnan(ended_s):
            cells[last] = "▶"
        return "".join(cells)
