"""What the lint says: of each alternative whether it keeps the deadline on this graph, and why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from docmind_lab.experiments.lint.facts import NodeFacts
from docmind_lab.experiments.lint.findings import Finding, late
from docmind_lab.experiments.lint.overruns import Overrun

Keeping = Literal["keeps", "caller only", "does not keep", "does not run"]


@dataclass(frozen=True)
class Verdict:
    """One alternative. runs: measured under it; late: those with an overrun beyond the slack.

    keeping: "keeps" (the caller is back and nothing goes on), "caller only" (the caller is back, and work goes on),
    "does not keep", "does not run" (the graph fails in the alternative's colour). worst: the run that shows it.
    """

    alternative: str
    keeping: Keeping
    why: str
    runs: int
    late: int
    worst: Overrun | None = None

    # As HTML, since a notebook breaks long lines of plain text in mid-word.
    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.alternative)}</b> {escape(self.keeping)}: {escape(self.why)}</p>"


@dataclass(frozen=True)
class LintReport:
    """A graph under its deadline. slack_s: how much later than the deadline still keeps it."""

    graph: str
    decision_timeout_s: float
    slack_s: float
    nodes: tuple[NodeFacts, ...]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    overruns: tuple[Overrun, ...]

    @property
    def keeps(self) -> bool:
        """Whether any of the alternatives keeps the deadline."""
        return any(verdict.keeping == "keeps" for verdict in self.verdicts)

    @property
    def nearest(self) -> Verdict:
        """The alternative that keeps it, or comes nearest."""
        return min(self.verdicts, key=lambda verdict: verdict.worst.worst_s if verdict.worst else 0.0 - verdict.runs)

    def after_a_cancel_s(self, node: str) -> float:
        """For how long the node's work was seen to go on after a cancellation, under C; 0.0 if it was not."""
        seen = [found.work_s for found in self.overruns if found.node == node and found.trial.alternative == "C"]
        return max(seen, default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types, but for infinities."""
        said = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != "overruns"}
        plain = {name: _plain(value) for name, value in said.items()}
        return {**plain, "keeps": self.keeps}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def verdict_of(alternative: str, runs: int, overruns: Sequence[Overrun], slack_s: float) -> Verdict:
    """The verdict on an alternative that ran."""
    if not overruns:
        return Verdict(alternative, "keeps", f"back and quiet within {slack_s:g} s in {runs} runs", runs, 0)
    waited = [overrun for overrun in overruns if overrun.caller_s > slack_s]
    worst = max(waited or overruns, key=lambda overrun: overrun.caller_s if waited else overrun.work_s)
    keeping: Keeping = "does not keep" if waited else "caller only"
    return Verdict(alternative, keeping, late(worst), runs, len(overruns), worst)
