"""The workload `peers`: a parent agent that delegates each question to peer agents over the A2A protocol.

    START → delegate → peers → conclude → END

The parent waits until each call is decided, and writes a conclusion. What a peer found is kept in `documents` when all
calls of the step are decided. So a run that is cut while peers are at work has nothing, and a run that lets each call
time out in time has what the others found.

`source_recall` is the share of the question's gold topics among the passages that peers gave back in time,
`answer_score` the share of its gold facts that the conclusion states with a citation, `documents_count` the number of
those passages. A call that timed out has none: what a peer costs when it is late shows in all three.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.sync_async import Operation, Steps, in_daemon_thread
from docmind_lab.network.recorder import Recorder, current_recorder
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient, function_tool
from docmind_lab.systems.base.node_modes import NodeMode, in_thread
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.state import SystemState
from docmind_lab.systems.base.steps_node import add_steps
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind
from docmind_lab.systems.base.workloads import ClientWorkload, configured
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerClients
from docmind_lab.systems.peers.correlation import PeerResult, PeerTimeouts
from docmind_lab.systems.peers.peer_events import EVENTS, PEER_TASKS
from docmind_lab.systems.peers.peers_script import PEER_TOOL_PREFIX
from docmind_lab.systems.peers.shelves import Shelf, shelves, task_for

PEERS = ("reader_1", "reader_2", "reader_3", "reader_4")
"""The peers that a parent has, each with its part of the corpus."""

DELEGATE_PROMPT = (
    "You delegate to peer agents. Each of them has read a part of the documents. Ask every peer that may know "
    "something of the question; do not answer yourself."
)
CONCLUDE_PROMPT = (
    "You conclude from what peer agents found. Answer the question from their passages, and cite each by its id in "
    "brackets. A peer may have failed or timed out: say nothing of what you do not have."
)
_STEP = "0"


@dataclass
class PeersWorkload(ClientWorkload):
    """The parent agent and its clients, built once and run many times.

    timeouts: of each call to a peer. concluding_share: of what is left of a propagated deadline, kept for the
    conclusion, in [0, 1).
    """

    timeouts: PeerTimeouts = field(default_factory=PeerTimeouts)
    concluding_share: float = 0.25

    name = "peers"

    def _build(self) -> None:
        self.shelves = shelves(self.surroundings.resolve_corpus().chunks, PEERS)
        self.caller = self._new_caller()

    def _new_caller(self) -> PeerCaller:
        return PeerCaller(PeerClients(self.surroundings.addresses.peers_url, self.http), timeouts=self.timeouts)

    def _graph(self, mode: NodeMode) -> Runnable:
        model, timeout_s = self._model(mode), self.surroundings.settings.llm.request_timeout_seconds

        def model_client(role: str) -> ModelClient:
            return ModelClient(model, ModelCalls(role, request_timeout_s=timeout_s))

        built = StateGraph(SystemState)
        add_steps(
            built,
            delegate=functools.partial(self._delegate, model_client("delegate")),
            peers=functools.partial(self._peers, mode),
            conclude=functools.partial(self._conclude, model_client("conclude")),
        )
        built.add_edge(START, "delegate")
        built.add_conditional_edges("delegate", _next, ["peers", END])
        built.add_edge("peers", "conclude")
        built.add_edge("conclude", END)
        return built.compile(checkpointer=self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread of its own in the checkpointer."""
        depth = self.surroundings.settings.agents.max_workflow_depth
        return configured(self.graph, recorder, recorder.run_id, recursion_limit=depth)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints and its pending calls."""
        super().forget(run_id)
        self.caller.correlator.drop(run_id)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        shared_loop().run(self.caller.clients.aclose())
        super().close()

    # ---- the nodes

    def _delegate(self, model: ModelClient, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        tools = [_tool_of(shelf) for shelf in self.shelves]
        message = yield model.ask(state["messages"], state, system=DELEGATE_PROMPT, tools=tools)
        return {"messages": [message]}

    def _peers(self, mode: NodeMode, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        by_tool = {_tool_name(shelf.peer): shelf for shelf in self.shelves}
        tool_calls = [call for call in _tool_calls(state) if call["name"] in by_tool]
        calls = [_peer_call(call, by_tool[call["name"]]) for call in tool_calls]
        results: Sequence[PeerResult] = yield self._call_peers(mode, calls, state, config)
        documents = [document for result in results for document in self._documents_of(result)]
        messages = [self._tool_message(result, call) for result, call in zip(results, tool_calls, strict=True)]
        return {"messages": messages, "documents": documents}

    def _conclude(self, model: ModelClient, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        message = yield model.ask(state["messages"], state, system=CONCLUDE_PROMPT)
        return {"messages": [message]}

    # ---- calling

    def _call_peers(
        self, mode: NodeMode, calls: Sequence[PeerCall], state: Mapping[str, Any], config: RunnableConfig
    ) -> Operation:
        task = str(config.get("configurable", {}).get("thread_id", "task"))

        async def call(caller: PeerCaller) -> Sequence[PeerResult]:
            deadline, policy = Deadline.from_state(state), current_policy()
            left_s = math.inf
            if deadline is not None:
                left_s = deadline.remaining() * (1 - self.concluding_share)
                if left_s <= policy.floor_s:
                    _refuse(calls)
                    raise deadline.refused("peers", "graph")
            with deadline_scope(deadline if policy.cap == "total" else None):
                return await caller.call(calls, step=_STEP, logical_task_id=task, left_s=left_s)

        def on_shared_loop() -> Sequence[PeerResult]:
            return shared_loop().run(call(self.caller))

        async def blocking() -> Sequence[PeerResult]:
            return self._call_on_own_loop(call)

        awaited: dict[NodeMode, Any] = {
            "own": functools.partial(call, self.caller),
            "sync": functools.partial(in_thread, on_shared_loop),
            "blocking": blocking,
        }
        return Operation(blocking=on_shared_loop, awaited=awaited[mode])

    def _call_on_own_loop(self, call: Any) -> Sequence[PeerResult]:
        """Run `call` on an event loop of its own while the calling thread waits: a loop cannot wait for itself."""
        results: Future[Sequence[PeerResult]] = Future()

        async def main() -> None:
            caller = self._new_caller()
            try:
                results.set_result(await call(caller))
            except Exception as error:  # noqa: BLE001 - handed to the thread that waits
                results.set_exception(error)
            await caller.idle()
            await caller.clients.aclose()

        in_daemon_thread(lambda: asyncio.run(main()), "docmind-peer-caller")
        return results.result()

    # ---- results

    def _documents_of(self, result: PeerResult) -> list[dict[str, Any]]:
        """Return the passages that a peer cites, as documents for the state."""
        shelf = next(shelf for shelf in self.shelves if shelf.peer == result.peer)
        by_id = {chunk.id: chunk for chunk in shelf.chunks}
        cited = [by_id[passage_id] for passage_id in result.payload.get("ids", ()) if passage_id in by_id]
        return [
            {
                "id": chunk.id,
                "content": chunk.text,
                "metadata": {"topic": chunk.topic, "section": chunk.section, "peer": result.peer},
                "score": 1.0 / rank,
            }
            for rank, chunk in enumerate(cited, start=1)
        ]

    def _tool_message(self, result: PeerResult, call: ToolCall) -> ToolMessage:
        """Return the result as a tool message for the model, under the id of its call."""
        documents = [{"id": document["id"], "content": document["content"]} for document in self._documents_of(result)]
        content = {"peer": result.peer, "outcome": result.outcome, "documents": documents}
        if result.error:
            content["error"] = result.error
        return ToolMessage(
            json.dumps(content, ensure_ascii=False),
            tool_call_id=result.function_call_id,
            name=call["name"],
            status="success" if result.outcome == "completed" else "error",
        )


def _refuse(calls: Sequence[PeerCall]) -> None:
    recorder = current_recorder()
    if recorder is not None:
        for index, call in enumerate(calls):
            recorder.refuse("peer", call.peer, f"{_STEP}.{index}")


def _next(state: Mapping[str, Any]) -> str:
    return "peers" if _tool_calls(state) else END


def _tool_calls(state: Mapping[str, Any]) -> Sequence[ToolCall]:
    last = state["messages"][-1]
    return last.tool_calls if isinstance(last, AIMessage) else ()


def _tool_name(peer: str) -> str:
    return f"{PEER_TOOL_PREFIX}{peer}"


def _peer_call(call: ToolCall, shelf: Shelf) -> PeerCall:
    question = str(call["args"].get("question", ""))
    task = task_for(shelf, question)
    ids = {passage["id"] for passage in task["passages"]}
    topics = {chunk.id: chunk.topic for chunk in shelf.chunks if chunk.id in ids}
    return PeerCall(str(call["id"]), shelf.peer, task, topics)


def _tool_of(shelf: Shelf) -> dict[str, Any]:
    """Return the tool that asks a peer, described in OpenAI's format."""
    about, more = ", ".join(shelf.topics[:3]), max(0, len(shelf.topics) - 3)
    description = f"Ask the peer that has read about {about} and {more} more topics."
    question = {"type": "string", "description": "What to look for, in words."}
    return function_tool(_tool_name(shelf.peer), description, {"question": question})


# Late answers and failed cancels are studied here: they are logged, and printed where logging is configured.
logging.getLogger("docmind_lab.systems.peers").addHandler(logging.NullHandler())

KIND = WorkloadKind(
    adapts=True,
    name="peers",
    title="Parent of four A2A peers",
    asked="questions",
    cases=load_questions,
    build=PeersWorkload,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(20.0, 40, "heavy_tail/3"), "wall": Defaults(2.0, 8, "typical/5")},
    roles=("delegate", *PEERS, "conclude"),
    events=EVENTS,
    tables=(PEER_TASKS,),
    takes_questions=True,
    reads_settings=True,
)
"""A parent agent that delegates each question to four peers."""
