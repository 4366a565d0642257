"""Rule: what was recorded under a short deadline never makes a longer one look better than it is (trust 1)."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from often import often
from recorded_runs import recorded_call, recorded_run, recording_of

from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.recordings.replay import drawn_wait_s, find
from docmind_lab.experiments.recordings.timings import timings_of
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.shares import share_interval

RUNS = 40

# ---- runs that are a chain of calls, made up

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


def too_good(profile: str, recorded_share: float, studies: int) -> dict[float, int]:
    """Studies whose replay is sure of more runs in time than there are, by the true share at the longer deadline.

    Args:
        profile: Latencies of the calls.
        recorded_share: Share of runs that are over by the deadline of the recording.
        studies: How many recordings of 40 runs are made.
    """
    lengths_s = [true_length_s(profile, 10**6 + seed) for seed in range(2_000)]
    deadline_s = float(np.quantile(lengths_s, recorded_share))
    longer = {share: float(np.quantile(lengths_s, share)) for share in (0.5, 0.7, 0.8, 0.9, 0.95)}
    found = dict.fromkeys(longer, 0)
    for study in range(studies):
        seeds = range(study * 100, study * 100 + RUNS)
        recording = recorded_under(profile, deadline_s, seeds)
        replayed_s = [replayed_length_s(recording, seed) for seed in seeds]
        for share, longer_s in longer.items():
            in_time = sum(length_s < longer_s for length_s in replayed_s)
            found[share] += share_interval(in_time, RUNS).low > share
    return found


# A 95 % interval of the runs themselves lies above the truth in one study of forty: 3 of 20 or more would come by
# chance in one test of a hundred and fifty. 2.5 % of 100 studies are 2 or 3; 9 or more would come by chance once in a
# thousand.
FEW = [(profile, 0.2, 20, 2) for profile in ("heavy_tail/10", "typical")]
MANY = itertools.product(("heavy_tail/10", "local_gpu"), (0.1, 0.2, 0.45), (100,), (8,))


@pytest.mark.parametrize(("profile", "recorded_share", "studies", "most"), often([*FEW, *MANY], *FEW))
def test_a_replay_is_not_sure_of_more_runs_in_time_than_there_are(
    profile: str, recorded_share: float, studies: int, most: int
) -> None:
    assert max(too_good(profile, recorded_share, studies).values()) <= most
