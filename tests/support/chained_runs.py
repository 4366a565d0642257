"""Runs that are a chain of calls, made up: what a recording under a short deadline says of a longer one."""

from __future__ import annotations

import functools

from recorded_runs import recorded_call, recorded_run, recording_of

from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.recordings.replay import drawn_wait_s, find
from docmind_lab.experiments.recordings.timings import timings_of
from docmind_lab.statistics.latency.profile import LatencyProfile

ROLES = ("router", "planner", "retrieval", "validation", "synthesis")
TOKENS = (10, 60, 30, 40, 150)


@functools.cache
def _profile(name: str) -> LatencyProfile:
    return LatencyProfile.named(name)


def calls_of(seed: int) -> list[tuple[DrawKey, str, int]]:
    """Key, call id and output tokens of each call of a run, in order."""
    return [
        (DrawKey(seed, role, f"{place}.0.1"), f"llm/{role}/{place}.0.1", tokens)
        for place, (role, tokens) in enumerate(zip(ROLES, TOKENS, strict=True))
    ]


def true_length_s(profile: str, seed: int) -> float:
    """How long the run takes when nobody cuts it."""
    return sum(_profile(profile).draw_llm(key).service_s(tokens) for key, _, tokens in calls_of(seed))


def recorded_under(profile: str, deadline_s: float, seeds: range) -> Recording:
    """The runs of these seeds, each call cut at the deadline."""
    runs = []
    for seed in seeds:
        calls, at_s = [], 0.0
        for key, call_id, tokens in calls_of(seed):
            end_s = at_s + _profile(profile).draw_llm(key).service_s(tokens)
            if end_s >= deadline_s:
                calls.append(recorded_call(call_id, at_s, deadline_s, end="cut", first_byte_at_s=None))
                break
            calls.append(recorded_call(call_id, at_s, end_s))
            at_s = end_s
        runs.append(recorded_run(*calls, seed=seed, decision_timeout_s=deadline_s, returned_at_s=calls[-1].ended_at_s))
    return recording_of(*runs)


def replayed_length_s(recording: Recording, seed: int) -> float:
    """How long the run takes in a replay that nobody cuts."""
    run = ("cooperative", "{}", seed, "q01")
    length_s = 0.0
    for key, call_id, _ in calls_of(seed):
        found = find(recording, run, (call_id, 1))
        if found is not None and not found.was_cut:
            length_s += timings_of(recording).of_call[found.run.key, found.call.key].wait_s
            continue
        wait_s = drawn_wait_s(recording, found, "llm", key)
        assert wait_s is not None, "some call of the role was recorded"
        length_s += wait_s
    return length_s
