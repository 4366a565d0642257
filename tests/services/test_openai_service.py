"""The simulated model server's plans: shapes, latency by key, limits and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Headers, Plan, ServiceRequest, Wait
from docmind_lab.services.scripted_model.tokens import count_tokens
from docmind_lab.statistics.latency.profile import LatencyProfile

PROFILE = LatencyProfile.named("typical")
SERVICE = OpenAIService(PROFILE)
DOCUMENT = "A quoll is a spotted marsupial. The quoll hunts at night in the eucalyptus forest."
QUESTION = "When does the quoll hunt in the forest?"
ANSWERABLE = [
    {"role": "system", "content": "Answer from documents."},
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "look_up", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": DOCUMENT},
]
SEARCH_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
TOOL_REQUEST = {"messages": [{"role": "user", "content": QUESTION}], "tools": [SEARCH_TOOL]}


def plan_of(service: OpenAIService = SERVICE, headers: dict[str, str] | None = None, **payload: Any) -> Plan:
    body = json.dumps({"model": service.model, "messages": ANSWERABLE, **payload}).encode()
    return service.plan(ServiceRequest("POST", "/v1/chat/completions", headers or {}, body))


def tagged(seed: int = 7, role: str = "planner", step: str = "1.0.1", attempt: int = 1) -> dict[str, str]:
    values = {"seed": seed, "role": role, "step": step, "attempt": attempt}
    return {f"x-docmind-{name}": str(value) for name, value in values.items()}


def body_of(plan: Plan) -> bytes:
    return b"".join(step.data for step in plan.steps if isinstance(step, Chunk))


def status_of(plan: Plan) -> int:
    return next(step.status for step in plan.steps if isinstance(step, Headers))


def json_of(plan: Plan) -> Any:
    return json.loads(body_of(plan))


def events_of(plan: Plan) -> list[Any]:
    lines = [part for part in body_of(plan).decode().split("\n\n") if part]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def streamed(plan: Plan) -> tuple[str, list[Any], list[str], Any]:
    """Text, tool calls, finish reasons and usage of an event stream."""
    events = events_of(plan)
    choices = [choice for event in events for choice in event["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    calls = [
        {key: value for key, value in call.items() if key != "index"}
        for choice in choices
        for call in choice["delta"].get("tool_calls", ())
    ]
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
        json_of(plan_of(headers=tagged(step=step), **TOOL_REQUEST))["choices"][0]["message"]["tool_calls"][0]["id"]
        for step in ("1.0.1", "1.0.2", "2.0.1")
    }
    assert len(ids) == 3


# ---- tokens


def test_usage_counts_words_and_punctuation_marks():
    reply = json_of(plan_of(messages=[{"role": "user", "content": "Why is it so, then?"}]))
    usage, text = reply["usage"], reply["choices"][0]["message"]["content"]
    assert usage["prompt_tokens"] == 7
    assert usage["completion_tokens"] == count_tokens(text) == 9
    assert usage["total_tokens"] == 16


def test_prompt_tokens_do_not_depend_on_how_the_content_is_written():
    parts = [{"role": "user", "content": [{"type": "text", "text": "Why is it so, thén?"}]}]
    plain = [{"role": "user", "content": "Why is it so, thén?"}]
    counts = [json_of(plan_of(messages=messages))["usage"]["prompt_tokens"] for messages in (parts, plain)]
    assert counts == [7, 7]


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
    plan = plan_of(headers=tagged(), stream=stream, **request_body)
    drawn = PROFILE.draw_llm(DrawKey(7, "planner", "1.0.1", 1))
    assert plan.steps[0] == Wait(drawn.first_token_s)
    assert plan.duration_s == pytest.approx(drawn.first_token_s + plan.output_tokens * drawn.inter_token_s)


@pytest.mark.parametrize("change", [{"seed": 8}, {"role": "router"}, {"step": "1.0.2"}, {"attempt": 2}])
def test_another_key_has_another_latency(change):
    assert plan_of(headers=tagged()).duration_s != plan_of(headers=tagged(**change)).duration_s


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


def refusal(plan: Plan) -> tuple[int, dict[str, Any]]:
    payload = json_of(plan)
    assert set(payload) == {"error"}
    assert set(payload["error"]) == {"message", "type", "param", "code"}
    assert payload["error"]["type"] == "invalid_request_error"
    assert plan.duration_s == 0.0
    return status_of(plan), payload["error"]


@pytest.mark.parametrize("body", [b"{", b"", b"[]", b"null", b"\xff\xfe", b'"text"'])
def test_a_body_that_is_no_json_object_is_a_bad_request(body):
    status, error = refusal(SERVICE.plan(ServiceRequest("POST", "/v1/chat/completions", {}, body)))
    assert status == 400
    assert "JSON" in error["message"]


@pytest.mark.parametrize("messages", [None, [], "Why?", {}, ["Why?"], [None]])
def test_messages_that_are_no_list_of_objects_are_a_bad_request(messages):
    status, error = refusal(plan_of(messages=messages))
    assert (status, error["param"]) == (400, "messages")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", "many"),
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_completion_tokens", 1.5),
        ("max_completion_tokens", True),
        ("tools", "look_up"),
        ("tools", ["look_up"]),
        ("tools", [{"type": "function", "function": None}]),
        ("stream_options", "usage"),
    ],
)
def test_a_field_of_the_wrong_kind_is_a_bad_request_that_names_it(field, value):
    status, error = refusal(plan_of(**{field: value, "stream": True}))
    assert (status, error["param"]) == (400, field)


@pytest.mark.parametrize("tool_calls", ["look_up", ["look_up"], [{"function": None}], [{"function": "look_up"}]])
def test_tool_calls_of_the_wrong_kind_are_a_bad_request(tool_calls):
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "tool_calls": tool_calls}]
    status, error = refusal(plan_of(messages=messages))
    assert (status, error["param"]) == (400, "messages")


@pytest.mark.parametrize(("named", "answered"), [("gpt-9", "gpt-9"), (None, "docmind-scripted")])
def test_any_name_of_a_model_is_answered_and_none_by_the_services_own(named, answered):
    assert json_of(plan_of(model=named))["model"] == answered


def test_an_unknown_url_is_not_found():
    status, error = refusal(SERVICE.plan(ServiceRequest("POST", "/v1/audio/speech")))
    assert (status, error["code"]) == (404, "unknown_url")
    assert "/v1/audio/speech" in error["message"]


def test_the_wrong_method_is_not_allowed():
    status, error = refusal(SERVICE.plan(ServiceRequest("GET", "/v1/chat/completions")))
    assert status == 405
    assert "POST" in error["message"]


def test_null_for_an_optional_field_is_as_if_it_were_left_out():
    assert (
        status_of(plan_of(max_tokens=None, max_completion_tokens=None, tools=None, stream=None, stream_options=None))
        == 200
    )


def test_a_plan_is_worked_out_once_for_runs_that_ask_the_same():
    service = OpenAIService(PROFILE)
    first = plan_of(service, {**tagged(), "x-docmind-run-id": "a"})
    assert plan_of(service, {**tagged(), "x-docmind-run-id": "b"}) is first
    fresh = plan_of(OpenAIService(PROFILE), tagged())
    assert fresh == first
    for other in (tagged(seed=8), tagged(role="router"), tagged(step="2.0.1"), tagged(attempt=2)):
        assert plan_of(service, other) == plan_of(OpenAIService(PROFILE), other)
        assert plan_of(service, other) is not first


def test_the_plans_that_are_known_are_bounded(monkeypatch):
    monkeypatch.setattr("docmind_lab.services.openai_service._MAX_KNOWN", 3)
    service = OpenAIService(PROFILE)
    for seed in range(10):
        plan_of(service, tagged(seed=seed))
    assert len(service.known) <= 3
