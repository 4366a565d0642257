"""The parent agent as a graph: it delegates to peers, waits until each call is decided, and writes a conclusion.

    START → delegate → peers → conclude → END

What a peer found is kept in `documents` when all calls of the step are decided. So a run that is cut while peers are at
work has nothing, and a run that lets each call time out in time has what the others found.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.sync_async import Operation, Steps, in_daemon_thread
from docmind_lab.network.recorder import current_recorder
from docmind_lab.systems.base.model_client import ModelClient, function_tool
from docmind_lab.systems.base.node_modes import NodeMode, in_thread
from docmind_lab.systems.base.state import SystemState
from docmind_lab.systems.base.steps_node import StepsNode
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.correlation import PeerResult
from docmind_lab.systems.peers.peers_script import PEER_TOOL_PREFIX
from docmind_lab.systems.peers.shelves import Shelf, task_for

DELEGATE_PROMPT = (
    "You delegate to peer agents. Each of them has read a part of the documents. Ask every peer that may know "
    "something of the question; do not answer yourself."
)
CONCLUDE_PROMPT = (
    "You conclude from what peer agents found. Answer the question from their passages, and cite each by its id in "
    "brackets. A peer may have failed or timed out: say nothing of what you do not have."
)
_STEP = "0"


@dataclass(frozen=True)
class Parent:
    """The clients, peers and limits that the parent's nodes use.

    caller: calls peers on the shared loop. new_caller: makes one for another loop. concluding_share: of what is left of
    a propagated deadline, kept for the conclusion, in [0, 1). mode: of the async side, see `base/node_modes.py`.
    """

    delegating: ModelClient
    concluding: ModelClient
    shelves: tuple[Shelf, ...]
    caller: PeerCaller
    new_caller: Callable[[], PeerCaller]
    concluding_share: float = 0.25
    mode: NodeMode = "own"

    def graph(self, checkpointer: BaseCheckpointSaver[Any]) -> Runnable:
        """Compile the parent's graph."""
        built = StateGraph(SystemState)
        built.add_node("delegate", StepsNode("delegate", self._delegate))
        built.add_node("peers", StepsNode("peers", self._peers))
        built.add_node("conclude", StepsNode("conclude", self._conclude))
        built.add_edge(START, "delegate")
        built.add_conditional_edges("delegate", _next, ["peers", END])
        built.add_edge("peers", "conclude")
        built.add_edge("conclude", END)
        return built.compile(checkpointer=checkpointer)

    # ---- the nodes

    def _delegate(self, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        tools = [_tool_of(shelf) for shelf in self.shelves]
        message = yield self.delegating.ask(state["messages"], state, system=DELEGATE_PROMPT, tools=tools)
        return {"messages": [message]}

    def _peers(self, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        by_tool = {_tool_name(shelf.peer): shelf for shelf in self.shelves}
        tool_calls = [call for call in _tool_calls(state) if call["name"] in by_tool]
        calls = [_peer_call(call, by_tool[call["name"]]) for call in tool_calls]
        results: Sequence[PeerResult] = yield self._call_peers(calls, state, config)
        documents = [document for result in results for document in self._documents_of(result)]
        messages = [self._tool_message(result, call) for result, call in zip(results, tool_calls, strict=True)]
        return {"messages": messages, "documents": documents}

    def _conclude(self, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        message = yield self.concluding.ask(state["messages"], state, system=CONCLUDE_PROMPT)
        return {"messages": [message]}

    # ---- calling

    def _call_peers(self, calls: Sequence[PeerCall], state: Mapping[str, Any], config: RunnableConfig) -> Operation:
        task = str(config.get("configurable", {}).get("thread_id", "task"))

        async def call(caller: PeerCaller) -> Sequence[PeerResult]:
            deadline, policy = Deadline.from_state(state), current_policy()
            left_s = math.inf
            if deadline is not None:
                left_s = deadline.remaining() * (1 - self.concluding_share)
                if left_s <= policy.floor_s:
                    self._refuse(calls)
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
        return Operation(blocking=on_shared_loop, awaited=awaited[self.mode])

    def _call_on_own_loop(self, call: Any) -> Sequence[PeerResult]:
        """Run `call` on an event loop of its own while the calling thread waits: a loop cannot wait for itself."""
        results: Future[Sequence[PeerResult]] = Future()

        async def main() -> None:
            caller = self.new_caller()
            try:
                results.set_result(await call(caller))
            except Exception as error:  # noqa: BLE001 - handed to the thread that waits
                results.set_exception(error)
            await caller.idle()
            await caller.clients.aclose()

        in_daemon_thread(lambda: asyncio.run(main()), "docmind-peer-caller")
        return results.result()

    def _refuse(self, calls: Sequence[PeerCall]) -> None:
        recorder = current_recorder()
        if recorder is not None:
            for index, call in enumerate(calls):
                recorder.refuse("peer", call.peer, f"{_STEP}.{index}")

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
