"""What each fault makes of a plan, JSON and event stream: bytes, instants, tokens."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from planned_replies import LOOK_UP, body_of, head_of, json_of, tagged

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.fault_effects import refused, under_fault
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
    waits = (step for step in plan.steps if isinstance(step, Wait))
    return sum(step.tokens for step in itertools.takewhile(lambda step: math.isfinite(step.seconds), waits))


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


def test_a_stall_in_the_middle_of_a_stream_comes_after_half_of_its_tokens_and_changes_nothing_else():
    plan = struck(STREAM, "stall_mid_stream=7")
    late, usual = sent_at(plan), sent_at(STREAM)
    assert [step for _, step in late] == [step for _, step in usual]
    delays = [round(at_s - usual_s, 9) for (at_s, _), (usual_s, _) in zip(late, usual, strict=True)]
    # Headers, the role and two tokens are in time; two tokens and the end marker are not.
    assert delays == [0, 0, 0, 0, 7, 7, 7]
    assert plan.output_tokens == tokens_of(plan) == 4


def test_a_stall_in_the_middle_of_a_json_reply_comes_after_the_headers_and_half_of_the_body():
    plan = struck(JSON, "stall_mid_stream=7")
    assert body_of(plan) == body_of(JSON)
    assert [at_s for at_s, _ in sent_at(plan)] == pytest.approx([1.6, 1.6, 8.6])


@pytest.mark.parametrize(("usual", "sign"), [(STREAM, b": keep-alive\n\n"), (JSON, b" ")])
def test_a_reply_that_is_kept_alive_has_its_headers_at_once_and_signs_of_life_before_it(usual, sign):
    plan = struck(usual, "keep_alive=5")
    (_, head), *body = sent_at(plan)
    assert (sent_at(plan)[0][0], head.status) == (0.0, 200)
    assert "content-length" not in dict(head.headers), "nobody knows how many signs there will be"
    assert [at_s for at_s, _ in body] == pytest.approx([at_s + 5 for at_s, _ in sent_at(usual)[1:]])
    assert [step for step in plan.steps if isinstance(step, Wait) and step.sign_of_life] == [Wait(5.0, 0, sign)]
    assert plan.output_tokens == usual.output_tokens
    assert (struck(usual, "keep_alive").duration_s, struck(usual, "keep_alive").output_tokens) == (math.inf, 0)


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


def test_a_trickled_stream_lets_its_tokens_come_slower():
    plan = struck(STREAM, "trickle=2")
    assert body_of(plan) == body_of(STREAM)
    assert plan.duration_s == pytest.approx(STREAM.duration_s + 12 * 2)
    assert sent_at(plan)[0] == sent_at(STREAM)[0], "its headers are in time"
    arrived, ends_at = b"", []
    for at_s, step in sent_at(plan)[1:]:
        arrived += step.data
        ends_at += [at_s] * (arrived.count(b"\n\n") - len(ends_at))
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends_at)]
    assert min(gaps) >= 2, "each of six events is longer than one piece"
    assert max(gaps) < 3 * 2 + 0.2


@pytest.mark.parametrize("body", [b"", b"a", bytes(11), bytes(12), bytes(13), bytes(range(145))])
def test_a_trickled_body_is_whole_whatever_its_length(body):
    plan = struck(Plan((Headers(200), Chunk(body)), "llm"), "trickle")
    assert body_of(plan) == body
    assert sum(isinstance(step, Chunk) for step in plan.steps) <= 12


@pytest.mark.parametrize(("plan", "piece"), [(JSON, b" "), (STREAM, EVENTS[4].data)])
def test_pieces_without_end_come_for_an_hour_without_a_length_and_are_followed_by_silence(plan, piece):
    endless = struck(plan, "endless=2.5")
    sent = [step for step in endless.steps if isinstance(step, Chunk)]
    assert [step.data for step in sent[-1440:]] == [piece] * 1440
    assert "content-length" not in dict(head_of(endless).headers)
    assert endless.steps[-1] == Wait(math.inf)
    assert endless.output_tokens == plan.output_tokens, "the last of them is sent again"
    # Nobody plays more than some hundred thousand pieces.
    assert sum(isinstance(step, Chunk) for step in struck(plan, "endless=0").steps) < 400_000


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
    expected = dict.fromkeys(("hang", "keep_alive", "http_500", "rate_limit"), 0) | {"empty": 1}
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


def test_a_token_is_there_when_its_share_of_the_wait_is_over():
    wait = Wait(2.0, tokens=4)
    elapsed = (-1, 0, 0.49, 0.5, 0.99, 1.0, 1.5, 1.99, 2.0, 9)
    assert [wait.tokens_by(elapsed_s) for elapsed_s in elapsed] == [0, 0, 0, 1, 1, 2, 3, 3, 4, 4]
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
