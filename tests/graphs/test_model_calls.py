"""One model call under a deadline (supervisor.md 19, 22, 23) and under second budgets, by hand."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
import pytest
from graph_fakes import saying
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from manual_clock import ManualClock
from retrieval_fakes import details

from docmind_lab.core.budgets import Budget, Meter, metering
from docmind_lab.core.deadlines import Deadline, PropagationPolicy, current_deadline, deadline_scope, policy_scope
from docmind_lab.core.errors import BudgetRefused, CallsSpent, DeadlineExceeded, SpendingRefused, TokensSpent
from docmind_lab.network import current_call
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.base.model_calls import ModelCalls

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")
# As the openai client waits: half a second, less a quarter at most.
FIRST_WAIT = pytest.approx(0.4375, abs=0.0625)


@dataclass
class HandClock(ManualClock):
    """Moves only when someone sleeps on it or spends time on purpose; sleeping may take longer than asked for."""

    now_s: float = 100.0
    oversleep_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds + self.oversleep_s

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


def status_error(kind: type[openai.APIStatusError], status: int, **headers: str) -> openai.APIStatusError:
    response = httpx2.Response(status, request=REQUEST, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return kind("no", response=response, body=None)


def server_error() -> openai.APIStatusError:
    return status_error(openai.InternalServerError, 503)


def too_many(retry_after: str) -> openai.APIStatusError:
    return status_error(openai.RateLimitError, 429, retry_after=retry_after)


OK = ModelResponse(result=[AIMessage("ok", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9})])


@dataclass
class Server:
    """Answers each attempt with the next of `answers`, or the last, after `takes_s` of the clock's time."""

    clock: HandClock
    answers: list[Any]
    takes_s: float = 0.0
    timeouts: list[Any] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    deadlines: list[Deadline | None] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    def __call__(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        self.asked.append(dict(request.model_settings))
        self.timeouts.append(request.model_settings.get("timeout"))
        self.deadlines.append(current_deadline())
        self.models.append(request.model)
        self.calls.append(current_call())
        self.clock.now_s += self.takes_s
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answer_async(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        return self(request)


Call = Callable[..., ModelResponse[Any]]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, clock: HandClock) -> Call:
    """Makes one model call through the middleware of a role, by both doors."""

    def made(server: Server, *, left_s: float | None = None, role: str = "synthesis", **options: Any) -> Any:
        model, settings = options.pop("model", saying("x")), options.pop("settings", {})
        middleware = ModelCalls(role, clock=clock, async_sleep=clock.async_sleep, **options)
        state = {"messages": [], "handoff_ordinal": 2, "fan_out_index": 1}
        if left_s is not None:
            state["deadline_ts"] = clock.now() + left_s
        asked = ModelRequest(model=model, messages=[HumanMessage("q")], state=state, model_settings=settings)  # type: ignore[arg-type]
        if request.param == "sync":
            return middleware.wrap_model_call(asked, server)
        return asyncio.run(middleware.awrap_model_call(asked, server.answer_async))

    return made


@pytest.fixture
def noted(clock: HandClock) -> Iterator[Recorder]:
    with recording(Recorder("run", 1, Deadline.after(60, clock), clock)) as made:
        yield made


# ---- 19: the cap


@pytest.mark.parametrize(
    ("left_s", "request_timeout_s", "timeout_s"),
    [(5.0, None, 5.0), (5.0, 2.0, 2.0), (1.5, 2.0, 1.5), (0.0051, None, 0.0051)],
)
def test_a_call_gets_the_smaller_of_its_timeout_and_what_is_left(
    call: Call, clock: HandClock, left_s: float, request_timeout_s: float | None, timeout_s: float
):
    server = Server(clock, [OK])
    assert call(server, left_s=left_s, request_timeout_s=request_timeout_s) is OK
    assert server.timeouts == [pytest.approx(timeout_s)]
    (deadline,) = server.deadlines
    assert deadline is not None
    assert deadline.at_s == pytest.approx(100.0 + left_s)


def test_a_shorter_timeout_of_the_model_or_the_request_stays(call: Call, clock: HandClock):
    model = ChatOpenAI(model="m", api_key="k", timeout=1.25)  # type: ignore[arg-type]
    server = Server(clock, [OK, OK, OK])
    call(server, left_s=5.0, model=model, request_timeout_s=2.0)
    call(server, left_s=5.0, model=model.bind(stop="x"), request_timeout_s=2.0)
    call(server, left_s=5.0, settings={"timeout": 0.5, "seed": 1}, request_timeout_s=2.0)
    assert server.timeouts == [1.25, 1.25, 0.5]


def test_a_per_read_cap_is_left_to_the_client(call: Call, clock: HandClock):
    server = Server(clock, [OK])
    with policy_scope(PropagationPolicy(cap="per_read")):
        call(server, left_s=5.0)
    assert (server.timeouts, server.deadlines) == ([5.0], [None])


def test_an_outer_deadline_that_is_earlier_holds(call: Call, clock: HandClock):
    server = Server(clock, [OK])
    with deadline_scope(Deadline(101.0, 1.0, clock)):
        call(server, left_s=5.0)
    assert server.timeouts == [1.0]


def test_without_a_deadline_the_request_goes_out_as_it_is(call: Call, clock: HandClock, noted: Recorder):
    model = ChatOpenAI(model="m", api_key="k")  # type: ignore[arg-type]
    server = Server(clock, [OK])
    call(server, model=model, request_timeout_s=2.0)
    assert (server.timeouts, server.deadlines) == ([None], [None])
    assert server.models[0] is model


@pytest.mark.parametrize("error", [server_error(), openai.APITimeoutError(request=REQUEST)])
def test_without_a_deadline_errors_are_the_clients_own(call: Call, clock: HandClock, error: Exception):
    with pytest.raises(type(error)) as raised:
        call(Server(clock, [error]))
    assert raised.value is error
    assert clock.slept == []


def test_a_call_is_recorded_at_its_place_with_its_tokens(call: Call, clock: HandClock, noted: Recorder):
    server = Server(clock, [OK])
    call(server, left_s=5.0)
    call(server)
    assert [(c.call_id, c.cap_from_deadline) for c in server.calls] == [
        ("llm/synthesis/2.1.1", True),
        ("llm/synthesis/2.1.2", False),
    ]


# ---- 22: refused


@pytest.mark.parametrize("left_s", [0.005, 0.0, -3.0])
def test_too_little_left_is_refused_before_anything_is_sent(
    call: Call, clock: HandClock, noted: Recorder, left_s: float
):
    server = Server(clock, [OK])
    with pytest.raises(BudgetRefused, match="synthesis") as raised:
        call(server, left_s=left_s)
    assert raised.value.stop_reason == "budget_refused"
    assert server.timeouts == []
    (attempt,) = noted.snapshot().attempts
    assert (attempt.outcome, attempt.call.kind, attempt.sent_at) == ("refused", "llm", None)
    assert details(noted, "refused") == [{"kind": "llm"}]


# ---- 19: retries within the budget


def test_a_failed_attempt_is_retried_with_what_is_left_then(call: Call, clock: HandClock, noted: Recorder):
    server = Server(clock, [server_error(), server_error(), OK], takes_s=1.0)
    with policy_scope(PropagationPolicy(retries=2)):
        assert call(server, left_s=10.0) is OK
    first, second = clock.slept
    assert server.timeouts == pytest.approx([10.0, 9.0 - first, 8.0 - first - second])
    # The openai client's own waits: 0.5 s, doubled each time, less a quarter at most.
    assert 0.375 <= first <= 0.5
    assert 0.75 <= second <= 1.0
    assert [detail["attempt"] for detail in details(noted, "retry")] == [1, 2]


@pytest.mark.parametrize(
    ("answers", "left_s", "error", "slept", "sent"),
    [
        (
            [server_error(), server_error(), OK],
            10.0,
            openai.InternalServerError,
            [FIRST_WAIT],
            2,
        ),
        ([server_error(), OK], 0.3, openai.InternalServerError, [], 1),
        ([too_many("2.5"), OK], 5.0, None, [2.5], 2),
        *(([too_many(after), OK], 5.0, openai.RateLimitError, [], 1) for after in ("5", "4.996", "120", "inf")),
        ([too_many("soon"), OK], 5.0, None, [FIRST_WAIT], 2),
        ([status_error(openai.BadRequestError, 400), OK], 5.0, openai.BadRequestError, [], 1),
        ([status_error(openai.AuthenticationError, 401), OK], 5.0, openai.AuthenticationError, [], 1),
        ([status_error(openai.NotFoundError, 404), OK], 5.0, openai.NotFoundError, [], 1),
    ],
    ids=[
        "no more retries than the policy allows",
        "a retry that could not end in time is not started",
        "Retry-After within the budget is obeyed",
        *(f"Retry-After {after} is beyond the budget" for after in ("5", "4.996", "120", "inf")),
        "an unreadable Retry-After counts as none",
        *(f"{status} refuses the request itself" for status in (400, 401, 404)),
    ],
)
def test_a_failed_attempt_is_retried_only_where_that_can_help_and_end_in_time(
    call: Call,
    clock: HandClock,
    noted: Recorder,
    answers: list[Any],
    left_s: float,
    error: type[Exception] | None,
    slept: list[Any],
    sent: int,
):
    server = Server(clock, answers)
    if error is None:
        assert call(server, left_s=left_s) is OK
    else:
        with pytest.raises(error):
            call(server, left_s=left_s)
    assert (clock.slept, len(server.timeouts)) == (slept, sent)
    assert server.timeouts == pytest.approx([left_s, left_s - sum(clock.slept)][:sent])
    assert len(details(noted, "retry")) == sent - 1


def test_a_wait_that_took_too_long_ends_the_call_instead_of_sending(call: Call, clock: HandClock):
    clock.oversleep_s = 10.0
    server = Server(clock, [server_error(), OK])
    with pytest.raises(DeadlineExceeded) as raised:
        call(server, left_s=5.0)
    assert isinstance(raised.value.__cause__, openai.InternalServerError)
    assert len(server.timeouts) == 1


def test_a_timeout_at_the_deadline_is_a_deadline_error_chained_from_it(call: Call, clock: HandClock, noted: Recorder):
    timeout = openai.APITimeoutError(request=REQUEST)
    with pytest.raises(DeadlineExceeded) as raised:
        call(Server(clock, [timeout, OK], takes_s=5.0), left_s=5.0)
    assert raised.value.__cause__ is timeout
    assert (raised.value.role, raised.value.source, raised.value.stop_reason) == ("synthesis", "network", "deadline")
    assert raised.value.elapsed_s == pytest.approx(5.0)
    assert details(noted, "deadline_cut") == [{"kind": "llm", "source": "network"}]


@pytest.mark.parametrize(
    ("error", "takes_s"),
    [(openai.APITimeoutError(request=REQUEST), 1.0), (ZeroDivisionError(), 9.0)],
    ids=["a timeout of the request alone", "a defect"],
)
def test_nothing_else_is_taken_for_a_deadline(call: Call, clock: HandClock, error: Exception, takes_s: float):
    with pytest.raises(type(error)):
        call(Server(clock, [error, OK], takes_s=takes_s), left_s=5.0, request_timeout_s=1.0)


# ---- the client's own retries


def client(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", api_key="k", max_retries=2, **options)  # type: ignore[arg-type]


def sending(statuses: list[int], sent: list[httpx2.Request], **options: Any) -> dict[str, Any]:
    """Clients of both modes whose server gives these statuses."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        status = statuses[min(len(sent), len(statuses)) - 1]
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        return httpx2.Response(status, json=body if status == 200 else {"error": {"message": "no"}})

    transport = httpx2.MockTransport(answer)
    return {
        "http_client": httpx2.Client(transport=transport),
        "http_async_client": httpx2.AsyncClient(transport=transport),
    }


@pytest.mark.parametrize("bound", [False, True])
def test_under_a_budget_the_real_client_sends_each_attempt_once(call: Call, clock: HandClock, bound: bool):
    """2 requests are our own attempts; the client alone would have sent 3 for each."""
    sent: list[httpx2.Request] = []
    model: Any = client(**sending([503], sent))
    if bound:
        model = model.bind(seed=1)

    class Sending(Server):
        def __call__(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[request.model.invoke("q", **request.model_settings)])

        async def answer_async(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[await request.model.ainvoke("q", **request.model_settings)])

    with pytest.raises(openai.InternalServerError):
        call(Sending(clock, []), left_s=5.0, model=model)
    assert len(sent) == 2
    assert sent[0].extensions["timeout"]["read"] == 5.0
    assert sent[1].extensions["timeout"]["read"] == pytest.approx(5.0 - clock.slept[0])


def test_without_client_retries_keeps_the_connections_the_model_and_what_is_bound_to_it():
    model = client(temperature=0.5)
    bound = model.bind(stop="x").with_config(tags=["t"])
    without_retries = ModelCalls("synthesis")._without_client_retries(bound)
    assert (without_retries.kwargs, without_retries.config["tags"]) == ({"stop": "x"}, ["t"])
    copy = without_retries.bound
    assert (copy.max_retries, copy.root_client.max_retries, copy.root_async_client.max_retries) == (0, 0, 0)
    assert (model.max_retries, model.root_client.max_retries) == (2, 2)
    assert copy.root_client._client is model.root_client._client
    assert copy.root_async_client._client is model.root_async_client._client
    assert copy.client._client is copy.root_client
    assert copy.async_client._client is copy.root_async_client
    assert (copy.model_name, copy.temperature) == ("m", 0.5)


def test_the_last_copy_is_used_again_but_for_another_model_or_one_that_was_changed():
    without = ModelCalls("synthesis")._without_client_retries
    first, second = client(temperature=0.5), ChatOpenAI(model="b", api_key="k")  # type: ignore[arg-type]
    before = without(first)
    assert without(first) is before
    assert [without(model).model_name for model in (second, first)] == ["b", "m"]
    first.temperature = 1.0
    assert (without(first).temperature, before.temperature) == (1.0, 0.5)


def test_models_are_not_kept():
    model = client()
    copy, reference = weakref.ref(ModelCalls("synthesis")._without_client_retries(model)), weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
    assert copy() is None, "the copy would keep the model's connections"


# ---- second budgets: refused before it is sent, retries counted, a reply cut at what is left


def reply(read: int, written: int, finish_reason: str = "stop") -> ModelResponse[Any]:
    usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    said = AIMessage("ok", usage_metadata=usage, response_metadata={"finish_reason": finish_reason})
    return ModelResponse(result=[said])


def chat(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", api_key="unused", base_url="http://127.0.0.1:9/v1", **options)


def test_a_call_is_refused_before_it_is_sent_once_the_tokens_are_spent(call: Call, clock: HandClock, noted: Recorder):
    server = Server(clock, [reply(90, 20)])
    with metering(Meter(Budget(tokens=100))) as meter:
        call(server, left_s=60.0)
        with pytest.raises(TokensSpent) as refused:
            call(server, left_s=60.0)
    assert (refused.value.role, refused.value.limit, refused.value.spent) == ("synthesis", 100, 110)
    assert len(server.asked) == 1
    assert details(noted, "refused") == [{"kind": "llm", "budget": "tokens"}]
    (attempt,) = noted.snapshot().attempts
    assert (attempt.outcome, attempt.sent_at, attempt.capped) == ("refused", None, False)
    assert meter.spent().calls == 1


@pytest.mark.parametrize("deadline", [True, False])
def test_a_meter_that_is_not_enforced_refuses_nothing_and_counts_everything(
    call: Call, clock: HandClock, deadline: bool
):
    # A deadline may be a workload's own, and says nothing of budgets.
    server = Server(clock, [reply(90, 20)])
    with metering(Meter(Budget(tokens=100, calls=1), is_enforced=False)) as meter:
        call(server, left_s=60.0 if deadline else None, model=chat())
        call(server, left_s=60.0 if deadline else None, model=chat())
    assert (meter.spent().calls, meter.spent().tokens) == (2, 220)


def test_a_meter_is_enforced_without_a_deadline_too(call: Call, clock: HandClock):
    server = Server(clock, [reply(20, 10)])
    with metering(Meter(Budget(tokens=100, calls=2))):
        for _ in range(2):
            call(server, model=chat())
        with pytest.raises(CallsSpent):
            call(server, model=chat())
    assert len(server.asked) == 2


def test_a_retry_that_would_be_one_call_too_many_is_not_waited_for(call: Call, clock: HandClock, noted: Recorder):
    server, begun_at = Server(clock, [server_error()]), clock.now()
    with metering(Meter(Budget(calls=1))):
        with pytest.raises(CallsSpent) as refused:
            call(server, left_s=60.0)
    assert isinstance(refused.value.__cause__, openai.InternalServerError)
    assert (len(server.asked), clock.now()) == (1, begun_at)
    assert details(noted, "refused") == [{"kind": "llm", "budget": "calls"}]


def test_a_retry_is_refused_when_others_spent_what_was_left_during_the_wait(
    call: Call, clock: HandClock, monkeypatch: pytest.MonkeyPatch
):
    meter = Meter(Budget(calls=2))
    monkeypatch.setattr(clock, "sleep", lambda seconds: meter.admit("other", "middleware"))
    server = Server(clock, [server_error()])
    with metering(meter), pytest.raises(SpendingRefused):
        call(server, left_s=60.0)
    assert (len(server.asked), meter.spent().calls) == (1, 2)


def test_a_response_that_does_not_say_what_it_used_is_noted_where_it_would_have_counted(
    call: Call, clock: HandClock, noted: Recorder
):
    silent = Server(clock, [ModelResponse(result=[AIMessage("ok")])])
    with metering(Meter(Budget(calls=10))):
        call(silent, left_s=60.0)
    assert details(noted, "usage_missing") == []
    with metering(Meter(Budget(tokens=10))) as meter:
        call(silent, left_s=60.0)
    assert details(noted, "usage_missing") == [{"kind": "llm"}]
    assert meter.spent().tokens == 0
