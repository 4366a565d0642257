"""The work on one source for one hypothesis: what is known of it while it goes on, and how it is said to have ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from docmind_lab.workloads.research.decisions import Saturation
from docmind_lab.workloads.research.exits import Completion, ExitReason, exit_after_attempt
from docmind_lab.workloads.research.items import Item, unseen
from docmind_lab.workloads.research.ledger import ResearchLedger, SearchAttempt
from docmind_lab.workloads.research.model_calls import CallPlace
from docmind_lab.workloads.research.sources import Source
from docmind_lab.workloads.research.tasks import Hypothesis


@dataclass
class SourceRun:
    """One source under way. Its loop is the only one that changes it.

    history, kept: attempts that are over, and what they brought, each item once. query, found, current: of the attempt
    under way. decision: the model's last one. judged: whether the model is asked for decisions at all; a replay past
    the stop does without.
    """

    hypothesis: Hypothesis
    source: Source
    ledger: ResearchLedger
    place: CallPlace
    max_queries: int
    judged: bool = True
    history: list[SearchAttempt] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    query: str = ""
    found: tuple[Item, ...] = ()
    chosen: tuple[Item, ...] = ()
    error: str = ""
    decision: Saturation | None = None
    exit_reason: ExitReason | None = None
    note: str = ""
    started_at_s: float = 0.0
    attempt_at_s: float = 0.0

    def __post_init__(self) -> None:
        self.started_at_s = self.ledger.elapsed_s()

    @property
    def name(self) -> str:
        """The source's."""
        return self.source.spec.name

    def leave(self, reason: ExitReason, note: str = "") -> None:
        """The loop is over for this reason; the first one given counts."""
        if self.exit_reason is None:
            self.exit_reason, self.note = reason, note

    def begin_attempt(self, query: str) -> None:
        """The query is put to the source now."""
        self.query, self.found, self.chosen, self.error = query, (), (), ""
        self.attempt_at_s = self.ledger.elapsed_s()

    def end_attempt(self) -> None:
        """What the attempt found and the filter chose is deduplicated, recorded and kept."""
        new = unseen(self.chosen, (item.key for item in self.kept))
        attempt = SearchAttempt(
            hypothesis=self.hypothesis.id,
            source=self.name,
            query=self.query,
            found=len(self.found),
            accepted=sum(item.filtered for item in self.chosen),
            unfiltered=sum(not item.filtered for item in self.chosen),
            new=tuple(item.key for item in new),
            error=self.error,
            started_at_s=self.attempt_at_s,
            ended_at_s=self.ledger.elapsed_s(),
        )
        self.history.append(attempt)
        self.kept += new
        self.ledger.record(attempt, new)

    def keep_unfiltered(self) -> None:
        """Nothing new may start, a filter included: what the source gave is kept as it is."""
        self.chosen = tuple(replace(item, filtered=False) for item in self.found)

    def wants_decision(self) -> bool:
        """Whether the model is to be asked for a decision now: not after the first query, nor past the budget."""
        enough = len(self.history) > 1 or self.ledger.limits.check_after_first_query
        return self.judged and enough and not self.place.budget_over()

    def check(self) -> None:
        """Leave if one of the limits, or the model's decision, says so."""
        limits = self.ledger.limits
        reason = exit_after_attempt(
            saturated=self.decision is not None and self.decision.decision == "SATURATED",
            attempts=len(self.history),
            max_queries=self.max_queries,
            source_time_over=self.ledger.elapsed_s() - self.started_at_s >= limits.max_time_per_source_seconds,
            budget_over=self.place.budget_over(),
        )
        notes = {
            "max_queries_reached": f"Reached max_queries_per_source ({self.max_queries}) before saturation",
            "time_limit_reached": (
                f"Reached max_time_per_source_seconds ({limits.max_time_per_source_seconds:g}) before saturation"
            ),
            "research_budget_exhausted": "The research budget, or a propagated deadline, ended before saturation",
        }
        if reason is not None:
            self.leave(reason, notes.get(reason, ""))

    def completion(self) -> Completion:
        """How the source ended, as it stands."""
        kept = self.kept
        return Completion(
            hypothesis=self.hypothesis.id,
            source=self.name,
            exit_reason=self.exit_reason or "source_error",
            queries_executed=len(self.history),
            queries_failed=sum(bool(attempt.error) for attempt in self.history),
            results_found=sum(attempt.found for attempt in self.history),
            results_accepted=sum(item.filtered for item in kept),
            results_unfiltered=sum(not item.filtered for item in kept),
            saturation_decision=None if self.decision is None else self.decision.decision,
            reasoning="" if self.decision is None else self.decision.reasoning,
            note=self.note,
            started_at_s=self.started_at_s,
            ended_at_s=self.ledger.elapsed_s(),
        )
