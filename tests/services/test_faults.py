"""Faults: how they are written, and whom they strike."""

from __future__ import annotations

import math

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services import faults as faults_module
from docmind_lab.services.faults import DEFAULT_SECONDS, FAULT_KINDS, Fault, first_that_strikes

KEY = DrawKey(7, "synthesis", "4.0.1")
# ---- writing


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hang", Fault("hang", "synthesis", 1.0)),
        ("trickle:validation", Fault("trickle", "validation", 1.0)),
        ("stall:*:0.2", Fault("stall", "*", 0.2)),
        (" stall::0.5 ", Fault("stall", "synthesis", 0.5)),
        ("none", Fault("none")),
        ("stall=3", Fault("stall")),
        ("dead:*:0.05", Fault("hang", "*", 0.05)),
        ("silent_thinking=20@1:judge", Fault("stall", "judge", 1.0, 20.0, 1)),
        ("stall_mid_stream", Fault("stall_mid_stream", "synthesis", seconds=3.0)),
        ("keep_alive=inf", Fault("keep_alive")),
        ("keep_alive=5", Fault("keep_alive", seconds=5.0)),
        ("stall=0.25:*", Fault("stall", "*", seconds=0.25)),
        ("rate_limit=2:synthesis:0.5", Fault("rate_limit", "synthesis", 0.5, 2.0)),
        ("http_500@1", Fault("http_500", attempts=1)),
        ("rate_limit=2@3:*:0.5", Fault("rate_limit", "*", 0.5, 2.0, 3)),
        ("retrieval_slow", Fault("retrieval_slow", "*", seconds=3.0)),
        ("retrieval_503:retrieval:0.5", Fault("retrieval_503", "retrieval", 0.5)),
        ("hang:search#2", Fault("hang", "search", request=2)),
        ("trickle=2:search#12:0.5", Fault("trickle", "search", 0.5, 2.0, request=12)),
        ("brownout", Fault("brownout", "*", factor=3.0, window_s=(0.0, 60.0))),
        ("brownout=2.5@20-50", Fault("brownout", "*", factor=2.5, window_s=(20.0, 50.0))),
        ("brownout@5-6:planner:0.5", Fault("brownout", "planner", 0.5, factor=3.0, window_s=(5.0, 6.0))),
    ],
)
def test_a_fault_is_written_kind_role_probability_with_its_seconds_and_attempts_beside_the_kind(text, fault):
    assert Fault.parse(text) == fault
    assert Fault.parse(str(fault)) == fault, "what it is written as reads back"


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("stall", seconds=3), "stall:synthesis"),
        (Fault("stall", seconds=5), "stall=5:synthesis"),
        (Fault("rate_limit", "*", 0.5, 2, 1), "rate_limit=2@1:*:0.5"),
        (Fault("retrieval_hang"), "retrieval_hang:*"),
        (Fault("none", "router"), "none"),
        (Fault("keep_alive"), "keep_alive:synthesis"),
        (Fault.parse("dead"), "hang:synthesis"),
        (Fault("brownout"), "brownout=3@0-60:*"),
        (Fault("brownout", "planner", 0.5, window_s=(5, 6)), "brownout=3@5-6:planner:0.5"),
    ],
)
def test_a_fault_is_shown_without_what_is_the_default(fault, text):
    assert str(fault) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hangs", "unknown fault 'hangs'; did you mean 'hang'.*none, hang, trickle, stall"),
        ("", "unknown fault ''"),
        ("ratelimit=2", "unknown fault 'ratelimit'; did you mean 'rate_limit'"),
        ("hang:a:b:c", "too many parts; write kind:role:probability"),
        ("hang:router:often", "probability 'often' is not a number"),
        ("hang:router:1.5", "fault probability must be between 0 and 1, not 1.5"),
        ("hang:router:nan", "fault probability must be between 0 and 1"),
        ("stall=soon", "seconds 'soon' is not a number"),
        ("stall=-1", "fault stall: seconds must be between 0 and 3600, not -1.0"),
        ("silent_thinkin", "unknown fault 'silent_thinkin'; did you mean 'silent_thinking'"),
        ("stall=inf", "fault stall: seconds must be between 0 and 3600, not inf"),
        ("dead=3", "fault hang takes no seconds"),
        ("rate_limit_above=3", "unknown fault 'rate_limit_above'; did you mean 'rate_limit'"),
        ("rate_limit=0.5", "Retry-After is in whole seconds, not 0.5"),
        ("http_500@0", "attempts '0' is not a whole number from 1 up"),
        ("stall@1=3", "attempts '1=3' is not a whole number from 1 up"),
        ("brownout=3@20", "such as brownout=3@20-50"),
        ("brownout=3@50-20", "end after that, not 50-20"),
        ("brownout=0@1-2", "factor must be positive"),
        ("brownout=2@nan-3", "begin at 0 s or later"),
    ],
)
def test_an_error_names_the_part_that_is_wrong(text, message):
    with pytest.raises(ConfigurationError, match=message):
        Fault.parse(text)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("http_500", {"attempts": 0}, "attempts must be 1 or more, not 0"),
        ("stall", {"factor": 2.0}, "takes no factor and no window"),
        ("brownout", {"attempts": 1}, "takes no attempts"),
    ],
)
def test_a_field_that_a_kind_does_not_take_is_refused(kind, fields, message):
    with pytest.raises(ConfigurationError, match=message):
        Fault(kind, **fields)


def test_the_table_of_the_module_names_every_kind_once_in_order_with_its_seconds():
    table = [line.split() for line in (faults_module.__doc__ or "").splitlines() if line.startswith("    ")]
    rows = [row for row in table if row[0] in FAULT_KINDS]
    assert [row[0] for row in rows] == list(FAULT_KINDS)
    for row in rows:
        if row[0] in DEFAULT_SECONDS:
            assert f"{DEFAULT_SECONDS[row[0]]:g}" in row[2:], row[0]


# ---- striking


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_a_kind_strikes_one_service_only(kind):
    fault, key = Fault(kind, "retrieval"), DrawKey(7, "retrieval", "2.0.1")
    struck = [service for service in ("llm", "retrieval") if first_that_strikes([fault], service, key) is not None]
    expected = "retrieval" if kind.startswith("retrieval_") else "llm"
    assert struck == ([] if kind == "none" else [expected])


def test_a_fault_of_one_request_spares_the_others_of_its_role_and_those_without_a_number():
    fault, key = Fault.parse("hang:search#2"), DrawKey(7, "search", "2.0.1")
    struck = [number for number in range(4) if first_that_strikes([fault], "llm", key, request=number) is fault]
    assert struck == [2]


def test_the_first_fault_that_strikes_is_the_one():
    of_another_role, strikes, later = Fault("hang", "router"), Fault("stall", "synthesis"), Fault("hang", "*")
    assert first_that_strikes([of_another_role, strikes, later], "llm", KEY) is strikes
    assert first_that_strikes([of_another_role], "llm", KEY) is None


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.3, 0.8, 1.0])
def test_the_share_of_calls_struck_is_near_the_probability(probability):
    count = 3000
    fault = Fault("hang", "*", probability)
    share = sum(fault.strikes(DrawKey(seed, "router", "1.0.1")) for seed in range(count)) / count
    # Five standard errors of a share; the keys are fixed, so the outcome is too.
    assert abs(share - probability) <= 5 * math.sqrt(probability * (1 - probability) / count)


def test_another_attempt_of_a_call_may_be_spared():
    fault = Fault("hang", "*", 0.5)
    struck = {fault.strikes(DrawKey(7, "synthesis", "4.0.1", attempt)) for attempt in range(1, 20)}
    assert struck == {True, False}


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_fault_that_passes_strikes_the_first_attempts_only(attempts):
    fault = Fault("http_500", attempts=attempts)
    struck = [fault.strikes(DrawKey(7, "synthesis", "4.0.1", attempt)) for attempt in range(1, 9)]
    assert struck == [True] * attempts + [False] * (8 - attempts)
