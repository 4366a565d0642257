"""The research as a graph: hypotheses in turn, the sources of each side by side, then the findings.

    begin → source × n → gather → source × n → gather → … → report

Which limit is whose: `max_time_minutes` is the research's own budget and holds under every alternative; it starts with
`begin`, is checked before anything starts, and cuts nothing. A deadline in the state (alternatives that
propagate) is looked at in the same places, and the call path cuts what is under way at it. The earlier one counts.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, current_policy
from docmind_lab.core.errors import BudgetError, GraphError
from docmind_lab.core.sync_async import Operation, Steps
from docmind_lab.network.recorder import note_event
from docmind_lab.systems.base.model_calls import FAILURES
from docmind_lab.systems.base.state import Merged, keep_reason
from docmind_lab.systems.base.steps_node import add_steps
from docmind_lab.systems.research import prompts
from docmind_lab.systems.research.exits import Completion
from docmind_lab.systems.research.loop import SourceLoop, SourceRun
from docmind_lab.systems.research.research_calls import CallPlace, reply_of
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.sources import Source
from docmind_lab.systems.research.tasks import ResearchTask

LEDGER_KEY = "research_ledger"
"""Where a run's configuration holds its ledger."""

# Two hundred queries to a source take a thousand steps; no research needs a hundred thousand.
_MOST_STEPS = 100_000

_FINDINGS = "findings"
"""Id of the message with the findings, or with the draft of them."""

Compiled = CompiledStateGraph[Any, Any, Any, Any]


class ResearchState(TypedDict, total=False):
    """State of the research graph.

    task: what is researched. documents: what was kept, seen through the run's ledger. jobs: hypothesis and source, by
    place, of what is to be started next. following: place of the first hypothesis after those. deadline_ts: as in
    `base/state.py`. Neither task, documents nor deadline is in a checkpoint: the ledger has what must outlive one.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    task: Annotated[ResearchTask, UntrackedValue]
    documents: Annotated[Sequence[Mapping[str, Any]], UntrackedValue]
    deadline_ts: Annotated[float, UntrackedValue]
    jobs: list[list[int]]
    following: int
    stop_reason: Annotated[str, Merged(str, keep_reason)]


@dataclass(frozen=True)
class ResearchGraph:
    """Builds the graph of a research. sources: by name. loop: the loop that works on one source."""

    loop: SourceLoop
    sources: Mapping[str, Source]

    def compile(self, checkpointer: BaseCheckpointSaver[Any] | None = None) -> Compiled:
        """Compile the graph. A run needs a ledger under `LEDGER_KEY` in its configuration."""
        work_on = functools.partial(self.work_on_source, self.loop.graph())
        graph = StateGraph(ResearchState)
        add_steps(graph, begin=self.begin, source=work_on, gather=self.gather, report=self.report)
        graph.add_edge(START, "begin")
        graph.add_conditional_edges("begin", _dispatch, ["source", "report"])
        graph.add_edge("source", "gather")
        graph.add_conditional_edges("gather", _dispatch, ["source", "report"])
        graph.add_edge("report", END)
        return graph.compile(checkpointer=checkpointer)

    def begin(self, state: ResearchState, config: RunnableConfig) -> dict[str, Any]:
        """Begin the research, and dispatch the sources of the first hypotheses."""
        ledger = ledger_of(config)
        ledger.begin(state["task"])
        return {"documents": ledger.documents, **_next_jobs(0, _place(state, config))}

    def gather(self, state: ResearchState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Dispatch the next sources if time is left; under the policy anytime, draft the findings first."""
        place, following = _place(state, config), state["following"]
        draft: dict[str, Any] = {}
        if current_policy().policies.anytime is not None and _next_jobs(following, place)["jobs"]:
            # At a position of its own: the report meets the latency that it has without drafts.
            at_hypothesis = CallPlace({**place.state, "handoff_ordinal": following}, place.ledger)
            with contextlib.suppress(BudgetError, *FAILURES):
                draft = _end_update((yield from self._findings(at_hypothesis)))
        return {"documents": place.ledger.documents, **draft, **_next_jobs(following, place)}

    def report(self, state: ResearchState, config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Write the findings with the model; without budget or kept results, leave a draft or write a digest."""
        place = _place(state, config)
        ledger = place.ledger
        if place.budget_over():
            deadline = Deadline.from_state(place.state)
            by_deadline = deadline is not None and deadline.remaining() <= ledger.budget_left_s()
            return _unfinished(state, ledger, "deadline" if by_deadline else "budget_refused")
        try:
            return _end_update((yield from self._findings(place)))
        except BudgetError as error:
            return _unfinished(state, ledger, error.stop_reason)

    def _findings(self, place: CallPlace) -> Steps[str]:
        """Ask the model for the findings from what was kept; a digest without it if nothing was."""
        ledger = place.ledger
        items = ledger.items()
        if not items:
            return digest(ledger)
        prompt = prompts.for_synthesis(_task(ledger), items)
        model_client = self.loop.model_clients[prompts.SYNTHESIS]
        findings: str = yield from reply_of(model_client, prompt, place, ledger.limits.llm_retries)
        return findings

    def work_on_source(self, loop: Compiled, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        """Run the loop of one source; its errors stop no other source. state: places of hypothesis and source."""
        place = _place(state, config)
        task = _task(place.ledger)
        hypothesis, name = task.hypotheses[state["hypothesis"]], task.sources[state["source"]]
        note_event("source_started", "source", hypothesis=hypothesis.id, source=name)
        source = self.sources.get(name)
        if source is None:
            at_s = place.ledger.elapsed_s()
            place.ledger.complete(Completion(hypothesis.id, name, "unknown_source", started_at_s=at_s, ended_at_s=at_s))
            return {}
        run = SourceRun(hypothesis, source, place.ledger, place, place.ledger.limits.max_queries(name))
        yield from run_to_end(run, loop, config)
        return {}


def run_to_end(run: SourceRun, loop: Compiled, config: RunnableConfig) -> Steps[None]:
    """Run the loop of a source to its end, whatever ends it, so that exactly one completion follows.

    An error of the source ends here. A drain and a cancellation are raised again.
    """
    try:
        yield Operation(lambda: loop.invoke({"run": run}, config), lambda: loop.ainvoke({"run": run}, config))
    except GraphBubbleUp:
        run.leave("cancelled")
        raise
    except Exception:  # noqa: BLE001 - one source's error never stops another
        run.leave("source_error")
    except BaseException:
        run.leave("cancelled")
        raise
    finally:
        run.ledger.complete(run.completion())


def config_of(ledger: ResearchLedger) -> RunnableConfig:
    """Return the configuration of a run with this ledger, whose limits end a research, never LangGraph's."""
    return {
        "configurable": {LEDGER_KEY: ledger},
        "max_concurrency": ledger.limits.max_concurrent_sources,
        "recursion_limit": _MOST_STEPS,
    }


def ledger_of(config: RunnableConfig) -> ResearchLedger:
    """Return the ledger in a run's configuration. Raises: GraphError if there is none."""
    ledger = config.get("configurable", {}).get(LEDGER_KEY)
    if not isinstance(ledger, ResearchLedger):
        raise GraphError(
            f"a research needs its ledger: run the graph with configurable={{{LEDGER_KEY!r}: ResearchLedger(…)}}"
        )
    return ledger


def _task(ledger: ResearchLedger) -> ResearchTask:
    if ledger.task is None:
        raise GraphError("the ledger has no task: a research starts with its first step")
    return ledger.task


def _place(state: Mapping[str, Any], config: RunnableConfig) -> CallPlace:
    """Return the node's place in the run, with the current run's deadline; a checkpoint may hold an older one."""
    of_run = config.get("configurable", {}).get(DEADLINE_KEY, state.get(DEADLINE_KEY))
    fields: dict[str, Any] = {} if of_run is None else {DEADLINE_KEY: of_run}
    if "hypothesis" in state:
        fields |= {"handoff_ordinal": state["hypothesis"] + 1, "fan_out_index": state["source"]}
    return CallPlace(fields, ledger_of(config))


def _next_jobs(first: int, place: CallPlace) -> dict[str, Any]:
    """Return the sources of the next hypotheses as jobs; none if the budget is over."""
    task, at_once = _task(place.ledger), place.ledger.limits.hypotheses_at_once
    upcoming = [] if place.budget_over() else range(first, min(first + at_once, len(task.hypotheses)))
    jobs = [[hypothesis, source] for hypothesis in upcoming for source in range(len(task.sources))]
    return {"jobs": jobs, "following": first + at_once}


def _dispatch(state: ResearchState) -> list[Send] | str:
    deadline = {DEADLINE_KEY: state["deadline_ts"]} if "deadline_ts" in state else {}
    sends = [Send("source", {"hypothesis": one, "source": other, **deadline}) for one, other in state["jobs"]]
    return sends or "report"


def digest(ledger: ResearchLedger) -> str:
    """Summarise a research in words, without a model."""
    completions, items = ledger.completions(), ledger.items()
    if not completions:
        return "Nothing was searched: there was no budget to begin with."
    reasons = Counter(completion.exit_reason for completion in completions)
    ends = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return f"{len(items)} results were kept of {len(ledger.attempts())} queries. Sources ended by: {ends}."


def _unfinished(state: ResearchState, ledger: ResearchLedger, stop_reason: str) -> dict[str, Any]:
    """Return the update of a run that came to no findings: the draft stays; without one there is a digest."""
    if any(message.id == _FINDINGS for message in state["messages"]):
        return {"stop_reason": stop_reason}
    return _end_update(digest(ledger), stop_reason)


def _end_update(text: str, stop_reason: str = "") -> dict[str, Any]:
    update: dict[str, Any] = {"messages": [AIMessage(text, id=_FINDINGS)]}
    return {**update, "stop_reason": stop_reason} if stop_reason else update
