"""Services that answer as the recorded ones did, for replays in virtual time.

    options = ReplayOptions(folder="recordings/monday")
    door = options.replaying(system.door(options), order.facts)

A call that the run's own recording has takes as long as it took there, and ends as it ended. One that it has not, since
another alternative went further, is looked for in the other runs of its question, and else drawn, by its key, from what
calls of its role took. A call that its client cut goes on past the cut, for a time that is drawn too. What is said is
the recorded text if there is one for the very same request, else the scripted model's.

What a server did is not replayed but simulated: searches and replies are the simulated services' own, with_timing.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.measurement.derive import RunFacts
from docmind_lab.experiments.recordings.timings import REPLAYED_KINDS, Timing, timings_of
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Disconnect, Headers, Plan, Service, ServiceKind, ServiceRequest, Step, Wait
from docmind_lab.services.plan import json_steps as json_reply
from docmind_lab.services.server import ServiceOptions
from docmind_lab.services.virtual_door import VirtualDoor
from docmind_lab.tables.frames import StudyTables
from docmind_lab.tables.traces.importers.recordings import RUNS, RecordedCall, RecordedRun, Recording, RunKey


@dataclass(frozen=True)
class ReplayOptions(ServiceOptions):
    """Options of services that replay a recording. folder: of the recording. model: name of the model asked.

    Its faults and its slots are in the recorded times, so nothing of them is simulated beside.
    """

    folder: str = ""
    model: str = ""

    def replaying(self, door: VirtualDoor, facts: RunFacts) -> VirtualDoor:
        """Return the door for one run: the same services, with the times of the recording."""
        recording = open_recording(self.folder)
        llm = door.llm
        if isinstance(llm, OpenAIService):
            # A model of another name, on another machine, is answered for here.
            llm = replace(
                llm, profile=replace(llm.profile, hang_probability=0.0), faults=(), model=self.model or llm.model
            )
        return replace(
            door,
            llm=ReplayedService(llm, "llm", recording, facts),
            # Searches of the simulated store keep their engine; its times are replaced.
            vectors=ReplayedService(door.vectors, "retrieval", recording, facts),
            endpoints=None if door.endpoints is None else ReplayedService(door.endpoints, "tool", recording, facts),
            slots=None,
        )


def open_recording(folder: str) -> Recording:
    """Read the recording in a folder, once in a process as long as it does not change."""
    file = Path(folder) / RUNS
    return _read_recording(folder, file.stat().st_mtime_ns if file.exists() else 0)


@functools.lru_cache(maxsize=2)
def _read_recording(folder: str, changed_at_ns: int) -> Recording:
    return Recording.load(folder)


@dataclass(frozen=True)
class RecordedMatch:
    """A recorded call, and the run that it comes from."""

    run: RecordedRun
    call: RecordedCall

    @property
    def was_cut(self) -> bool:
        """Whether the client cut the call, so that its full length is unknown."""
        return self.call.end == "cut"


def find(recording: Recording, run: RunKey, call: tuple[str, int]) -> RecordedMatch | None:
    """Find a call, by its id and attempt, in the run's own recording, else in another run of its question.

    Of other runs one that saw the call end by itself is preferred to one that cut it. None if no run made it.
    """
    own = recording.by_key.get(run)
    if own is not None and (recorded := own.call(*call)) is not None:
        return RecordedMatch(own, recorded)
    others = [(other, other.call(*call)) for other in recording.by_question.get(run[2:], [])]
    there = [RecordedMatch(other, recorded) for other, recorded in others if recorded is not None]
    return min(there, key=lambda match: match.was_cut, default=None)


def drawn_wait_s(recording: Recording, match: RecordedMatch | None, kind: str, key: DrawKey) -> float | None:
    """Draw how long a call takes whose length was not recorded, in seconds; the same key has the same wait.

    match: the call, as it was cut; None if no run made it. The wait is infinite for a call that is longer than the
    recording could observe, and None if the recording is of no call like it.
    """
    level = key.uniform("replay")
    waits = timings_of(recording).waits(kind, key.role)
    if match is None:
        return None if waits is None else waits.at(level)
    # Nobody in the recording ever answered such a call: nothing is known but that it lasts.
    passed_s = timings_of(recording).of_call[match.run.key, match.call.key].wait_s
    return math.inf if waits is None else waits.beyond(passed_s, level)


@dataclass(frozen=True)
class ReplayedService:
    """A service whose replies come when the recorded ones did. facts: of the run being replayed."""

    inner: Service
    kind: ServiceKind
    recording: Recording
    facts: RunFacts

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request; a request outside every call, such as set-up, is simulated as usual."""
        plan = self.inner.plan(request)
        call_id = request.tag("call-id")
        if not call_id:
            return plan
        plan = replace(plan, takes_slot=False)
        key = request.draw_key("", "", self.facts.seed)
        facts = self.facts
        run = (facts.alternative, facts.alternative_options, facts.seed, facts.question_id)
        match = find(self.recording, run, (call_id, key.attempt))
        if match is None or match.was_cut:
            wait_s = drawn_wait_s(self.recording, match, self.kind, key)
            if wait_s is None:
                return plan
            began_s = 0.0 if match is None else self._timing(match).first_byte_s
            return with_timing(plan, Timing(max(began_s, wait_s), wait_s))
        timing = self._timing(match)
        if match.call.end == "error":
            return self._failure_plan(plan, match.call, timing)
        if match.call.body is not None and match.call.digest == request_digest(request.body):
            return self._recorded_reply_plan(plan, match.call, timing)
        return with_timing(plan, timing)

    def _timing(self, match: RecordedMatch) -> Timing:
        return timings_of(self.recording).of_call[match.run.key, match.call.key]

    def _failure_plan(self, plan: Plan, call: RecordedCall, timing: Timing) -> Plan:
        if call.status is None or call.status < 400:
            return replace(plan, steps=(Wait(timing.wait_s), Disconnect()), output_tokens=0)
        steps: tuple[Step, ...]
        if call.body is not None:
            steps = _with_body(call.status, call)
        else:
            message = f"The recorded server answered HTTP {call.status}."
            error = {"message": message, "type": "recorded_error", "param": None, "code": None}
            steps = json_reply(call.status, {"error": error}, call.retry_after)
        return replace(plan, steps=(Wait(timing.wait_s), *steps), output_tokens=0)

    def _recorded_reply_plan(self, plan: Plan, call: RecordedCall, timing: Timing) -> Plan:
        headers, chunk = _with_body(200, call)
        tokens = call.output_tokens or 0
        steps = (Wait(timing.first_byte_s, tokens), headers, Wait(timing.wait_s - timing.first_byte_s), chunk)
        return replace(plan, steps=steps, input_tokens=call.input_tokens or 0, output_tokens=tokens)


def with_timing(plan: Plan, timing: Timing) -> Plan:
    """Return the plan with its first byte and end moved to the recorded times, its waits scaled in proportion."""
    at = next((place for place, step in enumerate(plan.steps) if isinstance(step, Headers)), len(plan.steps))
    before = _scale_waits(plan.steps[:at], timing.first_byte_s)
    rest_s = 0.0 if math.isinf(timing.first_byte_s) else timing.wait_s - timing.first_byte_s
    after = plan.steps[at + 1 :]
    return replace(plan, steps=(*before, *plan.steps[at : at + 1], *_scale_waits(after, rest_s)))


def _scale_waits(steps: Sequence[Step], seconds: float) -> tuple[Step, ...]:
    """Return the steps with their waits scaled to so many seconds in total."""
    taken_s = math.fsum(step.seconds for step in steps if isinstance(step, Wait))
    if taken_s > 0 and not math.isinf(seconds):
        factor = seconds / taken_s
        return tuple(replace(step, seconds=step.seconds * factor) if isinstance(step, Wait) else step for step in steps)
    if seconds == 0:
        return tuple(steps)
    return (Wait(seconds), *steps)


def _with_body(status: int, call: RecordedCall) -> tuple[Headers, Chunk]:
    data = (call.body or "").encode()
    fixed = (("content-type", call.content_type or "application/json"), ("content-length", str(len(data))))
    return Headers(status, fixed + call.retry_after), Chunk(data)


def request_digest(body: bytes) -> str:
    """Return a digest of a request's content, except the model's name, which differs in a replay."""
    try:
        content = json.loads(body)
    except ValueError:
        return hashlib.blake2b(body, digest_size=12).hexdigest()
    if isinstance(content, dict):
        content.pop("model", None)
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=12).hexdigest()


# ---- where the times of a replay are from

_RUN = ["alternative", "alternative_options", "seed", "question_id"]
_CALL = ["run_id", "call_id", "attempt", "kind", "role", "step"]
_ORIGINS = ("recorded", "of_another_alternative", "not_recorded", "cut_in_the_recording", "longer_than_observed")


def replayed_calls(study: StudyTables, recording: Recording) -> dict[str, int]:
    """Count the calls of a replay by the source of their times. study: the replay.

    What was refused was never sent, and tools of a user's graph run again: neither counts.

    Returns:
        recorded: Those of the run's own recording. of_another_alternative: Those of another run of the same question.
        not_recorded: Those drawn from what calls of their role took. cut_in_the_recording: Those of the first two that
        the recording saw cut, so that what follows is drawn. longer_than_observed: Those drawn beyond what the
        recording could observe; they never end.
    """
    runs = {
        str(run_id): (str(alternative), str(options), int(seed), str(question_id))
        for run_id, alternative, options, seed, question_id in study.runs[["run_id", *_RUN]].itertuples(index=False)
    }
    calls = study.calls
    is_sent = calls["kind"].isin(REPLAYED_KINDS) & (calls["outcome"] != "refused")
    client = calls[(calls["seen_from"] == "client") & is_sent]
    counts = dict.fromkeys(_ORIGINS, 0)
    for run_id, call_id, attempt, kind, role, step in client[_CALL].itertuples(index=False):
        run = runs[str(run_id)]
        key = DrawKey(run[2], str(role), str(step), int(attempt))
        for origin in _origins(recording, run, str(call_id), str(kind), key):
            counts[origin] += 1
    return counts


def _origins(recording: Recording, run: RunKey, call_id: str, kind: str, key: DrawKey) -> Iterator[str]:
    match = find(recording, run, (call_id, key.attempt))
    if match is None:
        yield "not_recorded"
    else:
        yield "recorded" if match.run.key == run else "of_another_alternative"
        if not match.was_cut:
            return
        yield "cut_in_the_recording"
    if drawn_wait_s(recording, match, kind, key) == math.inf:
        yield "longer_than_observed"
