"""What each fault makes of a plan, JSON and event stream: bytes, instants, tokens."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planned_replies import LOOK_UP, body_of, head_of, json_of, tagged

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.fault_plans import refused, under_fault
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Disconnect, Headers, Plan, ServiceRequest, Wait, json_steps
from docmind_lab.statistics.latency.profile import LatencyProfile

BODY = bytes(range(256)) * 3
PLAN = Plan(
    (Wait(0.4), Wait(1.2, tokens=60), Headers(200, (("content-type", "text/plain"),)), Chunk(BODY)),
    "llm",
    input_tokens=9,
    output_tokens=60,
    takes_slot=True,
)
JSON = replace(PLAN, steps=(Wait(0.4), Wait(1.2, tokens=60), *json_steps(200, {"text": "yes " * 20})))
STREAM_HEADERS = Headers(200, (("content-type", "text/event-stream"),))
EVENTS = [Chunk(b'data: {"token": %d}\n\n' % number) for number in range(5)]
# A role event, then four tokens a tenth of a second apart, then the end marker.
STREAM = Plan(
    (
        Wait(0.5),
        STREAM_HEADERS,
        EVENTS[0],
        *(step for event in EVENTS[1:] for step in (Wait(0.1, tokens=1), event)),
        Chunk(b"data: [DONE]\n\n"),
    ),
    "llm",
    output_tokens=4,
    takes_slot=True,
)
MODEL_KINDS = [kind for kind in FAULT_KINDS if Fault(kind).strikes_service == "llm" and kind != "none"]


def tokens_of(plan: Plan) -> int:
    return sum(step.tokens for step in plan.steps if isinstance(step, Wait) and math.isfinite(step.seconds))


def struck(plan: Plan, text: str) -> Plan:
    return under_fault(plan, Fault.parse(text))


def sent_at(plan: Plan) -> list[tuple[float, Any]]:
    """Everything that is sent, with its instant."""
    at_s, out = 0.0, []
    for step in plan.steps:
        if isinstance(step, Wait):
            at_s += step.seconds
        else:
            out.append((at_s, step))
    return out


# ---- late


def test_a_hang_never_sends_a_byte_nor_generates_a_token():
    plan = struck(PLAN, "hang")
    assert (plan.duration_s, sent_at(plan)) == (math.inf, [])
    assert (plan.output_tokens, plan.input_tokens, plan.fault) == (0, 9, "hang")


@pytest.mark.parametrize(("text", "seconds"), [("stall", 3.0), ("stall=0.5", 0.5), ("retrieval_slow=7", 7.0)])
def test_a_stall_is_silence_before_the_plan_as_it_was(text, seconds):
    plan = struck(PLAN, text)
    assert plan.steps == (Wait(seconds), *PLAN.steps)
    assert plan.output_tokens == 60


def test_a_slow_first_token_comes_late_in_a_stream_that_opens_at_once():
    plan = struck(STREAM, "slow_first_token=2")
    assert sent_at(plan)[0] == (0.0, STREAM_HEADERS)
    late, usual = sent_at(plan)[1:], sent_at(STREAM)[1:]
    assert [at_s for at_s, _ in late] == pytest.approx([at_s + 2.0 for at_s, _ in usual])
    assert body_of(plan) == body_of(STREAM)
    # A JSON reply has its headers with its body.
    assert struck(JSON, "slow_first_token=2").steps == struck(JSON, "stall=2").steps


# ---- in pieces


def test_a_trickle_sends_the_same_bytes_in_twelve_pieces_three_tenths_of_a_second_apart():
    plan = struck(PLAN, "trickle")
    assert body_of(plan) == BODY
    at = [index for index, step in enumerate(plan.steps) if isinstance(step, Chunk)]
    assert len(at) == 12
    assert all(plan.steps[index - 1] == Wait(0.3) for index in at)
    assert plan.duration_s == pytest.approx(PLAN.duration_s + 12 * 0.3)
    assert plan.fault == "trickle"
    assert plan.steps[:3] == PLAN.steps[:3], "the latency before its headers"


@given(st.binary(max_size=400))
def test_a_trickled_body_is_whole_whatever_its_length(body):
    plan = struck(Plan((Headers(200), Chunk(body)), "llm"), "trickle")
    assert body_of(plan) == body
    assert sum(isinstance(step, Chunk) for step in plan.steps) <= 12


# ---- broken off


def test_a_disconnect_of_a_json_reply_comes_after_the_headers_and_half_of_the_body():
    plan = struck(JSON, "disconnect")
    length = int(dict(head_of(plan).headers)["content-length"])
    assert isinstance(plan.steps[-1], Disconnect)
    assert body_of(plan) == body_of(JSON)[: length // 2]
    assert (plan.output_tokens, plan.duration_s) == (60, JSON.duration_s), "it was all generated before it was sent"


def test_a_disconnect_of_a_stream_comes_after_half_of_its_tokens():
    plan = struck(STREAM, "disconnect")
    assert isinstance(plan.steps[-1], Disconnect)
    assert body_of(plan) == b"".join(event.data for event in EVENTS[:3])
    assert plan.output_tokens == tokens_of(plan) == 2
    # Of one long stretch, half of the tokens in half of the time.
    plan = struck(Plan((STREAM_HEADERS, Wait(3.0, tokens=7), Chunk(b"data: {}\n\n")), "llm"), "disconnect")
    assert plan.steps == (STREAM_HEADERS, Wait(3.0 * 3 / 7, tokens=3), Disconnect())


# ---- through the model server

PROFILE = replace(LatencyProfile.named("typical/100"), slots=1)


def asked(*faults: str, profile: LatencyProfile = PROFILE, **payload: Any) -> Plan:
    body = {"model": "docmind-scripted", "messages": [{"role": "user", "content": "Why?"}], **payload}
    service = OpenAIService(profile, tuple(Fault.parse(fault) for fault in faults))
    return service.plan(ServiceRequest("POST", "/v1/chat/completions", {}, json.dumps(body).encode()))


@pytest.mark.parametrize("tools", [[], [LOOK_UP]])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_under_every_fault_the_plan_says_how_many_tokens_it_generates_and_which_fault_it_was(kind, stream, tools):
    good, plan = asked(stream=stream, tools=tools), asked(f"{kind}:*", stream=stream, tools=tools)
    assert plan.fault_at(0.0) == kind
    assert tokens_of(plan) == plan.output_tokens
    assert sum(isinstance(step, Headers) for step in plan.steps) == (kind != "hang")
    expected = dict.fromkeys(("hang", "http_500", "rate_limit"), 0) | {"empty": 1}
    expected["disconnect"] = good.output_tokens // 2 if stream else good.output_tokens
    assert plan.output_tokens == expected.get(kind, good.output_tokens)


@pytest.mark.parametrize(("fault", "headers"), [("rate_limit=7", {"retry-after": "7"}), ("http_500", {})])
def test_what_is_no_model_says_how_long_to_wait_too(fault: str, headers: dict[str, str]) -> None:
    plan = refused(Plan((), "tool"), Fault.parse(fault))
    sent = {name: value for name, value in head_of(plan).headers if name == "retry-after"}
    assert sent == headers
    assert not plan.takes_slot


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "status", "retry_after", "code"),
    [
        ("http_500:*", 500, None, None),
        ("rate_limit:*", 429, "30", "rate_limit_exceeded"),
        ("rate_limit=2:*", 429, "2", "rate_limit_exceeded"),
        ("rate_limit=0:*", 429, "0", "rate_limit_exceeded"),
    ],
)
def test_the_gate_answers_at_once_in_the_shape_of_an_openai_error(fault, status, retry_after, code, stream):
    plan = asked(fault, stream=stream)
    assert head_of(plan).status == status
    assert dict(head_of(plan).headers).get("retry-after") == retry_after
    error = json_of(plan)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert (plan.duration_s, plan.input_tokens, plan.output_tokens) == (0.0, 0, 0)


@pytest.mark.parametrize("tools", [[], [LOOK_UP]])
def test_an_empty_answer_is_well_formed_and_costs_one_token(tools):
    whole = json_of(asked("empty:*", tools=tools))
    (choice,) = whole["choices"]
    assert choice["message"] == {"role": "assistant", "content": "", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert whole["usage"]["completion_tokens"] == 1
    # OpenRouter's client refuses a completion without the key.
    assert whole["system_fingerprint"] is None
    lines = body_of(asked("empty:*", tools=tools, stream=True)).decode().strip().split("\n\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert [event["choices"][0]["delta"] for event in events] == [{"role": "assistant", "content": ""}, {}]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_call_that_the_profile_has_hang_hangs_whatever_would_befall_its_reply():
    for kind in ("stall", "disconnect", "empty"):
        plan = asked(f"{kind}:*", profile=replace(PROFILE, hang_probability=1.0))
        assert (plan.duration_s, plan.fault, plan.output_tokens) == (math.inf, "hang", 0)


def test_a_client_that_names_no_role_is_struck_by_a_fault_that_names_none():
    """Trust 20: `serve --faults hang` never struck a client of one's own."""
    assert asked("hang").fault == "hang"
    assert asked("hang:validation").fault == ""


# ---- plans without faults


waits = st.builds(Wait, seconds=st.floats(min_value=1e-6, max_value=1e4), tokens=st.integers(0, 5000))
instants = st.floats(min_value=-10, max_value=2e4)


@given(waits, instants, instants)
def test_tokens_never_become_fewer_from_none_at_the_beginning_to_all_at_the_end(wait, first_s, second_s):
    earlier, later = sorted((first_s, second_s))
    assert 0 <= wait.tokens_by(earlier) <= wait.tokens_by(later) <= wait.tokens
    assert (wait.tokens_by(min(0.0, earlier)), wait.tokens_by(wait.seconds + abs(later))) == (0, wait.tokens)


def test_a_token_is_there_when_its_share_of_the_wait_is_over():
    wait = Wait(2.0, tokens=4)
    elapsed = (0, 0.49, 0.5, 0.99, 1.0, 1.5, 1.99, 2.0)
    assert [wait.tokens_by(elapsed_s) for elapsed_s in elapsed] == [0, 0, 1, 1, 2, 3, 3, 4]
    assert Wait(math.inf, tokens=3).tokens_by(1e9) == 0


NONSENSE = ["", "x", "--5", "-", "1.5", "²", "5-", " "]


@pytest.mark.parametrize(
    ("tags", "key"),
    [
        ({"seed": 7, "role": "planner", "step": "1.0.2", "attempt": 3}, DrawKey(7, "planner", "1.0.2", 3)),
        ({}, DrawKey(11, "router", "4", 1)),
        ({"seed": -5}, DrawKey(-5, "router", "4", 1)),
        *(({"seed": said, "attempt": said}, DrawKey(11, "router", "4", 1)) for said in NONSENSE),
    ],
)
def test_the_draw_key_is_what_the_client_says_of_its_call_and_else_the_defaults(tags, key):
    request = ServiceRequest("POST", "/v1/chat/completions", tagged(**tags))
    assert request.draw_key("router", "4", 11) == key
    assert request.json() is None, "a body that is missing"
