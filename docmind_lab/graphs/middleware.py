"""Agent middleware: what happens around every model call of a role.

    ModelCalls      observes the call, and holds it to the deadline that the state carries
    TrimHistory     keeps the conversation short, never parting a tool call from its result
    CallMetrics     counts messages and tokens per role

All work alike in sync and async agents.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import openai
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from docmind_lab.clocks import WALL, Clock
from docmind_lab.deadlines import (
    Deadline,
    PropagationPolicy,
    current_policy,
    deadline_scope,
)
from docmind_lab.graphs.state import MultiAgentGraphState
from docmind_lab.network import LogicalCall
from docmind_lab.randomness import keyed_uniform
from docmind_lab.recorder import current_recorder, position_of

# These leave the reserve to synthesis and validation, which come after them.
_ROLES_BEFORE_SYNTHESIS = frozenset({"router", "planner", "retrieval"})

_RETRYABLE = (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError)
_FIRST_BACKOFF_S = 0.5  # as the openai client's own first wait, so that the two differ in the budget only


@dataclass(frozen=True)
class _Budget:
    """The deadline of one model call and how it is applied."""

    deadline: Deadline
    policy: PropagationPolicy

    def wait_before_retry(self, error: BaseException, attempt: int, role: str) -> float | None:
        """Seconds to wait before another attempt; None when there must not be one."""
        if attempt > self.policy.retries or isinstance(error, openai.APITimeoutError):
            return None
        if not isinstance(error, _RETRYABLE):
            return None
        wait_s = _retry_after(error)
        if wait_s is None:
            wait_s = _FIRST_BACKOFF_S * 2 ** (attempt - 1) * (1 - 0.25 * keyed_uniform("backoff", role, attempt))
        # An attempt that begins with nothing left cannot end in time: it is not started.
        return wait_s if wait_s < self.deadline.remaining() - self.policy.floor_s else None


def _retry_after(error: BaseException) -> float | None:
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after") if response is not None else None
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None


class ModelCalls(AgentMiddleware[MultiAgentGraphState, Any, Any]):
    """Opens a recorded call around each model call, and enforces the deadline if the state carries one.

    role: whose calls these are. request_timeout_s: cap of one request under propagation, besides the deadline.
    clock: what the deadline's instant is read on.

    With a deadline: a call with no budget left is refused before it is sent (`BudgetRefused`); the client's own
    retries are off and ours stay within the budget; what is cut surfaces as `DeadlineExceeded`, and nothing of the
    call keeps running on this side. Without one: the request goes out exactly as the client would send it.
    """

    state_schema = MultiAgentGraphState

    def __init__(self, role: str, *, request_timeout_s: float | None = None, clock: Clock = WALL) -> None:
        super().__init__()
        self.role, self.request_timeout_s, self.clock = role, request_timeout_s, clock

    @property
    def name(self) -> str:
        """Unique per role, as LangChain asks of the middleware of one agent."""
        return f"ModelCalls[{self.role}]"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """One model call, sync."""
        budget = self._budget(request)
        with self._call(request, budget) as call:
            attempt = 0
            while True:
                attempt += 1
                bounded = self._bounded(request, budget, call)
                try:
                    with self._enforced(budget):
                        response = handler(bounded)
                except openai.OpenAIError as error:
                    self._wait_or_raise(error, budget, attempt, self.clock.sleep)
                else:
                    _note_tokens(response)
                    return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """One model call, async."""
        budget = self._budget(request)
        with self._call(request, budget) as call:
            attempt = 0
            while True:
                attempt += 1
                bounded = self._bounded(request, budget, call)
                waits: list[float] = []
                try:
                    with self._enforced(budget):
                        response = await handler(bounded)
                except openai.OpenAIError as error:
                    self._wait_or_raise(error, budget, attempt, waits.append)
                else:
                    _note_tokens(response)
                    return response
                await asyncio.sleep(waits[0])

    def _budget(self, request: ModelRequest[Any]) -> _Budget | None:
        deadline = Deadline.from_state(request.state, self.clock)
        if deadline is None:
            return None
        policy = current_policy()
        if self.role in _ROLES_BEFORE_SYNTHESIS:
            deadline = deadline.child(policy.reserve_s)
        return _Budget(deadline, policy)

    @contextlib.contextmanager
    def _call(self, request: ModelRequest[Any], budget: _Budget | None) -> Iterator[LogicalCall | None]:
        recorder = current_recorder()
        if budget is not None and budget.deadline.remaining() <= budget.policy.floor_s:
            if recorder is not None:
                recorder.refuse("llm", self.role, position_of(request.state))
            raise budget.deadline.refused(self.role, "middleware")
        if recorder is None:
            yield None
            return
        with recorder.call("llm", self.role, position_of(request.state), cap_from_deadline=budget is not None) as call:
            yield call

    def _bounded(
        self, request: ModelRequest[Any], budget: _Budget | None, call: LogicalCall | None
    ) -> ModelRequest[Any]:
        if budget is None:
            return request
        settings = {**request.model_settings, "timeout": budget.deadline.cap(self.request_timeout_s)}
        return request.override(model=without_client_retries(request.model), model_settings=settings)

    @contextlib.contextmanager
    def _enforced(self, budget: _Budget | None) -> Iterator[None]:
        total = budget is not None and budget.policy.cap == "total"
        with deadline_scope(budget.deadline if total and budget is not None else None):
            yield

    def _wait_or_raise(
        self, error: openai.OpenAIError, budget: _Budget | None, attempt: int, wait: Callable[[float], object]
    ) -> None:
        """Wait for another attempt, or raise what the call ends with."""
        if budget is None:
            raise error
        recorder = current_recorder()
        if budget.deadline.remaining() <= budget.policy.floor_s:
            if recorder is not None:
                recorder.event("deadline_cut", self.role, kind="llm", source="network")
            raise budget.deadline.exceeded(self.role, "network") from error
        wait_s = budget.wait_before_retry(error, attempt, self.role)
        if wait_s is None:
            raise error
        if recorder is not None:
            recorder.event("retry", self.role, kind="llm", attempt=attempt, wait_s=wait_s)
        wait(wait_s)


_without_retries: dict[int, tuple[Any, Any]] = {}


def without_client_retries(model: Any) -> Any:
    """A ChatOpenAI like `model` over the same connections whose client does not retry; any other model as it is.

    Made once per model: building a client takes 40 ms.
    """
    if not isinstance(model, ChatOpenAI):
        return model
    known = _without_retries.get(id(model))
    if known is not None and known[0] is model:
        return known[1]
    copy = model.model_copy()
    copy.max_retries = 0
    copy.root_client = model.root_client.with_options(max_retries=0)
    copy.client = copy.root_client.chat.completions
    copy.root_async_client = model.root_async_client.with_options(max_retries=0)
    copy.async_client = copy.root_async_client.chat.completions
    _without_retries[id(model)] = (model, copy)
    return copy


def _note_tokens(response: ModelResponse[Any]) -> None:
    """Tell the recorder how many tokens the response of the current call counts."""
    recorder = current_recorder()
    usage = next((m.usage_metadata for m in response.result if isinstance(m, AIMessage) and m.usage_metadata), None)
    if recorder is not None and usage is not None:
        recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])


class TrimHistory(AgentMiddleware[MultiAgentGraphState, Any, Any]):
    """Before a model call, keeps the first message of the user and the last `keep` messages.

    The history is replaced (`RemoveMessage(id=REMOVE_ALL_MESSAGES)`), not added to. A tool result is kept only with
    the message that asked for it, and the other way round.
    """

    def __init__(self, keep: int = 40) -> None:
        super().__init__()
        if keep < 2:
            raise ValueError(f"keep must be 2 or more messages, not {keep}")
        self.keep = keep

    def before_model(self, state: MultiAgentGraphState, runtime: Any) -> dict[str, Any] | None:
        """The replacement of the history, None when it is short enough."""
        messages = state["messages"]
        if len(messages) <= self.keep:
            return None
        kept = kept_messages(messages, self.keep)
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}

    async def abefore_model(self, state: MultiAgentGraphState, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, async."""
        return self.before_model(state, runtime)


def kept_messages(messages: list[AnyMessage], keep: int) -> list[AnyMessage]:
    """The user's first message and about the last `keep` of the others, tool calls and results whole."""
    start = max(0, len(messages) - keep)
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    head = [m for m in messages[:start] if m.type == "human"][:1]
    return [*head, *messages[start:]]


class CallMetrics(AgentMiddleware[MultiAgentGraphState, Any, Any]):
    """After each model call, counts messages, tool calls and output tokens of a role in `counts`."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self.role = role
        self.counts: Counter[str] = Counter()

    def after_model(self, state: MultiAgentGraphState, runtime: Any) -> None:
        """Count the newest message."""
        message = state["messages"][-1]
        usage: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
        self.counts.update(
            messages=1, tool_calls=len(getattr(message, "tool_calls", ())), output_tokens=usage.get("output_tokens", 0)
        )

    async def aafter_model(self, state: MultiAgentGraphState, runtime: Any) -> None:
        """`after_model`, async."""
        self.after_model(state, runtime)
