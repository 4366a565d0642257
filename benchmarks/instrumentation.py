"""What observing a run and enforcing its deadline cost, in CPU: the instrumented graph over the same graph bare.

Both arms answer the same questions with the same graph of the same agents, prompts and tools, over the same simulated
services, in this process. Bare: no deadline, no recorder, no `ModelCalls`, no callbacks; LangGraph's own
`InMemorySaver`, the openai and qdrant clients on their libraries' own transports, run by `invoke`. Instrumented: as a
measured run has it under alternative A, from the start of the budget to the return.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx2
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from qdrant_client import QdrantClient

from benchmarks.figures import Figure, sampled
from benchmarks.in_process import ADDRESSES, InProcessServices, in_process
from benchmarks.pairs import Work, pair_ratios
from docmind_lab.alternatives import Cooperative
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.levels import ROLES, SUPERVISOR_ROLE
from docmind_lab.core.settings import Settings
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.docmind.docmind_system import SupervisorWorkload
from docmind_lab.systems.docmind.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    create_forward_message_tool,
)
from docmind_lab.systems.docmind.graphs.history import TrimHistory
from docmind_lab.systems.docmind.graphs.roles import ROLE_PROMPTS, role_tools
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources

TARGET = 1.10
QUESTIONS, REPEATS = 4, 16
# No run comes near it: the budget is there to be propagated and enforced, not to end anything.
_BUDGET_S = 60.0
_numbers = itertools.count(1)


def run(questions: int = QUESTIONS, repeats: int = REPEATS) -> Iterator[Figure]:
    """The ratio, over pairs of runs of the same question."""
    services = InProcessServices()
    asked = load_questions()[:questions]
    with in_process(services):
        workload = SupervisorWorkload(Surroundings(ADDRESSES, Settings()))
        bare = _bare_graph()
    try:
        pairs = [(_instrumented(workload, q, services), _bare(bare, q, services)) for q in asked]
        yield sampled("instrumented graph / the same graph bare", pair_ratios(pairs, repeats), at_most=TARGET)
    finally:
        workload.close()


def _instrumented(workload: SupervisorWorkload, question: Question, services: InProcessServices) -> Work:
    def work() -> tuple[Any, ...]:
        services.requests.clear()
        deadline = Deadline.after(_BUDGET_S)
        recorder = Recorder(f"run-{next(_numbers)}", 1, deadline)
        with recording(recorder), recorder.work("caller"):
            runnable = workload.runnable(recorder, question)
            outcome = Cooperative().run(runnable, workload.inputs(question), deadline, recorder)
            recorder.mark_returned()
        workload.forget(recorder.run_id)
        sent = {(attempt.call.kind, attempt.outcome) for attempt in recorder.snapshot().attempts}
        assert sent == {("llm", "ok"), ("retrieval", "ok")}, f"the run was not observed as it should be: {sent}"
        return outcome.answer, [document["id"] for document in outcome.documents], dict(services.requests)

    return work


def _bare(graph: CompiledStateGraph[Any, Any, Any, Any], question: Question, services: InProcessServices) -> Work:
    saver = graph.checkpointer
    assert isinstance(saver, InMemorySaver)

    def work() -> tuple[Any, ...]:
        services.requests.clear()
        thread = f"bare-{next(_numbers)}"
        state = graph.invoke(
            {"messages": [HumanMessage(question.text, id="question")]}, {"configurable": {"thread_id": thread}}
        )
        saver.delete_thread(thread)
        answer = state["messages"][-1].text
        return answer, [document["id"] for document in state["documents"]], dict(services.requests)

    return work


def _bare_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """DocMind's graph as someone builds it who has neither a deadline nor anything to observe."""
    settings, corpus = Settings(), handbook()
    model = ChatOpenAI(
        model=settings.llm.model,
        base_url=ADDRESSES.openai_base_url,
        api_key=settings.llm.api_key,
        http_client=httpx2.Client(trust_env=False),
    )
    qdrant = QdrantClient(url=ADDRESSES.qdrant_url, prefer_grpc=False, check_compatibility=False, trust_env=False)
    index = SearchIndex.build(qdrant, corpus)
    agents = [
        create_agent(
            model,
            tools=role_tools(role, RetrievalResources(index, qdrant)),
            system_prompt=ROLE_PROMPTS[role],
            middleware=[TrimHistory()],
            state_schema=MultiAgentGraphState,
            name=f"{role}_agent",
        )
        for role in ROLES
    ]
    return build_multi_agent_supervisor_graph(
        agents,
        model=model,
        prompt=SUPERVISOR_PROMPT,
        state_schema=MultiAgentGraphState,
        extra_tools=[create_forward_message_tool(SUPERVISOR_ROLE)],
        middleware=[TrimHistory()],
        params=SupervisorBuildParams(
            supervisor_name=SUPERVISOR_ROLE, max_concurrent_agents=settings.agents.max_concurrent_agents
        ),
    ).compile(checkpointer=InMemorySaver())
