"""Services that answer as the recorded ones did."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from planned_replies import body_of, head_of, json_of, tagged
from recorded_runs import recorded_call, recorded_run, recording_of

from docmind_lab.alternatives import Cooperative
from docmind_lab.core.randomness import run_seed
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.recordings import RecordedRun
from docmind_lab.experiments.recordings.replay import ReplayedService, request_digest, with_timing
from docmind_lab.experiments.recordings.timings import Timing
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Disconnect, Headers, Plan, ServiceRequest, Wait
from docmind_lab.statistics.latency.profile import LatencyProfile

CALL = "llm/planner/2.0.1"
(ORDER,) = Comparison(runs=1, seed=7, alternatives=(Cooperative(),)).orders()
FACTS = dataclasses.replace(ORDER.facts, question_id="q01")
BODY = json.dumps({"model": "docmind-scripted", "messages": [{"role": "user", "content": "What is a list?"}]}).encode()


def planned(*runs: RecordedRun, call_id: str = CALL, attempt: int = 1, body: bytes = BODY) -> Plan:
    service = ReplayedService(OpenAIService(LatencyProfile.named("typical")), "llm", recording_of(*runs), FACTS)
    tags = {"call_id": call_id, "attempt": attempt, "role": "planner", "step": "2.0.1", "seed": ORDER.facts.seed}
    headers = tagged(**tags)
    return service.plan(ServiceRequest("POST", "/v1/chat/completions", headers, body))


def test_a_recorded_call_takes_as_long_as_it_took_and_says_what_the_scripted_model_says() -> None:
    plan = planned(recorded_run(recorded_call(CALL, 0.25, 1.5, first_byte_at_s=1.25)))
    waits = [step.seconds for step in plan.steps if isinstance(step, Wait)]
    assert sum(waits) == pytest.approx(1.5)
    at = next(place for place, step in enumerate(plan.steps) if isinstance(step, Headers))
    assert sum(step.seconds for step in plan.steps[:at] if isinstance(step, Wait)) == pytest.approx(1.25)
    assert json_of(plan)["choices"]
    assert not plan.takes_slot, "its queue is in its time"


# The run's own recording, of another alternative's calls one that ended, one that was cut, and a call like it.
OWN = recorded_run(recorded_call(CALL, 0.0, 1.0))
ENDED = recorded_run(recorded_call(CALL, 0.0, 3.0), alternative="unguarded")
CUT_IN_ANOTHER = recorded_run(recorded_call(CALL, 0.0, 1.0, end="cut"), alternative="async_cancellation")
CUT = recorded_run(recorded_call(CALL, 0.0, 2.0, end="cut", status=None, first_byte_at_s=None))
OF_ITS_ROLE = recorded_run(
    recorded_call("llm/planner/0.0.1", 0.0, 1.0), recorded_call("llm/planner/1.0.1", 1.0, 6.0), seed=8
)


@pytest.mark.parametrize(
    ("runs", "seconds"),
    [
        ([ENDED, OWN], 1.0),
        ([ENDED], 3.0),
        ([CUT_IN_ANOTHER, ENDED], 3.0),
        # What was cut goes on past its cut; where its like never ended, for ever.
        ([CUT, OF_ITS_ROLE], 5.0),
        ([CUT], math.inf),
    ],
)
def test_a_call_takes_as_long_as_the_recording_that_says_most_of_it(runs: list[RecordedRun], seconds: float) -> None:
    assert planned(*runs).duration_s == pytest.approx(seconds)


def test_a_call_of_another_question_is_not_taken_for_this_one() -> None:
    runs = [
        recorded_run(recorded_call(CALL, 0.0, seconds), question_id="q02", seed=seed)
        for seed, seconds in ((run_seed(7, 1), 1.0), (run_seed(7, 2), 2.0))
    ]
    # Drawn between the two, so it is neither.
    assert 1.0 < planned(*runs).duration_s < 2.0


def test_a_call_that_was_not_recorded_is_drawn_from_its_role_and_always_the_same() -> None:
    runs = [
        recorded_run(recorded_call("llm/planner/0.0.1", 0.0, seconds), seed=seed)
        for seed, seconds in enumerate((1, 2, 4))
    ]
    drawn = [planned(*runs).duration_s for _ in range(3)]
    assert len(set(drawn)) == 1
    assert 1.0 <= drawn[0] <= 4.0


def test_a_refusal_is_replayed_with_its_status_and_what_it_asked_for() -> None:
    refused = recorded_call(CALL, 0.0, 0.5, end="error", status=429, retry_after=(("retry-after", "2"),))
    plan = planned(recorded_run(refused))
    assert (head_of(plan).status, plan.duration_s) == (429, pytest.approx(0.5))
    assert ("retry-after", "2") in head_of(plan).headers


def test_a_connection_that_broke_breaks_again() -> None:
    plan = planned(recorded_run(recorded_call(CALL, 0.0, 0.5, end="error", status=None)))
    assert plan.steps == (Wait(0.5), Disconnect())


def test_a_recorded_text_is_said_again_to_the_same_request_only() -> None:
    answer = json.dumps({"choices": [{"message": {"content": "as it was"}}]})
    taped = recorded_call(CALL, 0.0, 1.0, digest=request_digest(BODY), body=answer, content_type="application/json")
    run = recorded_run(taped)
    assert body_of(planned(run)) == answer.encode()
    assert body_of(planned(run, body=BODY.replace(b"list", b"dict"))) != answer.encode()


def test_the_name_of_the_model_is_no_part_of_what_a_request_asks() -> None:
    assert request_digest(BODY) == request_digest(BODY.replace(b"docmind-scripted", b"another-model"))
    assert request_digest(BODY) != request_digest(BODY.replace(b"list", b"dict"))


def test_what_belongs_to_no_call_is_not_replayed() -> None:
    service = OpenAIService(LatencyProfile.named("typical"))
    request = ServiceRequest("GET", "/v1/models")
    assert ReplayedService(service, "llm", recording_of(), FACTS).plan(request) == service.plan(request)


def test_tokens_of_a_plan_stay_when_it_is_retimed() -> None:
    plan = Plan((Wait(1.0), Wait(3.0, tokens=30), Headers(200), Chunk(b"x")), "llm", output_tokens=30)
    changed = with_timing(plan, Timing(first_byte_s=8.0, wait_s=9.0))
    assert changed.steps == (Wait(2.0), Wait(6.0, tokens=30), Headers(200), Wait(1.0), Chunk(b"x"))
