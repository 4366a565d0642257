"""Caps: how requests and tokens are counted, and what keeps one from being sent."""

from __future__ import annotations

import gzip
import json

import pytest
from in_threads import in_threads
from recorded_runs import logical_call

from docmind_lab.core.errors import RunCut
from docmind_lab.experiments.recordings import Caps
from docmind_lab.experiments.recordings.caps import CapMeter, CapReached, tokens_of
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.taps import Traffic

REPLY = json.dumps(
    {"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}}
).encode()


def answered(meter: CapMeter, data: bytes = REPLY) -> None:
    call = logical_call()
    meter.sending(call)
    meter.ended(Attempt(call, 1, 0.0, sent_at=0.1, outcome="ok"), Traffic(received=[data]))


def test_the_request_past_the_cap_is_not_sent_and_ends_its_run() -> None:
    meter = CapMeter(Caps(max_requests=2))
    meter.sending(logical_call())
    meter.sending(logical_call())
    assert not meter.reached
    with pytest.raises(RunCut) as cut:
        meter.sending(logical_call(run_id="third"))
    assert isinstance(cut.value.error, CapReached)
    assert (meter.requests, meter.cut) == (2, {"third"})


def test_a_cap_of_requests_holds_however_many_threads_send() -> None:
    meter, sent = CapMeter(Caps(max_requests=50)), []

    def send() -> None:
        for _ in range(30):
            try:
                meter.sending(logical_call())
            except RunCut:
                return
            sent.append(1)

    in_threads(*[send] * 8)
    assert len(sent) == meter.requests == 50


def test_a_cap_of_tokens_is_passed_by_calls_under_way_and_by_no_more() -> None:
    meter = CapMeter(Caps(max_tokens=150))
    answered(meter)
    answered(meter)
    assert meter.tokens == 200
    with pytest.raises(RunCut):
        meter.sending(logical_call())


def test_a_search_is_no_model_request() -> None:
    meter = CapMeter(Caps(max_requests=1))
    for _ in range(3):
        meter.sending(logical_call("retrieval"))
    assert meter.requests == 0


def test_tokens_that_nobody_told_are_an_estimate_from_the_bytes_and_say_so() -> None:
    assert tokens_of(Traffic(sent=b"x" * 40, received=[b"half a rep"])) == (13, True)
    meter = CapMeter(Caps(max_tokens=10))
    answered(meter, b"nothing of tokens here")
    assert meter.estimated_requests == 1


def _events(*payloads: object) -> bytes:
    return b"".join(f"event: any\ndata: {json.dumps(payload)}\n\n".encode() for payload in payloads)


STREAM = b'data: {"choices": [1], "usage": null}\n\ndata: ' + REPLY + b"\n\ndata: [DONE]\n\n"
BEGUN = {"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 1}}}
# The server's own words, whole and in streams, and the tokens that they say.
SAID: dict[str, tuple[Traffic, int]] = {
    "plain": (Traffic(received=[REPLY]), 100),
    "compressed": (Traffic(headers={"content-encoding": "gzip"}, received=[gzip.compress(REPLY)]), 100),
    "in the last event of a stream": (Traffic(received=[STREAM[:40], STREAM[40:]]), 100),
    "responses": (
        Traffic(received=[_events({"type": "response.completed", "response": {"usage": {"total_tokens": 30}}})]),
        30,
    ),
    "anthropic": (Traffic(received=[b'{"usage": {"input_tokens": 20, "output_tokens": 10}}']), 30),
    "anthropic, in events": (
        Traffic(received=[_events(BEGUN, {"type": "message_delta", "usage": {"output_tokens": 10}}, {"type": "end"})]),
        30,
    ),
    "gemini": (
        Traffic(received=[_events(*({"usageMetadata": {"totalTokenCount": total}} for total in (12, 30)))]),
        30,
    ),
    "ollama": (
        Traffic(
            received=[
                b'{"message": {"content": "a"}, "done": false}\n',
                b'{"message": {"content": ""}, "done": true, "prompt_eval_count": 20, "eval_count": 10}\n',
            ]
        ),
        30,
    ),
}


@pytest.mark.parametrize("words", SAID)
def test_tokens_are_what_the_server_says_in_the_words_of_its_dialect(words: str) -> None:
    traffic, tokens = SAID[words]
    assert tokens_of(traffic) == (tokens, False)


def test_a_stream_of_anthropic_that_was_cut_is_an_estimate() -> None:
    begun = _events({"type": "message_start", "message": {"usage": {"input_tokens": 20}}})
    assert tokens_of(Traffic(received=[begun]))[1]
