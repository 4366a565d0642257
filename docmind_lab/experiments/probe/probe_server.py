"""Whether a model server stops when its client leaves: calls are left in each phase, and the server's work is watched.

    probe = probe_server(Target("http://127.0.0.1:8080/v1", "tiny"))

The truth is the server's own log or counters. A server without any is judged by how long another request waits for the
slot that the abandoned call may still have; where other requests do not wait, nothing can be told, and nothing is.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from dataclasses import replace
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.progress import Progress
from docmind_lab.core.server_behaviour import PHASES, Phase, WorkEnds
from docmind_lab.experiments.probe.probe_bench import LONGEST_PROMPT, PREFILL_S, TOKEN_LIMIT, Bench
from docmind_lab.experiments.probe.truth import Counters, LabLog, Leaving, Look, Target, truth_of
from docmind_lab.experiments.probe.verdicts import ENDED_BY, STREAMING, ServerProbe, Trial, why_unknown, work_ends_of

# Where in its phase a call is left, as a share of the phase: the first trial, and how much later each further one.
_LEFT_AT: Final = 0.2
_LEFT_LATER: Final = 0.13
_IN_QUEUE_S: Final = 0.15
# Calls before and after the trials: to learn how calls go, and to see that they still do.
_CALLS_BESIDE_TRIALS: Final = 60
# A trial, the wait for a quiet server before it, and a call that waits for the slot. Waits may need to be repeated.
_CALLS_OF_A_TRIAL: Final = 4


def most_to_be_sent(target: Target, repeats: int, most_tokens: int) -> str:
    """What a probe sends at the most, in words.

    repeats: trials of each phase and way of leaving. most_tokens: limit of the tokens of each answer.
    """
    calls = _most_calls(repeats, _slots(truth_of(target)))
    return f"at most {calls} calls of up to {LONGEST_PROMPT} words and {most_tokens:,} tokens of answer each"


Which = tuple[Phase, Leaving, int]
"""A trial: the phase, how the client leaves, and the number of it, from 1 on."""


def _trials(repeats: int, *, counted: bool) -> list[Which]:
    """All trials, in order; `counted` for one more with its counters polled."""
    ways: tuple[Leaving, ...] = ("FIN", "RST")
    trials: list[Which] = list(itertools.product(PHASES, ways, range(1, repeats + 1)))
    return [*trials, ("generation", "FIN, polled", 1)] if counted else trials


def _most_calls(repeats: int, slots: int) -> int:
    occupiers = 2 * repeats * slots
    return _CALLS_BESIDE_TRIALS + _CALLS_OF_A_TRIAL * len(_trials(repeats, counted=True)) + occupiers


def _slots(truth: LabLog | Counters | None) -> int:
    return 1 if truth is None or isinstance(truth, LabLog) else truth.slots


def probe_server(
    target: Target,
    *,
    repeats: int = 3,
    seconds: float = 3.0,
    most_tokens: int = 2048,
    by_waiting: bool = False,
    progress: Progress | None = None,
) -> ServerProbe:
    """Leave calls to a server in each phase, and see when its work on them ends.

    target: the server. Nothing else should use it meanwhile. repeats: trials of each phase and way of leaving. seconds:
    how long an answer should take, about; more makes the intervals smaller beside it. most_tokens: limit of the tokens
    of each answer. by_waiting: judge by the wait of other requests even where the server keeps count of its work.
    progress: called with (trials done, all trials).

    Raises: ConfigurationError for numbers that cannot be used; ServiceError when the server cannot be reached, or
        refuses the calls, or when the speed of its calls changed meanwhile, so that they tell nothing of those left.
    """
    if repeats < 1 or not 0 < seconds < math.inf or most_tokens < TOKEN_LIMIT:
        raise ConfigurationError(
            f"repeats must be 1 or more, seconds above 0 and most_tokens {TOKEN_LIMIT} or more, not {repeats}, "
            f"{seconds} and {most_tokens}"
        )
    truth = truth_of(target)
    counted = truth is not None and not isinstance(truth, LabLog)
    if counted:
        # Answers of one length: these servers can be asked not to end by themselves.
        target = replace(target, extra={"ignore_eos": True, **target.extra})
    bench = Bench(target, None if by_waiting else truth, _most_calls(repeats, _slots(truth)))
    undisturbed = bench.measure_undisturbed(seconds, most_tokens)
    trials = _trials(repeats, counted=counted and not by_waiting)
    results = []
    for number, which in enumerate(trials):
        if progress is not None:
            progress(number, len(trials))
        results.append(_leave(bench, which))
    if progress is not None:
        progress(len(trials), len(trials))
    bench.require_steady()
    server = "unknown" if truth is None else truth.server
    return ServerProbe(server, target.base_url, undisturbed, tuple(results))


# ---- trials


def _leave(bench: Bench, which: Which) -> Trial:
    """Leave a call in a phase, and see what becomes of it."""
    phase, how, repeat = which
    before = bench.wait_until_quiet()
    usual = bench.usual
    if phase in ("prefill", "before_first_token") and usual.first_token_s < PREFILL_S / 4:
        note = f"the longest prompt is read in {usual.first_token_s:.2f} s, too short to leave in the middle"
        return _unknown(which, note)
    if bench.truth is None and not usual.others_wait:
        note = "the server keeps no count of its work, and other requests do not wait for a call under way"
        return _unknown(which, note)
    if phase == "mid_stream" and usual.held_back:
        return _unknown(which, "the stream is held back until its end, so nobody can leave in its middle")
    if phase == "queue":
        return _leave_in_queue(bench, which, before)
    share = _LEFT_AT + _LEFT_LATER * (repeat - 1) % (1 - _LEFT_AT)
    run_id, call = bench.call(usual.prompt_words, usual.max_tokens, stream=phase in STREAMING)
    with call:
        if phase == "mid_stream":
            for _ in range(max(1, int(share * usual.tokens))):
                call.read_token()
        else:
            generating_s = usual.whole_s - usual.first_token_s
            in_prompt_s, in_answer_s = share * usual.first_token_s, usual.first_token_s + share * generating_s
            leave_after_s = in_answer_s if phase == "generation" else in_prompt_s
            time.sleep(max(0.0, call.sent_at_s + leave_after_s - time.monotonic()))
        left_at_s = call.leave("FIN" if how == "FIN, polled" else how)
    return _judge(bench, which, run_id, call.begun_at_s, call.sent_at_s, left_at_s, before)


def _leave_in_queue(bench: Bench, which: Which, before: Look | None) -> Trial:
    """Leave a call while others have the slots, and see whether it is worked on when its turn comes."""
    usual = bench.usual
    # Without streaming: a server may notice that a client has left only when it has nothing to send to others.
    occupiers = [bench.call(usual.prompt_words, usual.max_tokens, stream=False)[1] for _ in range(_slots(bench.truth))]
    with contextlib.ExitStack() as closing:
        for occupier in occupiers:
            closing.enter_context(occupier)
        # A server may count its queue only between two steps of its work, and a prompt can be one step.
        time.sleep(usual.first_token_s + _IN_QUEUE_S)
        run_id, call = bench.call(2, usual.max_tokens, stream=False)
        closing.enter_context(call)
        time.sleep(_IN_QUEUE_S)
        if not bench.is_queued(run_id, call.begun_at_s):
            call.leave("FIN")
            return _unknown(which, "no queue was seen: the server took a second call at once")
        left_at_s = call.leave(which[1])
        usages = [occupier.answer().get("usage") or {} for occupier in occupiers]
        free_at_s = time.monotonic()
    left_s, generating_s = free_at_s - left_at_s, usual.whole_s - usual.first_token_s
    tokens: float | None = None
    if isinstance(bench.truth, LabLog):
        low_s, high_s, tokens = bench.end_by_log(run_id, call.begun_at_s, left_at_s, left_s + 3 * generating_s)
        work_ends: WorkEnds = "at_once" if high_s < left_s else "at_its_end"
    elif bench.truth is None or before is None:
        low_s, high_s = bench.end_by_waiting(free_at_s)
        work_ends = "at_once" if high_s < ENDED_BY * generating_s else "unknown"
        work_ends = "at_its_end" if low_s > ENDED_BY * generating_s else work_ends
        low_s, high_s = (0.0, left_s) if work_ends == "at_once" else (left_s + low_s, left_s + high_s)
    else:
        after = bench.look_when_quiet(generating_s)
        tokens = after.tokens - before.tokens - sum(usage.get("completion_tokens", 0) for usage in usages)
        # What was dropped in the queue generates nothing; when it was dropped nobody says.
        work_ends = "at_once" if tokens < 1 else "at_its_end"
        took_s = tokens * generating_s / max(1, usual.max_tokens)
        low_s, high_s = (0.0, left_s) if work_ends == "at_once" else (left_s + 0.9 * took_s, left_s + 1.1 * took_s)
    left_after_s, whole_s = left_at_s - call.sent_at_s, left_s + generating_s
    return Trial(*which, left_after_s, whole_s, whole_s, low_s, high_s, tokens, bench.evidence, work_ends)


def _judge(
    bench: Bench, which: Which, run_id: str, begun_at_s: float, sent_at_s: float, left_at_s: float, before: Look | None
) -> Trial:
    """The trial of a call that was left while it was worked on."""
    usual, (phase, how, _) = bench.usual, which
    left_after_s = left_at_s - sent_at_s
    remaining_s = max(0.0, (usual.streamed_s if phase in STREAMING else usual.whole_s) - left_after_s)
    next_write_s = {"before_first_token": usual.first_token_s - left_after_s, "mid_stream": 0.0}.get(phase, remaining_s)
    tokens: float | None = None
    if isinstance(bench.truth, LabLog):
        low_s, high_s, tokens = bench.end_by_log(run_id, begun_at_s, left_at_s, 3 * remaining_s + 1.0)
    elif bench.truth is None or before is None:
        low_s, high_s = bench.end_by_waiting(left_at_s)
    else:
        if how == "FIN, polled":
            bench.poll(remaining_s)
        low_s, high_s, tokens = bench.end_by_counters(before, left_after_s, remaining_s)
    work_ends = work_ends_of(phase, low_s, high_s, remaining_s, next_write_s)
    note = why_unknown(high_s, remaining_s) if work_ends == "unknown" else ""
    seconds = left_after_s, remaining_s, next_write_s, low_s, high_s
    return Trial(*which, *seconds, tokens, bench.evidence, work_ends, note)


def _unknown(which: Which, note: str) -> Trial:
    nan = math.nan
    return Trial(*which, nan, nan, nan, nan, nan, None, "none", "unknown", note)
