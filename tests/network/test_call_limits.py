"""A call under its limits, streamed by a server that is alive and says nothing (limits.md 2)."""

from __future__ import annotations

from typing import Any

import pytest
from service_doors import Virtual, ask, tags
from watched_calls import Watcher

from docmind_lab.core.deadlines import PropagationPolicy, policy_scope
from docmind_lab.core.limits import Limits
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.network import HttpClients, call_scope

ANSWER = "Scripted reply: When does the quoll hunt in"
TIMED_OUT = ("APITimeoutError", "ReadTimeout")


def asked(virtual: Virtual, limits: Limits | None, *, stream: bool = True, read_timeout_s: float = 1.0) -> Any:
    """What comes of one call in virtual time, and its attempt."""
    watcher = Watcher()
    policy = PropagationPolicy(policies=TimePolicies(limits=limits))

    def under_limits() -> Any:
        with call_scope(watcher.call(run_id="r")), policy_scope(policy):
            return ask(stream, timeout=read_timeout_s, http_client=HttpClients().openai, headers=tags("r"))

    said = virtual.run(under_limits)
    (attempt,) = watcher.ended
    return said, attempt


def test_a_stream_has_the_instant_of_its_first_token_and_its_longest_silence() -> None:
    said, attempt = asked(Virtual.of(), None)
    assert said == ANSWER
    # The headers and the role come after 0.05 s, the first of nine tokens a tenth of a second later.
    assert attempt.first_byte_at == pytest.approx(0.05)
    assert attempt.first_token_at == pytest.approx(0.15)
    assert attempt.longest_gap_s == pytest.approx(0.1)
    _, stalled = asked(Virtual.of("stall_mid_stream=0.7:*"), None)
    assert stalled.longest_gap_s == pytest.approx(0.8)


def test_signs_of_life_defeat_a_read_timeout_and_no_limit_that_counts_tokens() -> None:
    virtual = Virtual.of("keep_alive=5:*")
    said, attempt = asked(virtual, None)
    assert (said, attempt.cut_by) == (ANSWER, "")
    assert virtual.took_s == pytest.approx(5.95)
    for limits, cut_by, at_s in (
        (Limits(idle_s=2), "idle", 2.0),
        (Limits(first_token_s=3, idle_s=1), "first_token", 3.0),
        (Limits(total_s=4), "total", 4.0),
    ):
        said, attempt = asked(virtual, limits)
        assert said in TIMED_OUT
        assert (attempt.cut_by, virtual.took_s) == (cut_by, pytest.approx(at_s))
        assert attempt.first_byte_at == 0.0, "its headers came at once"
    said, attempt = asked(virtual, Limits(idle_s=7))
    assert (said, attempt.cut_by) == (ANSWER, "")


@pytest.mark.parametrize(("limits", "cut_by"), [(Limits(first_token_s=2), "first_token"), (Limits(idle_s=2), "idle")])
def test_white_space_that_keeps_an_answer_in_json_alive_is_no_token(limits: Limits, cut_by: str) -> None:
    virtual = Virtual.of("keep_alive:*")
    said, attempt = asked(virtual, limits, stream=False)
    assert said in TIMED_OUT
    assert (attempt.cut_by, virtual.took_s) == (cut_by, pytest.approx(2.0))
    assert attempt.first_token_at is None


def test_a_silence_between_tokens_is_cut_by_idle_and_by_no_limit_of_the_first_token() -> None:
    virtual = Virtual.of("stall_mid_stream=8:*")
    said, attempt = asked(virtual, Limits(first_token_s=2), read_timeout_s=60.0)
    assert (said, attempt.cut_by) == (ANSWER, "")
    said, attempt = asked(virtual, Limits(first_token_s=2, idle_s=2), read_timeout_s=60.0)
    assert said in TIMED_OUT
    # Four of nine tokens, the last of them at 0.45 s.
    assert (attempt.cut_by, virtual.took_s) == ("idle", pytest.approx(2.45))
