"""The report of a research: how each source ended, what is partial, and what was kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

from docmind_lab.systems.research.exits import Completion
from docmind_lab.systems.research.research_ledger import ResearchLedger, SearchAttempt
from docmind_lab.systems.research.sources import Item
from docmind_lab.systems.research.tasks import ResearchTask


@dataclass(frozen=True)
class ResearchReport:
    """The result of a research.

    findings: what the model wrote of it, or a digest without a model when the budget was over. stop_reason: as in the
    runs table, empty for an ordinary end; error: type of what the findings failed with. completions: one for each
    source that was started, by hypothesis and source. not_started: hypothesis and source of those that were not.
    attempts: all queries, in the order in which they ended. items: what was kept. duration_s: from start to findings.
    """

    task: ResearchTask
    findings: str
    stop_reason: str
    completions: tuple[Completion, ...]
    not_started: tuple[tuple[str, str], ...]
    attempts: tuple[SearchAttempt, ...]
    items: tuple[Item, ...]
    duration_s: float
    error: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether some source was not searched to its end, or the findings are missing."""
        return bool(self.partial or self.not_started or self.stop_reason or self.error)

    @property
    def partial(self) -> tuple[Completion, ...]:
        """The sources that were started but not searched to their end."""
        return tuple(completion for completion in self.completions if completion.is_partial)

    def completion(self, hypothesis: str, source: str) -> Completion | None:
        """Return how a source ended for a hypothesis; None if it was not started."""
        return next((c for c in self.completions if (c.hypothesis, c.source) == (hypothesis, source)), None)

    def __str__(self) -> str:
        lines = [
            f"{self.task.text}",
            f"{len(self.items)} results kept of {len(self.attempts)} queries in {self.duration_s:.1f} s",
            *(_line(completion) for completion in self.completions),
            *(f"  {hypothesis} {source}: not started" for hypothesis, source in self.not_started),
        ]
        lines.append("Partial: " + _describe_partial(self) if self.is_partial else "Complete.")
        return "\n".join([*lines, "", self.findings])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _line(completion: Completion) -> str:
    counts = f"{completion.queries_executed} queries, {completion.results_accepted} of {completion.results_found} kept"
    unfiltered = f", {completion.results_unfiltered} unfiltered" if completion.results_unfiltered else ""
    reason = completion.reasoning if completion.exit_reason == "llm_saturated" else completion.note
    return (
        f"  {completion.hypothesis} {completion.source}: {completion.exit_reason} ({counts}{unfiltered})"
        f"{'. ' + reason if reason else ''}"
    )


def _describe_partial(report: ResearchReport) -> str:
    parts = [f"{c.hypothesis} {c.source} ({c.exit_reason})" for c in report.partial]
    parts += [f"{hypothesis} {source} (not started)" for hypothesis, source in report.not_started]
    if report.stop_reason or report.error:
        parts.append(f"no findings ({report.stop_reason or report.error})")
    return ", ".join(parts) + "."


def digest(ledger: ResearchLedger) -> str:
    """Summarise a research in words, without a model."""
    completions, items = ledger.completions(), ledger.items()
    if not completions:
        return "Nothing was searched: there was no budget to begin with."
    reasons = Counter(completion.exit_reason for completion in completions)
    ends = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return f"{len(items)} results were kept of {len(ledger.attempts())} queries. Sources ended by: {ends}."


def report_of(
    ledger: ResearchLedger, findings: str, *, stop_reason: str = "", error: str = "", task: ResearchTask
) -> ResearchReport:
    """Build the report from a ledger."""
    started = {(completion.hypothesis, completion.source): completion for completion in ledger.completions()}
    planned = [(hypothesis.id, source) for hypothesis in task.hypotheses for source in task.sources]
    return ResearchReport(
        task=task,
        findings=findings or digest(ledger),
        stop_reason=stop_reason,
        completions=tuple(started[key] for key in planned if key in started),
        not_started=tuple(key for key in planned if key not in started),
        attempts=ledger.attempts(),
        items=ledger.items(),
        duration_s=ledger.elapsed_s(),
        error=error,
    )
