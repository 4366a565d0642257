"""One model call under second budgets: refused before it is sent, retries counted, a reply cut at what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
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

from docmind_lab.core.budgets import Budget, Meter, metering
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import CallsSpent, SpendingRefused, TokensSpent
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.base.model_calls import ModelCalls

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


def reply(read: int, written: int, finish_reason: str = "stop") -> ModelResponse[Any]:
    usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    said = AIMessage("ok", usage_metadata=usage, response_metadata={"finish_reason": finish_reason})
    return ModelResponse(result=[said])


def unavailable() -> openai.APIStatusError:
    return openai.InternalServerError("no", response=httpx2.Response(503, request=REQUEST), body=None)


@dataclass
class Server:
    """Answers in turn, and keeps the settings it was asked with."""

    answers: Sequence[Any]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        self.asked.append(dict(request.model_settings))
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def answer_async(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        return self(request)


Call = Callable[..., ModelResponse[Any]]


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, manual_clock: ManualClock) -> Call:
    """Makes one call of synthesis, by both doors; under a deadline unless told otherwise."""

    async def slept(seconds: float) -> None:
        manual_clock.sleep(seconds)

    def made(server: Server, *, deadline: bool = True, model: Any = None, **settings: Any) -> ModelResponse[Any]:
        middleware = ModelCalls("synthesis", clock=manual_clock, async_sleep=slept)
        state: Any = {"messages": [], **({"deadline_ts": manual_clock.now() + 60.0} if deadline else {})}
        asked = ModelRequest(
            model=model or saying("x"), messages=[HumanMessage("q")], state=state, model_settings=settings
        )
        if request.param == "sync":
            return middleware.wrap_model_call(asked, server)
        return asyncio.run(middleware.awrap_model_call(asked, server.answer_async))

    return made


@pytest.fixture
def noted(manual_clock: ManualClock) -> Iterator[Recorder]:
    with recording(Recorder("run", 1, Deadline.after(60, manual_clock), manual_clock)) as made:
        yield made


def events(recorder: Recorder, name: str) -> list[Any]:
    return [event.detail for event in recorder.snapshot().events if event.event == name]


def chat(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", api_key="unused", base_url="http://127.0.0.1:9/v1", **options)


def test_a_call_is_refused_before_it_is_sent_once_the_tokens_are_spent(call: Call, noted: Recorder) -> None:
    server = Server([reply(90, 20)])
    with metering(Meter(Budget(tokens=100))) as meter:
        call(server)
        with pytest.raises(TokensSpent) as refused:
            call(server)
    assert (refused.value.role, refused.value.limit, refused.value.spent) == ("synthesis", 100, 110)
    assert len(server.asked) == 1
    assert events(noted, "refused") == [{"kind": "llm", "budget": "tokens"}]
    (attempt,) = noted.snapshot().attempts
    assert (attempt.outcome, attempt.sent_at, attempt.capped) == ("refused", None, False)
    assert meter.spent().calls == 1


@pytest.mark.parametrize("deadline", [True, False])
def test_a_meter_that_is_not_enforced_refuses_nothing_and_counts_everything(call: Call, deadline: bool) -> None:
    # A deadline may be a workload's own, and says nothing of budgets.
    server = Server([reply(90, 20)])
    with metering(Meter(Budget(tokens=100, calls=1), is_enforced=False)) as meter:
        call(server, deadline=deadline, model=chat())
        call(server, deadline=deadline, model=chat())
    assert (meter.spent().calls, meter.spent().tokens) == (2, 220)
    assert all("max_tokens" not in settings for settings in server.asked)


def test_a_meter_is_enforced_without_a_deadline_too(call: Call) -> None:
    server = Server([reply(20, 10)])
    with metering(Meter(Budget(tokens=100, calls=2))):
        for _ in range(2):
            call(server, deadline=False, model=chat())
        with pytest.raises(CallsSpent):
            call(server, deadline=False, model=chat())
    assert server.asked == [{"max_tokens": 100}, {"max_tokens": 70}]


def test_a_retry_is_a_call_of_its_own(call: Call) -> None:
    with metering(Meter(Budget(calls=5))) as meter:
        call(Server([unavailable(), reply(1, 1)]))
    assert meter.spent().calls == 2


def test_a_retry_that_would_be_one_call_too_many_is_not_waited_for(
    call: Call, noted: Recorder, manual_clock: ManualClock
) -> None:
    server, begun_at = Server([unavailable()]), manual_clock.now()
    with metering(Meter(Budget(calls=1))):
        with pytest.raises(CallsSpent) as refused:
            call(server)
    assert isinstance(refused.value.__cause__, openai.InternalServerError)
    assert (len(server.asked), manual_clock.now()) == (1, begun_at)
    assert events(noted, "refused") == [{"kind": "llm", "budget": "calls"}]


def test_a_retry_is_refused_when_others_spent_what_was_left_during_the_wait(
    call: Call, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(Budget(calls=2))
    monkeypatch.setattr(manual_clock, "sleep", lambda seconds: meter.admit("other", "middleware"))
    server = Server([unavailable()])
    with metering(meter):
        with pytest.raises(SpendingRefused):
            call(server)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("options", "settings", "sent"),
    [
        ({}, {}, 70),
        ({"max_tokens": 50}, {}, None),
        ({"max_tokens": 500}, {}, 70),
        ({}, {"max_completion_tokens": 60}, None),
        ({}, {"max_completion_tokens": 600}, 70),
    ],
)
def test_a_reply_is_cut_at_the_tokens_that_are_left_unless_it_is_shorter_anyway(
    call: Call, options: dict[str, Any], settings: dict[str, Any], sent: int | None
) -> None:
    server, meter = Server([reply(10, 5)]), Meter(Budget(tokens=100))
    meter.charge(20, 10)
    with metering(meter):
        call(server, model=chat(**options), **settings)
    assert server.asked[0].get("max_tokens") == sent
    assert ("max_completion_tokens" in server.asked[0]) == (sent is None and bool(settings))


def test_chat_openai_sends_the_cap_as_the_completion_limit_in_place_of_its_own() -> None:
    payload = chat(max_tokens=500)._get_request_payload([HumanMessage("q")], max_tokens=70)
    assert (payload["max_completion_tokens"], "max_tokens" in payload) == (70, False)


def test_a_model_that_would_not_hear_of_a_cap_gets_none(call: Call) -> None:
    server = Server([reply(10, 5)])
    with metering(Meter(Budget(tokens=100))):
        call(server, model=saying("x"))
    assert "max_tokens" not in server.asked[0]


def test_a_reply_that_ends_where_the_budget_does_is_known_to_be_cut(call: Call, noted: Recorder) -> None:
    with metering(Meter(Budget(tokens=100))) as meter:
        call(Server([reply(10, 100, "length")]), model=chat())
    assert meter.cut_by == "tokens"
    assert events(noted, "reply_cut") == [{"kind": "llm", "budget": "tokens", "tokens": 100}]


def test_a_reply_that_ends_at_its_own_limit_is_not_the_budgets_doing(call: Call, noted: Recorder) -> None:
    with metering(Meter(Budget(tokens=100))) as meter:
        call(Server([reply(10, 5, "length")]), model=chat(max_tokens=5))
    assert meter.cut_by is None
    assert events(noted, "reply_cut") == []


def test_a_response_that_does_not_say_what_it_used_is_noted_where_it_would_have_counted(
    call: Call, noted: Recorder
) -> None:
    silent = Server([ModelResponse(result=[AIMessage("ok")])])
    with metering(Meter(Budget(calls=10))):
        call(silent)
    assert events(noted, "usage_missing") == []
    with metering(Meter(Budget(tokens=10))) as meter:
        call(silent)
    assert events(noted, "usage_missing") == [{"kind": "llm"}]
    assert meter.spent().tokens == 0
