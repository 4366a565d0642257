"""The loop of one source as a graph of its own: each phase of a query is a step, so there is something between them.

    write → search → filter → record → check ─┐
      ▲                                       │  until a reason to leave is found
      └───────────────────────────────────────┘

What stops a run between steps (a stop flag, a drain) is inherited by this graph. The run of a source is no checkpoint's
business: what it has kept is in the ledger after each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.core.errors import BudgetError
from docmind_lab.docmind.graphs.model_client import Asking
from docmind_lab.docmind.graphs.sync_async import Steps, StepsNode
from docmind_lab.workloads.research import prompts
from docmind_lab.workloads.research.decisions import MalformedDecision, accepted, next_query, saturation
from docmind_lab.workloads.research.model_calls import MODEL_FAILURES, decided
from docmind_lab.workloads.research.searching import SEARCH_FAILURES, Searching
from docmind_lab.workloads.research.source_run import SourceRun

_CUT = "The deadline cut the call under way"


class LoopState(TypedDict):
    """The run of the source, which lives in this process only."""

    run: Annotated[SourceRun, UntrackedValue]


@dataclass(frozen=True)
class SourceLoop:
    """What a loop needs besides its source. askings: by role, of the query writer, the filter and the judge."""

    askings: Mapping[str, Asking]
    searching: Searching

    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The compiled loop; its input is {"run": SourceRun}."""
        graph = StateGraph(LoopState)
        for name, step in (
            ("write", self.write),
            ("search", self.search),
            ("filter", self.filter),
            ("record", self.record),
            ("check", self.check),
        ):
            graph.add_node(name, StepsNode(name, step))
        graph.add_edge(START, "write")
        graph.add_conditional_edges("write", _unless_left("search"), ["search", END])
        graph.add_conditional_edges("search", _filter_or_record, ["filter", "record"])
        graph.add_edge("filter", "record")
        graph.add_edge("record", "check")
        graph.add_conditional_edges("check", _unless_left("write"), ["write", END])
        return graph.compile(checkpointer=False)

    def write(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """The next query, unless there is none to ask."""
        run = state["run"]
        if run.max_queries <= 0:
            run.leave("max_queries_reached", "max_queries_per_source is 0 for this source")
            return {}
        if run.place.budget_over():
            run.leave("research_budget_exhausted", "The budget was over before the next query")
            return {}
        given = prompts.for_writer(run.hypothesis, run.source.spec, run.history, run.kept)
        try:
            suggestion = yield from decided(
                self.askings[prompts.WRITER], given, next_query, run.place, run.ledger.limits.llm_retries
            )
        except BudgetError:
            run.leave("research_budget_exhausted", _CUT)
        except (MalformedDecision, *MODEL_FAILURES) as error:
            run.leave("query_generation_error", f"The query writer failed: {type(error).__name__}")
        else:
            self._take_up(run, suggestion.query)
        return {}

    def _take_up(self, run: SourceRun, query: str) -> None:
        if run.place.budget_over():
            run.leave("research_budget_exhausted", "The budget ended while the query was written")
        elif not query:
            run.leave("empty_query_suggestion", "The query writer had no further query")
        elif not run.ledger.asked.add(run.name, query):
            run.leave("duplicate_query_skipped", "The query was asked before, or nearly so")
        else:
            run.begin_attempt(query)

    def search(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """What the source has for the query."""
        run = state["run"]
        try:
            run.found = yield self.searching.search(run.source, run.query, run.hypothesis.id, run.place.state)
        except BudgetError as error:
            run.error = type(error).__name__
            run.leave("research_budget_exhausted", _CUT)
        except SEARCH_FAILURES as error:
            run.error = type(error).__name__
        if run.place.budget_over():
            run.keep_unfiltered()
        return {}

    def filter(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """What of it bears on the hypothesis."""
        run = state["run"]
        given, most = prompts.for_filter(run.hypothesis, run.found), len(run.found)
        try:
            places = yield from decided(
                self.askings[prompts.FILTER],
                given,
                lambda reply: accepted(reply, of=most),
                run.place,
                run.ledger.limits.llm_retries,
            )
        except BudgetError:
            run.keep_unfiltered()
        except (MalformedDecision, *MODEL_FAILURES) as error:
            # Without a filter's word nothing is accepted; if that is for want of budget, it is kept all the same.
            run.error = type(error).__name__
            if run.place.budget_over():
                run.keep_unfiltered()
        else:
            run.chosen = tuple(run.found[place] for place in places)
        return {}

    def record(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """The attempt is over: deduplicated, recorded, on disk."""
        yield from ()  # steps, though there is nothing to wait for
        state["run"].end_attempt()
        return {}

    def check(self, state: LoopState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """The model's decision, then the limits."""
        run = state["run"]
        if run.wants_decision():
            given = prompts.for_judge(run.hypothesis, run.source.spec, run.history, run.kept)
            try:
                run.decision = yield from decided(
                    self.askings[prompts.JUDGE], given, saturation, run.place, run.ledger.limits.llm_retries
                )
            except BudgetError:
                run.leave("research_budget_exhausted", _CUT)
            except (MalformedDecision, *MODEL_FAILURES) as error:
                run.leave("query_generation_error", f"The saturation judge failed: {type(error).__name__}")
        run.check()
        return {}


def _unless_left(following: str) -> Any:
    def route(state: LoopState) -> str:
        return END if state["run"].exit_reason is not None else following

    return route


def _filter_or_record(state: LoopState) -> str:
    run = state["run"]
    return "filter" if run.found and not run.error and not run.chosen else "record"
