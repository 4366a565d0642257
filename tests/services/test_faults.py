"""Faults: how they are written, whom they strike, and what they make of a plan."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.errors import ConfigurationError
from docmind_lab.randomness import DrawKey
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Headers, Plan, ServiceRequest, Wait

KEY = DrawKey(7, "synthesis", "4.0.1")
BODY = bytes(range(256)) * 3
PLAN = Plan(
    (Wait(0.4), Wait(1.2, tokens=60), Headers(200, (("content-type", "text/plain"),)), Chunk(BODY)),
    "llm",
    input_tokens=9,
    output_tokens=60,
)
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
faults = st.builds(
    Fault,
    kind=st.sampled_from([kind for kind in FAULT_KINDS if kind != "none"]),
    role=st.just("*") | names,
    probability=st.floats(min_value=0, max_value=1),
)


def body_of(plan: Plan) -> bytes:
    return b"".join(step.data for step in plan.steps if isinstance(step, Chunk))


# ---- writing


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hang", Fault("hang", "synthesis", 1.0)),
        ("trickle:validation", Fault("trickle", "validation", 1.0)),
        ("stall:*:0.2", Fault("stall", "*", 0.2)),
        (" stall::0.5 ", Fault("stall", "synthesis", 0.5)),
        ("none", Fault("none")),
    ],
)
def test_a_fault_is_written_kind_role_probability(text, fault):
    assert Fault.parse(text) == fault


@given(faults)
def test_what_a_fault_is_written_as_reads_back_as_the_same_fault(fault):
    assert Fault.parse(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hangs", "unknown fault 'hangs'; did you mean 'hang'.*none, hang, trickle, stall"),
        ("", "unknown fault ''"),
        ("hang:a:b:c", "too many parts; write kind:role:probability"),
        ("hang:router:often", "probability 'often' is not a number"),
        ("hang:router:1.5", "fault probability must be between 0 and 1, not 1.5"),
        ("hang:router:-0.1", "fault probability must be between 0 and 1"),
        ("hang:router:nan", "fault probability must be between 0 and 1"),
    ],
)
def test_an_error_names_the_part_that_is_wrong(text, message):
    with pytest.raises(ConfigurationError, match=message):
        Fault.parse(text)


# ---- striking


def test_a_fault_strikes_its_role_and_no_other():
    fault = Fault("hang", "synthesis")
    assert fault.strikes(KEY)
    assert not fault.strikes(DrawKey(7, "router", "4.0.1"))
    assert fault.applied(PLAN, DrawKey(7, "router", "4.0.1")) is PLAN


def test_a_star_strikes_every_role():
    assert all(Fault("hang", "*").strikes(DrawKey(7, role, "1")) for role in ("router", "supervisor", "assistant"))


def test_no_fault_strikes_nobody():
    assert not Fault("none", "*").strikes(KEY)


@pytest.mark.parametrize("probability", [0.05, 0.3, 0.8])
def test_the_share_of_calls_struck_is_near_the_probability(probability):
    count = 3000
    fault = Fault("hang", "*", probability)
    share = sum(fault.strikes(DrawKey(seed, "router", "1.0.1")) for seed in range(count)) / count
    # Five standard errors of a share; the keys are fixed, so the outcome is too.
    assert abs(share - probability) < 5 * math.sqrt(probability * (1 - probability) / count)


@given(faults, st.integers(), names)
def test_whether_a_call_is_struck_depends_on_its_key_alone(fault, seed, role):
    key = DrawKey(seed, role, "1.0.1")
    first = fault.strikes(key)
    for other in range(3):
        fault.strikes(DrawKey(other, role, "1.0.1"))
    assert fault.strikes(key) is first


def test_another_attempt_of_a_call_may_be_spared():
    fault = Fault("hang", "*", 0.5)
    struck = {fault.strikes(DrawKey(7, "synthesis", "4.0.1", attempt)) for attempt in range(1, 20)}
    assert struck == {True, False}


def test_a_probability_of_zero_strikes_nobody_and_of_one_everybody():
    keys = [DrawKey(seed, "synthesis", "1") for seed in range(200)]
    assert not any(Fault("hang", "*", 0.0).strikes(key) for key in keys)
    assert all(Fault("hang", "*", 1.0).strikes(key) for key in keys)


# ---- what they do


def test_a_hang_never_sends_a_byte_nor_generates_a_token():
    struck = Fault("hang").applied(PLAN, KEY)
    assert struck.duration_s == math.inf
    assert not [step for step in struck.steps if isinstance(step, Headers | Chunk)]
    assert (struck.output_tokens, struck.input_tokens, struck.fault) == (0, 9, "hang")


def test_a_stall_is_three_seconds_of_silence_before_the_plan_as_it_was():
    struck = Fault("stall").applied(PLAN, KEY)
    assert struck.steps == (Wait(3.0), *PLAN.steps)
    assert (struck.output_tokens, struck.fault) == (60, "stall")


def test_a_trickle_sends_the_same_bytes_in_twelve_pieces_three_tenths_of_a_second_apart():
    struck = Fault("trickle").applied(PLAN, KEY)
    assert body_of(struck) == BODY
    at = [index for index, step in enumerate(struck.steps) if isinstance(step, Chunk)]
    assert len(at) == 12
    assert all(struck.steps[index - 1] == Wait(0.3) for index in at)
    assert struck.duration_s == pytest.approx(PLAN.duration_s + 12 * 0.3)
    assert struck.fault == "trickle"


def test_a_trickle_keeps_the_latency_before_its_headers():
    struck = Fault("trickle").applied(PLAN, KEY)
    assert struck.steps[:3] == PLAN.steps[:3]


@given(st.binary(max_size=400))
def test_a_trickled_body_is_whole_whatever_its_length(body):
    struck = Fault("trickle").applied(Plan((Headers(200), Chunk(body)), "llm"), KEY)
    assert body_of(struck) == body
    assert sum(isinstance(step, Chunk) for step in struck.steps) <= 12


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["trickle", "stall"])
def test_a_slow_reply_generates_as_many_tokens_as_a_quick_one(kind, stream):
    payload = {"model": "docmind-scripted", "stream": stream, "messages": [{"role": "user", "content": "Why?"}]}
    request = ServiceRequest("POST", "/v1/chat/completions", {}, json.dumps(payload).encode())
    profile = LatencyProfile.named("typical/100")
    quick = OpenAIService(profile).plan(request)
    slow = OpenAIService(profile, (Fault(kind, "*"),)).plan(request)
    tokens = [sum(step.tokens for step in plan.steps if isinstance(step, Wait)) for plan in (quick, slow)]
    assert tokens[0] == tokens[1] == quick.output_tokens == slow.output_tokens
    assert body_of(slow) == body_of(quick)
    assert sum(isinstance(step, Headers) for step in slow.steps) == 1


def test_the_first_fault_that_strikes_is_the_one():
    service = OpenAIService(LatencyProfile.named("typical/100"), (Fault("hang", "nobody"), Fault("stall", "*")))
    payload = {"model": "docmind-scripted", "messages": [{"role": "user", "content": "Why?"}]}
    plan = service.plan(ServiceRequest("POST", "/v1/chat/completions", {}, json.dumps(payload).encode()))
    assert plan.fault == "stall"
