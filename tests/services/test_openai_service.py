"""The simulated model server's plans: shapes, latency by key, limits and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planned_replies import LOOK_UP, body_of, head_of, json_of, tagged

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, ServiceRequest, Wait
from docmind_lab.services.scripted_model.tokens import count_tokens
from docmind_lab.statistics.latency.profile import LatencyProfile

PROFILE = LatencyProfile.named("typical")
SERVICE = OpenAIService(PROFILE)
DOCUMENT = "A quoll is a spotted marsupial. The quoll hunts at night in the eucalyptus forest."
QUESTION = "When does the quoll hunt in the forest?"
DEEP = b"[" * 200_000
ANSWERABLE = [
    {"role": "system", "content": "Answer from documents."},
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look_up", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": DOCUMENT},
]
TOOL_REQUEST = {"messages": [{"role": "user", "content": QUESTION}], "tools": [LOOK_UP]}


def plan_of(service: OpenAIService = SERVICE, headers: dict[str, str] | None = None, **payload: Any) -> Plan:
    body = json.dumps({"model": service.model, "messages": ANSWERABLE, **payload}).encode()
    return service.plan(ServiceRequest("POST", "/v1/chat/completions", headers or {}, body))


def call_of(**changes: Any) -> dict[str, str]:
    return tagged(**{"seed": 7, "role": "planner", "step": "1.0.1", "attempt": 1, **changes})


def events_of(plan: Plan) -> list[Any]:
    lines = [part for part in body_of(plan).decode().split("\n\n") if part]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def streamed(plan: Plan) -> tuple[str, list[Any], list[str], Any]:
    """Text, tool calls, finish reasons and usage of an event stream."""
    events = events_of(plan)
    choices = [choice for event in events for choice in event["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    calls: list[Any] = []
    for part in (part for choice in choices for part in choice["delta"].get("tool_calls", ())):
        if part["index"] == len(calls):
            calls.append({"function": {"arguments": ""}})
        whole, function = calls[part.pop("index")], part.pop("function")
        arguments = whole["function"]["arguments"] + function.pop("arguments")
        whole |= part | {"function": whole["function"] | function | {"arguments": arguments}}
    reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return text, calls, reasons, next((event["usage"] for event in events if event.get("usage")), None)


# ---- shapes


def test_usage_is_streamed_only_when_asked_for():
    assert streamed(plan_of(stream=True))[3] is None


def test_white_space_around_a_text_is_streamed_too():
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "  Because.  \n"}]
    tool = {"type": "function", "function": {"name": "transfer_to_router", "parameters": {}}}
    visited = [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "transfer_to_router"}}]}]
    request_body = {"messages": [messages[0], *visited, messages[1]], "tools": [tool]}
    whole = json_of(plan_of(**request_body))["choices"][0]["message"]["content"]
    assert whole == "  Because.  \n"
    assert streamed(plan_of(**request_body, stream=True))[0] == whole


def test_tool_calls_of_different_calls_have_different_ids():
    ids = {
        json_of(plan_of(headers=call_of(step=step), **TOOL_REQUEST))["choices"][0]["message"]["tool_calls"][0]["id"]
        for step in ("1.0.1", "1.0.2", "2.0.1")
    }
    assert len(ids) == 3


# ---- tokens


@pytest.mark.parametrize("content", ["Why is it so, thén?", [{"type": "text", "text": "Why is it so, thén?"}]])
def test_usage_counts_words_and_punctuation_marks_however_the_content_is_written(content):
    reply = json_of(plan_of(messages=[{"role": "user", "content": content}]))
    assert reply["usage"] == {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
    assert count_tokens(reply["choices"][0]["message"]["content"]) == 9


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_body", [{"messages": ANSWERABLE}, TOOL_REQUEST])
def test_the_tokens_generated_are_those_in_the_usage(request_body, stream):
    plan = plan_of(**request_body, stream=stream)
    generated = sum(step.tokens for step in plan.steps if isinstance(step, Wait))
    assert generated == plan.output_tokens == json_of(plan_of(**request_body))["usage"]["completion_tokens"]


# ---- latency


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("request_body", [{"messages": ANSWERABLE}, TOOL_REQUEST])
def test_latency_is_first_token_plus_tokens_times_inter_token_by_the_key(request_body, stream):
    plan = plan_of(headers=call_of(), stream=stream, **request_body)
    drawn = PROFILE.draw_llm(DrawKey(7, "planner", "1.0.1", 1))
    assert plan.steps[0] == Wait(drawn.first_token_s)
    assert plan.duration_s == pytest.approx(drawn.first_token_s + plan.output_tokens * drawn.inter_token_s)


CHANGES = [{"seed": 8}, {"role": "router"}, {"step": "1.0.2"}, {"attempt": 2}]


@pytest.mark.parametrize("change", CHANGES)
def test_another_key_has_another_latency(change):
    assert plan_of(headers=call_of()).duration_s != plan_of(headers=call_of(**change)).duration_s


def test_a_client_without_tags_is_keyed_by_role_and_length_of_the_conversation():
    service = OpenAIService(PROFILE, default_seed=5)
    assert plan_of(service).steps[0] == Wait(PROFILE.draw_llm(DrawKey(5, "assistant", "4", 1)).first_token_s)


# ---- limits


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_reply_longer_than_the_limit_is_cut_to_it_and_says_so(name):
    whole = json_of(plan_of())["choices"][0]["message"]["content"]
    cut = json_of(plan_of(**{name: 5}))
    text = cut["choices"][0]["message"]["content"]
    assert cut["choices"][0]["finish_reason"] == "length"
    assert count_tokens(text) == cut["usage"]["completion_tokens"] == 5
    assert whole.startswith(text)


# ---- errors


@pytest.mark.parametrize(
    ("body", "param"),
    [
        *((body, None) for body in (b"{", b"", b"[]", b"null", b"\xff\xfe", b'"text"', b'"\\ud800"', b"1" * 5000)),
        *((body, None) for body in (DEEP, b'{"messages":' * 100_000)),
        *(({"messages": messages}, "messages") for messages in (None, [], "Why?", {}, ["Why?"], [None])),
        *(({"max_tokens": limit}, "max_tokens") for limit in ("many", 0, -1)),
        *(({"max_completion_tokens": limit}, "max_completion_tokens") for limit in (1.5, True)),
        *(({"tools": tools}, None) for tools in ("look_up", ["look_up"], [{"type": "function", "function": None}])),
        ({"stream_options": "usage", "stream": True}, None),
    ],
)
def test_a_request_that_cannot_be_read_is_a_bad_request_that_names_what_is_wrong(body, param):
    content = body if isinstance(body, bytes) else json.dumps({"messages": ANSWERABLE, **body}).encode()
    status, error = refusal(SERVICE.plan(ServiceRequest("POST", "/v1/chat/completions", {}, content)))
    assert (status, error["param"]) == (400, param)
    assert (param or "cannot be read") in error["message"] or param == "messages" or "JSON" in error["message"]


def test_results_of_tools_that_are_nested_deeply_are_answered():
    call = {"id": "c", "function": {"name": "look_up", "arguments": DEEP.decode()}}
    result = {"role": "tool", "tool_call_id": "c", "name": "look_up", "content": DEEP.decode()}
    messages = [*ANSWERABLE[:2], {"role": "assistant", "tool_calls": [call]}, result]
    assert head_of(plan_of(messages=messages)).status == 200


def refusal(plan: Plan) -> tuple[int, dict[str, Any]]:
    payload = json_of(plan)
    assert set(payload) == {"error"}
    assert set(payload["error"]) == {"message", "type", "param", "code"}
    assert payload["error"]["type"] == "invalid_request_error"
    assert plan.duration_s == 0.0
    return head_of(plan).status, payload["error"]


@pytest.mark.parametrize(("named", "answered"), [("gpt-9", "gpt-9"), (None, "docmind-scripted")])
def test_any_name_of_a_model_is_answered_and_none_by_the_services_own(named, answered):
    assert json_of(plan_of(model=named))["model"] == answered


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "named"),
    [
        ("POST", "/v1/audio/speech", 404, "unknown_url", "/v1/audio/speech"),
        ("GET", "/v1/chat/completions", 405, None, "POST"),
    ],
)
def test_a_url_that_is_not_known_and_a_wrong_method_are_refused(method, path, status, code, named):
    answered, error = refusal(SERVICE.plan(ServiceRequest(method, path)))
    assert (answered, error["code"]) == (status, code)
    assert named in error["message"]


def test_null_for_an_optional_field_is_as_if_it_were_left_out():
    optional = ("max_tokens", "max_completion_tokens", "tools", "stream", "stream_options")
    assert head_of(plan_of(**dict.fromkeys(optional))).status == 200


def test_a_plan_is_worked_out_once_for_runs_that_ask_the_same():
    service = OpenAIService(PROFILE)
    first = plan_of(service, call_of(run_id="a"))
    assert plan_of(service, call_of(run_id="b")) is first
    fresh = plan_of(OpenAIService(PROFILE), call_of())
    assert fresh == first
    for other in (call_of(**change) for change in CHANGES):
        assert plan_of(service, other) == plan_of(OpenAIService(PROFILE), other)
        assert plan_of(service, other) is not first


def test_the_plans_that_are_known_are_bounded(monkeypatch):
    monkeypatch.setattr("docmind_lab.services.openai_service._MAX_KNOWN", 3)
    service = OpenAIService(PROFILE)
    for seed in range(10):
        plan_of(service, call_of(seed=seed))
    assert len(service.known) <= 3
