"""What it costs to look at a graph that was not made for the lab: hooks, callbacks and a doorway around it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx2
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from benchmarks.figures import Figure, sampled
from benchmarks.in_process import ADDRESSES, InProcessServices, in_process
from benchmarks.pairs import Work, pair_ratios
from docmind_lab.alternatives import Cooperative
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.settings import Settings
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.openai_service import MODEL_NAME
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.own.own_kind import own_graph
from docmind_lab.systems.workload_by_name import workload_kind

TARGET = 1.10
REPEATS = 60
# No run comes near it.
_BUDGET_S = 60.0
_QUESTION = "What is a deadline?"
_numbers = itertools.count(1)


def run(repeats: int = REPEATS) -> Iterator[Figure]:
    """The ratio, over pairs of runs of one agent with a tool."""
    services = InProcessServices()
    with in_process(services):
        bare, looked_at = _agent(), _agent()
        asked = own_graph(looked_at, [_QUESTION])
        kind = workload_kind(asked.workload)
        (question,) = kind.cases(asked.corpus)
        workload = kind.build(Surroundings(ADDRESSES, Settings(), corpus=asked.corpus))
        try:
            pair = _observed(workload, question, services), _bare(bare, services)
            yield sampled("a user's graph, observed / the same alone", pair_ratios([pair], repeats), at_most=TARGET)
        finally:
            workload.close()


def _agent() -> Any:
    """An agent as somebody builds it, over clients of its own."""
    model = ChatOpenAI(
        model=MODEL_NAME,
        base_url=ADDRESSES.openai_base_url,
        api_key="not used",
        http_client=httpx2.Client(trust_env=False),
    )
    return create_agent(model, tools=[StructuredTool.from_function(_look_up, name="look_up")])


def _look_up(query: str) -> str:
    """Look something up."""
    return f"{query}: a deadline is an instant, and a budget is a number of seconds."


def _observed(workload: Any, question: Question, services: InProcessServices) -> Work:
    def work() -> tuple[Any, ...]:
        services.requests.clear()
        deadline = Deadline.after(_BUDGET_S)
        recorder = Recorder(f"run-{next(_numbers)}", 1, deadline)
        with recording(recorder), recorder.work("caller"):
            outcome = Cooperative().run(
                workload.runnable(recorder, question), workload.inputs(question), deadline, recorder
            )
            recorder.mark_returned()
        workload.forget(recorder.run_id)
        kinds = {(attempt.call.kind, attempt.outcome) for attempt in recorder.snapshot().attempts}
        assert kinds == {("llm", "ok"), ("tool", "ok")}, f"the run was not observed as it should be: {kinds}"
        return outcome.answer, dict(services.requests)

    return work


def _bare(agent: Any, services: InProcessServices) -> Work:
    def work() -> tuple[Any, ...]:
        services.requests.clear()
        state = agent.invoke({"messages": [HumanMessage(_QUESTION)]})
        return state["messages"][-1].text, dict(services.requests)

    return work
