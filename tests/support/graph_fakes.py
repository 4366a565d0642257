"""Models without a server, an index in memory, and what every conversation must look like in the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field, PrivateAttr
from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.scripted_model import Conversation, reply_to
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.docmind.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
)
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources

Say = Callable[[list[BaseMessage], Mapping[str, Any]], AIMessage]

CHUNKS = (
    Chunk("lock#1", "lock", "Locks", "A lock is released by the context manager when the block ends."),
    Chunk("lock#2", "lock", "Locks", "Waiting for a lock may time out after some seconds."),
    Chunk("yield#1", "yield", "Generators", "A generator yields values lazily to its caller."),
    Chunk("yield#2", "yield", "Generators", "Iterators and generators produce values one after the other."),
    Chunk("enter#1", "enter", "Contexts", "Entering a context acquires the lock for the block."),
)
LIBRARY = Library(CHUNKS, "five passages")
SIMPLE = "When is a lock released by the context manager?"
COMPLEX = "How does waiting for a lock differ from a generator that yields values?"


class FakeModel(BaseChatModel):
    """Plays `say` on the messages and tools of each request; notes by which door it was called."""

    say: Any
    bound_tools: dict[str, Any] = Field(default_factory=dict)
    doors: list[str] = Field(default_factory=list)
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    settings: list[dict[str, Any]] = Field(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        functions = [convert_to_openai_tool(tool)["function"] for tool in tools]
        bound = {function["name"]: function.get("parameters", {}) for function in functions}
        # The lists are shared by the copies, so that the test's model sees every request.
        return self.model_copy(update={"bound_tools": bound}).bind(**kwargs)

    def _answer(self, door: str, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        with self._lock:
            self.doors.append(door)
            self.requests.append(messages)
            self.settings.append({key: value for key, value in kwargs.items() if key not in ("stop", "tool_choice")})
        return ChatResult(generations=[ChatGeneration(message=self.say(messages, self.bound_tools))])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._answer(f"sync:{threading.current_thread().name}", messages, kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._answer(f"async:{threading.current_thread().name}", messages, kwargs)


def asking(*calls: tuple[str, Mapping[str, Any]], text: str = "", turn: int = 0) -> AIMessage:
    """A message that calls tools; its call ids are different for each turn."""
    made = [{"name": name, "args": dict(args), "id": f"t{turn}c{i}"} for i, (name, args) in enumerate(calls)]
    return AIMessage(text, tool_calls=made)


def scripted(messages: list[BaseMessage], tools: Mapping[str, Any]) -> AIMessage:
    """What the scripted model says to the request."""
    reply = reply_to(Conversation(tuple(convert_to_openai_messages(messages)), tools))
    # One in two providers repeats the ids of its calls for a repeated request; these never do.
    return asking(*((c.name, c.arguments) for c in reply.tool_calls), text=reply.text, turn=len(messages))


def scripted_model() -> FakeModel:
    return FakeModel(say=scripted)


def in_turn(*replies: AIMessage | Say) -> FakeModel:
    """A model that gives these replies one after the other, and then the last one again and again."""
    left = list(replies)
    lock = threading.Lock()

    def say(messages: list[BaseMessage], tools: Mapping[str, Any]) -> AIMessage:
        with lock:
            reply = left.pop(0) if len(left) > 1 else left[0]
        # A copy, or two answers would be one message with one id.
        return reply.model_copy(deep=True) if isinstance(reply, AIMessage) else reply(messages, tools)

    return FakeModel(say=say)


def saying(text: str) -> FakeModel:
    return in_turn(AIMessage(text))


def resources() -> RetrievalResources:
    """Five passages in memory, for sync and async."""
    client = QdrantClient(":memory:")
    # A local client answers in place; only the async one's own store has to be filled too.
    index, async_client = SearchIndex.build(client, LIBRARY), AsyncQdrantClient(":memory:")
    async_client._client.collections = client._client.collections  # type: ignore[attr-defined]
    return RetrievalResources(index, client, async_client)


def docmind(
    model: BaseChatModel,
    found_in: RetrievalResources,
    *,
    middleware: Callable[[str], Sequence[Any]] = lambda role: (),
    supervisor_middleware: Sequence[Any] = (),
    params: SupervisorBuildParams | None = None,
    **compile_options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The five roles under their supervisor, compiled."""
    graph = build_multi_agent_supervisor_graph(
        build_role_agents(model, resources=found_in, middleware=middleware),
        model=model,
        prompt=SUPERVISOR_PROMPT,
        state_schema=MultiAgentGraphState,
        extra_tools=[create_forward_message_tool("supervisor")],
        middleware=supervisor_middleware,
        params=params,
    )
    return graph.compile(**compile_options)


def agent(name: str, model: BaseChatModel, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    """An agent of a user's own."""
    return create_agent(model, **{"tools": [], "state_schema": MultiAgentGraphState, **options}, name=name)


def team(
    supervisor: BaseChatModel, *agents: CompiledStateGraph[Any, Any, Any, Any], **options: Any
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Agents under a supervisor, compiled."""
    compile_options = {key: options.pop(key) for key in ("checkpointer", "store") if key in options}
    graph = build_multi_agent_supervisor_graph(agents, model=supervisor, prompt="You are the supervisor.", **options)
    return graph.compile(**compile_options)


def asked(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


both_doors = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
"""Runs a test with each value of `how` that `run_whole` takes."""


def run_whole(
    app: CompiledStateGraph[Any, Any, Any, Any], how: str, inputs: Mapping[str, Any] | None = None, **config: Any
) -> dict[str, Any]:
    """The state after a run by one of two doors, whose conversation is whole; asked "q" without other inputs."""
    given, configured = dict(inputs or asked("q")), RunnableConfig(**config)  # type: ignore[typeddict-item]
    state = app.invoke(given, configured) if how == "invoke" else asyncio.run(app.ainvoke(given, configured))
    check_whole(state["messages"])
    return state


def recorder(budget_s: float = 60.0) -> Recorder:
    return Recorder("run", 1, Deadline.after(budget_s))


def texts(state: Mapping[str, Any], name: str | None = None) -> list[str]:
    return [m.text for m in state["messages"] if name is None or m.name == name]


def called(state: Mapping[str, Any]) -> list[str]:
    """Names of the tools that the conversation calls, in order."""
    return [c["name"] for m in state["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]


def check_whole(messages: Sequence[AnyMessage]) -> None:
    """Every tool call has its results right after it, every result its call, and no message is there twice."""
    ids = [message.id for message in messages if message.id is not None]
    assert len(ids) == len(set(ids)), "a message is there twice"
    open_calls: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls, f"nobody asked for the result {message.tool_call_id}"
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls, f"{open_calls} have no result"
        open_calls = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    assert not open_calls, f"{open_calls} have no result"
