"""Middleware around every model call of a role: records the call, and holds it to the deadline in the state.

The second budgets of the run, whose meter is in force around it, are charged here too, and enforced if the meter is.
Under a deadline retries are ours, within the budget, and the client makes none.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, ClassVar, NoReturn

import httpx2
import openai
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableBinding
from langchain_openai import ChatOpenAI

from docmind_lab.core.budgets import current_meter
from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.errors import BudgetError, SpendingRefused
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import LlmSettings
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import current_recorder, note_event, position_of, refusal_detail
from docmind_lab.systems.base.bounded_calls import cut_error, is_spent
from docmind_lab.systems.base.node_modes import CALL_SYNC, NodeMode, checked_node_mode
from docmind_lab.systems.base.state import SystemState
from docmind_lab.systems.base.timed_calls import TimedCall


def without_bindings(model: Any) -> Any:
    """Return the model without its bindings, such as tools."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    return model


def budget_of(error: BudgetError) -> str:
    """Return which budget is used up: "time", "tokens", "calls" or "cost"."""
    return error.budget if isinstance(error, SpendingRefused) else "time"


def settle(response: ModelResponse[Any], role: str) -> None:
    """Record the response's tokens and charge the meter."""
    recorder, meter = current_recorder(), current_meter()
    message = next((m for m in response.result if isinstance(m, AIMessage)), None)
    usage = None if message is None else message.usage_metadata
    if usage is not None:
        if recorder is not None:
            recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])
        if meter is not None:
            meter.charge(usage["input_tokens"], usage["output_tokens"])
    elif meter is not None and meter.budget.needs_usage and recorder is not None:
        recorder.event("usage_missing", role, kind="llm")


# What a model call fails with: the openai client's errors; a body that is not JSON, which it lets through; and the
# network's own, when a stream breaks after it was opened.
FAILURES = (openai.OpenAIError, json.JSONDecodeError, httpx2.HTTPError)
TIMEOUTS = (openai.APITimeoutError, httpx2.TimeoutException)
RETRYABLE = (
    openai.RateLimitError,
    openai.InternalServerError,
    openai.APIConnectionError,
    json.JSONDecodeError,
    httpx2.TransportError,
)
FIRST_BACKOFF_S = 0.5  # as the openai client's own first wait, so that the two differ in the budget only


def retry_after_s(error: BaseException) -> float | None:
    """Return the seconds that the server asks to wait; None if it does not say."""
    response = getattr(error, "response", None)
    value = response.headers.get("retry-after") if response is not None else None
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None


class ModelCalls(AgentMiddleware[SystemState, Any, Any]):
    """Middleware that records each model call, and enforces the deadline if the state carries one.

    role: whose calls these are. request_timeout_s: cap of one request under propagation, besides the deadline and
    the model's own timeout. clock: what the deadline's instant is read on and what sync retries wait on.
    async_sleep: what async retries wait on.

    With a deadline: a call with no budget left is refused before it is sent (`BudgetRefused`); the client's own
    retries are off and ours stay within the budget; what is cut surfaces as `DeadlineExceeded`, and nothing of the
    call keeps running on this side. Without one: the request goes out exactly as the client would send it.

    With a meter that is enforced: a call whose tokens, calls or cost are spent is refused (`SpendingRefused`), retries
    one by one; replies of an OpenAI model are cut at the tokens that are left.
    """

    state_schema = SystemState

    def __init__(
        self,
        role: str,
        *,
        request_timeout_s: float | None = None,
        clock: Clock = WALL,
        async_sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__()
        self.role, self.request_timeout_s, self.clock, self.async_sleep = role, request_timeout_s, clock, async_sleep
        self._copied: tuple[dict[str, Any], ChatOpenAI | None] = ({}, None)

    @property
    def name(self) -> str:
        """Name of the middleware, unique for each role, as LangChain requires within one agent."""
        return f"ModelCalls[{self.role}]"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one model call, sync."""
        return finish(self._calls(request, handler))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Make one model call, async."""
        return await afinish(self._calls(request, handler))

    def _calls(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Steps[Any]:
        """Make one call with its retries. handler: sync or async, as the driver of these steps is."""
        deadline = Deadline.from_state(request.state, self.clock)
        budget = None if deadline is None else TimedCall(self.role, deadline, current_policy())
        # Under a per-read cap the client's timeout applies, and nothing at the network seam.
        of_seam = deadline if budget is not None and budget.policy.cap == "total" else None
        with self._record(request, budget):
            attempt = 0
            while True:
                attempt += 1
                call = functools.partial(handler, self._limited(request, budget))
                sent = Operation(call, call)
                try:
                    with deadline_scope(of_seam):
                        response = yield sent if budget is None else budget.hedged(sent)
                except FAILURES as error:
                    wait_s = self._wait_before_retry(error, budget, attempt)
                    sleep = functools.partial(self.clock.sleep, wait_s)
                    yield Operation(sleep, functools.partial(self.async_sleep, wait_s))
                    self._raise_if_spent(error, budget)
                    self._admit_retry(error, budget)
                else:
                    settle(response, self.role)
                    return response

    @contextlib.contextmanager
    def _record(self, request: ModelRequest[Any], budget: TimedCall | None) -> Iterator[None]:
        recorder = current_recorder()
        position = position_of(request.state)
        try:
            _admit(self.role, budget)
        except BudgetError as error:
            if recorder is not None:
                recorder.refuse("llm", self.role, position, budget=budget_of(error))
            raise
        if recorder is None:
            yield
            return
        with recorder.call("llm", self.role, position, cap_from_deadline=budget is not None):
            yield

    def _limited(self, request: ModelRequest[Any], budget: TimedCall | None) -> ModelRequest[Any]:
        if budget is None:
            return request
        request = budget.prepared(request)
        of_model = getattr(without_bindings(request.model), "request_timeout", None)
        own = (self.request_timeout_s, request.model_settings.get("timeout"), of_model)
        timeouts = [timeout_s for timeout_s in own if isinstance(timeout_s, int | float)]
        settings = {**request.model_settings, "timeout": budget.deadline.cap(min(timeouts, default=None))}
        return request.override(model=self._without_client_retries(request.model), model_settings=settings)

    def _without_client_retries(self, model: Any) -> Any:
        """Return a copy of a ChatOpenAI that does not retry, bound as before; any other model as it is.

        The last copy is kept: one for each call costs 0.6 ms of CPU, a quarter more.
        """
        if isinstance(model, RunnableBinding):
            return model.model_copy(update={"bound": self._without_client_retries(model.bound)})
        if not isinstance(model, ChatOpenAI):
            return model
        # In one read and one write: another thread may put another model's copy in between.
        fields, copy = self._copied
        if copy is None or fields != vars(model):
            fields, copy = dict(vars(model)), model.model_copy()
            copy.max_retries = 0
            copy.root_client = model.root_client.with_options(max_retries=0)
            copy.client = copy.root_client.chat.completions
            copy.root_async_client = model.root_async_client.with_options(max_retries=0)
            copy.async_client = copy.root_async_client.chat.completions
            self._copied = fields, copy
        return copy

    def _wait_before_retry(self, error: Exception, budget: TimedCall | None, attempt: int) -> float:
        """Return the seconds to wait before another attempt; raise if there must not be one."""
        if budget is None:
            raise error
        self._raise_if_spent(error, budget)
        policy = budget.policy
        # Of the deadline, or of a client that has waited as long as it may. A limit is there to try again.
        is_final_timeout = isinstance(error, TIMEOUTS) and policy.policies.limits is None
        if attempt > policy.retries or not isinstance(error, RETRYABLE) or is_final_timeout:
            raise error
        wait_s = retry_after_s(error)
        if wait_s is None:
            wait_s = FIRST_BACKOFF_S * 2 ** (attempt - 1) * (1 - 0.25 * keyed_uniform("backoff", self.role, attempt))
        # An attempt that begins with nothing left cannot end in time: it is not started.
        if wait_s >= budget.deadline.remaining() - policy.floor_s:
            raise error
        # Looked at before the wait too: who waits for a call that will be refused keeps its caller waiting for nothing.
        meter = current_meter()
        if meter is not None and (refusal := meter.refusal(self.role, "middleware")) is not None:
            self._raise_refused(refusal, error)
        note_event("retry", self.role, kind="llm", attempt=attempt, wait_s=wait_s)
        return wait_s

    def _raise_if_spent(self, error: Exception, budget: TimedCall | None) -> None:
        if budget is not None and is_spent(budget.deadline):
            raise cut_error("llm", self.role, budget.deadline) from error

    def _admit_retry(self, error: Exception, budget: TimedCall | None) -> None:
        """Count another attempt. Raises: SpendingRefused if other calls have spent the rest."""
        try:
            _admit(self.role, budget)
        except BudgetError as refusal:
            self._raise_refused(refusal, error)

    def _raise_refused(self, refusal: BudgetError, error: Exception) -> NoReturn:
        note_event("refused", self.role, **refusal_detail("llm", budget_of(refusal)))
        raise refusal from error


def _admit(role: str, budget: TimedCall | None) -> None:
    """Count the request that is sent next. Raises: BudgetRefused, SpendingRefused if nothing is left for it."""
    if budget is not None and is_spent(budget.deadline):
        raise budget.deadline.refused(role, "middleware")
    meter = current_meter()
    if meter is not None:
        meter.admit(role, "middleware")


class SyncChatOpenAI(ChatOpenAI):
    """A ChatOpenAI without an async side: an async run of it is a sync call in a worker thread.

    It is what LangChain makes of any chat model that has no `_agenerate`. What cuts the call is its own timeout and
    the deadline at the network seam, if one is propagated; a cancelled task only stops waiting for it.
    """

    node_mode: ClassVar[NodeMode] = "sync"

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        manager = None if run_manager is None else run_manager.get_sync()
        result: ChatResult = await CALL_SYNC[self.node_mode](
            self._generate, messages, stop=stop, run_manager=manager, **kwargs
        )
        return result


class BlockingChatOpenAI(SyncChatOpenAI):
    """A ChatOpenAI whose async side blocks the event loop during each call, a common mistake."""

    node_mode: ClassVar[NodeMode] = "blocking"


MODEL_CLASSES: dict[NodeMode, type[ChatOpenAI]] = {
    "own": ChatOpenAI,
    "sync": SyncChatOpenAI,
    "blocking": BlockingChatOpenAI,
}
"""The chat model of each mode."""


def chat_model(mode: NodeMode, llm: LlmSettings, base_url: str, http: HttpClients, **options: Any) -> ChatOpenAI:
    """Build the chat model of a system over its HTTP clients. Raises: ConfigurationError: there is no such mode."""
    return MODEL_CLASSES[checked_node_mode(mode)](
        model=llm.model,
        base_url=base_url,
        api_key=llm.api_key,
        http_client=http.openai,
        http_async_client=http.openai_async,
        **options,
    )
