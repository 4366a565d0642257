"""The loop that works on one source, as a graph: each phase of a query is a step.

    write → search → filter → record → check ─┐
      ▲                                       │  until a reason to leave is found
      └───────────────────────────────────────┘

A stop flag or a drain takes effect between steps. The state of the loop, a `SourceRun`, is in no checkpoint: what it
has kept is in the ledger after each query.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.core.errors import BudgetError
from docmind_lab.core.sync_async import Steps
from docmind_lab.systems.base.bounded_calls import SEARCH_FAILURES
from docmind_lab.systems.base.model_calls import FAILURES
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.steps_node import add_steps
from docmind_lab.systems.research import prompts
from docmind_lab.systems.research.exits import Completion, ExitReason
from docmind_lab.systems.research.research_calls import (
    Accepted,
    CallPlace,
    Decided,
    MalformedDecision,
    NextQuery,
    Saturation,
    decide,
)
from docmind_lab.systems.research.research_ledger import ResearchLedger, SearchAttempt
from docmind_lab.systems.research.sources import Item, Source, SourceSearch, unseen
from docmind_lab.systems.research.tasks import Hypothesis


@dataclass
class SourceRun:
    """The state of work on one source. Only its own loop changes it.

    history, kept: attempts that are over, and what they brought, each item once. query, results, chosen: of the
    attempt under way. decision: the model's last one.
    """

    hypothesis: Hypothesis
    source: Source
    ledger: ResearchLedger
    place: CallPlace
    max_queries: int
    history: list[SearchAttempt] = field(default_factory=list)
    kept: list[Item] = field(default_factory=list)
    query: str = ""
    results: tuple[Item, ...] = ()
    chosen: tuple[Item, ...] = ()
    error: str = ""
    decision: Saturation | None = None
    exit_reason: ExitReason | None = None
    started_at_s: float = 0.0
    attempt_at_s: float = 0.0

    def __post_init__(self) -> None:
        self.started_at_s = self.ledger.elapsed_s()

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.spec.name

    def leave(self, reason: ExitReason) -> None:
        """Set the reason why the loop ends; only the first reason counts."""
        if self.exit_reason is None:
            self.exit_reason = reason

    def begin_attempt(self, query: str) -> None:
        """Begin an attempt: the query is put to the source now."""
        self.query, self.results, self.chosen, self.error = query, (), (), ""
        self.attempt_at_s = self.ledger.elapsed_s()

    def end_attempt(self) -> None:
        """Deduplicate the results that the filter chose, and record the attempt and what is kept of it."""
        new = unseen(self.chosen, (item.key for item in self.kept))
        attempt = SearchAttempt(
            hypothesis=self.hypothesis.id,
            source=self.name,
            query=self.query,
            found=len(self.results),
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
        """Keep the source's results without the filter, because nothing new may start."""
        self.chosen = tuple(replace(item, filtered=False) for item in self.results)

    def wants_decision(self) -> bool:
        """Return whether to ask the model for a decision: not after the first query, nor past the budget."""
        return len(self.history) > 1 and not self.place.budget_over()

    def check(self) -> None:
        """Leave the source by the decision, the number of attempts, its time or the budget, in this order."""
        longest_s = self.ledger.limits.max_time_per_source_seconds
        if self.decision is not None and self.decision.decision == "SATURATED":
            self.leave("llm_saturated")
        if len(self.history) >= self.max_queries:
            self.leave("max_queries_reached")
        if self.ledger.elapsed_s() - self.started_at_s >= longest_s:
            self.leave("time_limit_reached")
        if self.place.budget_over():
            self.leave("research_budget_exhausted")

    def completion(self) -> Completion:
        """Return how the work on the source ended, from the current state."""
        items = self.kept
        return Completion(
            hypothesis=self.hypothesis.id,
            source=self.name,
            exit_reason=self.exit_reason or "source_error",
            queries_executed=len(self.history),
            queries_failed=sum(bool(attempt.error) for attempt in self.history),
            results_found=sum(attempt.found for attempt in self.history),
            results_accepted=sum(item.filtered for item in items),
            results_unfiltered=sum(not item.filtered for item in items),
            saturation_decision=None if self.decision is None else self.decision.decision,
            started_at_s=self.started_at_s,
            ended_at_s=self.ledger.elapsed_s(),
        )


@contextlib.contextmanager
def _leaving(run: SourceRun) -> Iterator[None]:
    """Leave the source if the model gives no decision inside the block."""
    try:
        yield
    except BudgetError:
        run.leave("research_budget_exhausted")
    except (MalformedDecision, *FAILURES):
        run.leave("query_generation_error")


class LoopState(TypedDict):
    """State of the loop's graph: the source's run, which lives in this process only."""

    run: Annotated[SourceRun, UntrackedValue]


@dataclass(frozen=True)
class SourceLoop:
    """The loop that works on any source. model_clients: of the query writer, the filter and the judge, by role."""

    model_clients: Mapping[str, ModelClient]
    search_source: SourceSearch

    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile the loop; its input is {"run": SourceRun}."""
        graph = StateGraph(LoopState)
        steps = {"write": self.write, "search": self.search, "filter": self.filter}
        add_steps(graph, **steps, record=self.record, check=self.check)
        graph.add_edge(START, "write")
        graph.add_conditional_edges("write", _route_unless_left("search"), ["search", END])
        graph.add_conditional_edges("search", _filter_or_record, ["filter", "record"])
        graph.add_edge("filter", "record")
        graph.add_edge("record", "check")
        graph.add_conditional_edges("check", _route_unless_left("write"), ["write", END])
        return graph.compile(checkpointer=False)

    def write(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Ask the model for the next query, and leave the source if it has none."""
        run = state["run"]
        if run.max_queries <= 0:
            run.leave("max_queries_reached")
            return {}
        if run.place.budget_over():
            run.leave("research_budget_exhausted")
            return {}
        if run.place.winds_down(prompts.WRITER):
            run.leave("wound_down")
            return {}
        prompt = prompts.for_writer(run.hypothesis, run.source.spec, run.history, run.kept)
        with _leaving(run):
            suggestion = yield from self._decide(run, prompts.WRITER, prompt, NextQuery)
            self._begin_query(run, suggestion.query)
        return {}

    def _begin_query(self, run: SourceRun, query: str) -> None:
        if run.place.budget_over():
            run.leave("research_budget_exhausted")
        elif not query:
            run.leave("empty_query_suggestion")
        elif not run.ledger.ask(run.name, query):
            run.leave("duplicate_query_skipped")
        else:
            run.begin_attempt(query)

    def search(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Search the source for the query."""
        run = state["run"]
        try:
            run.results = yield self.search_source.search(run.source, run.query, run.hypothesis.id, run.place.state)
        except BudgetError as error:
            run.error = type(error).__name__
            run.leave("research_budget_exhausted")
        except SEARCH_FAILURES as error:
            run.error = type(error).__name__
        if run.place.budget_over():
            run.keep_unfiltered()
        return {}

    def filter(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Ask the model which results bear on the hypothesis."""
        run = state["run"]
        prompt = prompts.for_filter(run.hypothesis, run.results)
        try:
            chosen = yield from self._decide(run, prompts.FILTER, prompt, Accepted)
        except BudgetError:
            run.keep_unfiltered()
        except (MalformedDecision, *FAILURES) as error:
            # Without a filter's word nothing is accepted; if that is for want of budget, it is kept all the same.
            run.error = type(error).__name__
            if run.place.budget_over():
                run.keep_unfiltered()
        else:
            run.chosen = tuple(run.results[number - 1] for number in chosen.accepted)
        return {}

    def record(self, state: LoopState, config: RunnableConfig) -> dict[str, Any]:
        """End the attempt: deduplicate its results, and record what is kept."""
        state["run"].end_attempt()
        return {}

    def check(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Ask the model whether the source is saturated, then check the limits."""
        run = state["run"]
        if run.wants_decision():
            prompt = prompts.for_judge(run.hypothesis, run.source.spec, run.history, run.kept)
            with _leaving(run):
                run.decision = yield from self._decide(run, prompts.JUDGE, prompt, Saturation)
        run.check()
        return {}

    def _decide(self, run: SourceRun, role: str, prompt: str, kind: type[Decided]) -> Steps[Decided]:
        retries = run.ledger.limits.llm_retries
        return decide(self.model_clients[role], prompt, kind, run.place, retries, of=len(run.results))


def _route_unless_left(following: str) -> Any:
    def route(state: LoopState) -> str:
        return END if state["run"].exit_reason is not None else following

    return route


def _filter_or_record(state: LoopState) -> str:
    run = state["run"]
    return "filter" if run.results and not run.error and not run.chosen else "record"
