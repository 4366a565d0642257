"""Uses of the public interface as a user would write them: checked by the type checker, never run."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import pandas as pd
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from starlette.applications import Starlette

import docmind_lab as dl
from docmind_lab.alternatives import ALTERNATIVES, Cooperative, HardTimeout, Outcome
from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.enforcement.wire.asgi import Application, DeadlineMiddleware
from docmind_lab.graphs import (
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
)
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources
from docmind_lab.views.panels import TunePanel


def compare_and_look() -> pd.DataFrame:
    study: dl.Study = dl.compare(
        dl.docmind(router_injection=True),
        decision_timeout_s=2,
        alternatives=["A", HardTimeout(naive=True)],
        runs=8,
        seed=7,
    )
    study.save("results/mine")
    again: dl.Study = dl.Study.load("results/mine")
    return again.summary()


def compare_over_documents_of_ones_own(folder: Path) -> pd.DataFrame:
    study: dl.Study = dl.compare(dl.docmind(documents=folder, questions="questions.jsonl"), decision_timeout_s=20)
    design = dl.StudyDesign.of({"documents": str(folder), "questions": "questions.jsonl", "repeats": 8})
    again: dl.Study = dl.sweep(design)
    return pd.concat([study.runs, again.runs])


def look_in_a_notebook() -> dl.Study:
    panel: TunePanel = dl.tune(decision_timeout_s=20, runs=8, alternatives=("A", "B"))
    panel.decision_timeout_s = 8.0
    panel.fault = "hang"
    found: dl.Study = panel.wait(60)
    print(panel.status, panel.code)
    panel.close()
    return found


def send_and_receive(headers: dict[str, str]) -> Application:
    wire = dl.DeadlineOnWire(hosts=("api.internal", "*.svc.local"), header="grpc-timeout", transit_s=0.02)
    with dl.deadline(dl.Deadline.from_headers(headers, at_most_s=20)):
        sent: dict[str, str] = dl.deadline_headers("https://api.internal/", wire)
        dl.install(["httpx"], wire=wire)
    print(sent)
    application: Application = DeadlineMiddleware(Starlette(), at_most_s=20, least_s=0.1)
    return application


def build(model: BaseChatModel, resources: RetrievalResources) -> Runnable:
    graph: StateGraph = build_multi_agent_supervisor_graph(  # type: ignore[type-arg]
        build_role_agents(model, resources=resources),
        model=model,
        prompt="You are the supervisor.",
        state_schema=MultiAgentGraphState,
        extra_tools=[create_forward_message_tool("supervisor")],
        params=SupervisorBuildParams(output_mode="last_message"),
    )
    return graph.compile(checkpointer=InMemorySaver())


def run_under_a_deadline(runnable: Runnable) -> Outcome:
    deadline: dl.Deadline = dl.Deadline.after(2.0)
    recorder = Recorder("run", 7, deadline)
    outcome: Outcome = Cooperative().run(runnable, {"messages": []}, deadline, recorder)
    for kind in ALTERNATIVES.values():
        outcome = kind().run(runnable, {"messages": []}, deadline, recorder)
    return outcome


class Notes(TypedDict):
    log: list[str]


async def enforce(graph: CompiledStateGraph[Notes, None, Notes, Notes]) -> list[str]:
    agent: dl.EnforcedAgent[Notes, None, Notes, Notes] = dl.enforce(graph, 20, "E", on_deadline="raise")
    result: dl.Result[Notes] = await agent.with_deadline(5).ainvoke({"log": []}, deadline=dl.Deadline.after(3))
    log: list[str] = result.state["log"]
    stream = agent.astream({"log": []}, stream_mode="updates")
    async for _ in stream:
        break
    streamed: Notes = stream.result.state
    served: CompiledStateGraph[Notes, None, Notes, Notes] = agent.as_graph()
    found: list[str] = [f"{each.node} {each.why}" for each in dl.enforce(served).check()]
    texts: list[str] = [each.text for each in result.partial.texts]
    mended: dl.Repair = result.repair() if texts else await dl.arepair(graph, {"configurable": {"thread_id": "1"}})
    print(mended.calls_cut, dl.once(ask).name)
    async with dl.deadline(20) as in_force:
        left: float = in_force.remaining()
    print(left, dl.remaining_s())
    return [*log, *streamed["log"], *found]


def ask(question: str) -> tuple[str, bool]:
    with dl.MultiAgentCoordinator(dl.Settings(agents={"decision_timeout": 5}), alternative="E") as coordinator:
        response: dl.AgentResponse = coordinator.process_query(question, thread_id="t", context={"router_engine": None})
        return response.content, response.fallback_used or response.timed_out


def scale(settings: dl.Settings) -> tuple[dl.LatencyProfile, float]:
    return dl.LatencyProfile.named("typical/10"), settings.agents.decision_timeout
