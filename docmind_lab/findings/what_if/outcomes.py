"""What each alternative would have done to recorded runs at each deadline, for all of them at once.

    replay = Replay(traces)
    result = replay.under(rule_of("A").rule, [5.0, 10.0, 20.0])
    result.in_time.mean(axis=0)         # share answered by each deadline

No agent runs: a rule says what becomes of the calls under way, and the trace says when they began and would have
ended. What is ready exactly at a deadline is late, as on the lab's clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import STOPS, Phase, ServerBehaviour
from docmind_lab.findings.what_if.arrays import (
    Bools,
    Rows,
    around_spans,
    call_rows,
    generation_rows,
    outermost_step_rows,
    step_rows,
)
from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.traces.rules import Rule
from docmind_lab.tables.traces.trace_tables import Traces

ENDINGS: Final = ("answered", "partial", "timed_out", "failed", "interrupted", "unfinished")
"""Outcomes of a run; `RunOutcomes.outcome` holds their positions here."""
_ENDING: Final = {name: place for place, name in enumerate(ENDINGS)}

# Rows × deadlines worked on at once: few enough for a processor's cache, and for little memory.
_CELLS_AT_ONCE: Final = 150_000
# A step and its result come together; their instants are read one after the other.
_TOGETHER_S: Final = 1e-6
# No stretch of generation is shorter; it keeps a division from being one by zero.
_SHORTEST_S: Final = 1e-12
# With this much left or less a propagated deadline refuses a call (`core.deadlines.PropagationPolicy.floor_s`).
_FLOOR_S: Final = 0.005


@dataclass(frozen=True, eq=False)
class RunOutcomes:
    """What became of each run at each deadline; every array has one row per run and one column per deadline.

    Args:
        outcome: Position of the outcome in `ENDINGS`.
        returned_at_s: The caller was back; NaN if not while the run was observed.
        in_time: Answered, and back by the deadline.
        calls_after: Calls that began after the deadline.
        busy_after_s: Seconds that servers worked after the deadline, calls added up.
        tokens_after: Tokens generated after the deadline.
        work_until_s: The last work ended; a lower bound where `censored`.
        censored: The trace ends before the work does: what comes after it was not observed.
        known: Whether the trace can say it: False where the alternative would have taken another path.
    """

    outcome: NDArray[np.int8]
    returned_at_s: Floats
    in_time: Bools
    calls_after: Floats
    busy_after_s: Floats
    tokens_after: Floats
    work_until_s: Floats
    censored: Bools
    known: Bools

    @classmethod
    def joined(cls, parts: Sequence[RunOutcomes]) -> RunOutcomes:
        """Return the outcomes at several parts of the deadlines as one."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in names})

    def columns(self, timeout_s: float) -> dict[str, NDArray[Any]]:
        """Return what became of each run at the first deadline, `timeout_s`, by columns of the table `runs`."""
        returned = self.returned_at_s[:, 0]
        return {
            "outcome": np.array(ENDINGS)[self.outcome[:, 0]],
            "caller_overrun_s": np.where(np.isnan(returned), np.nan, np.maximum(0.0, returned - timeout_s)),
            "calls_after_deadline": self.calls_after[:, 0],
            "busy_after_deadline_s": self.busy_after_s[:, 0],
            "tokens_after_deadline": self.tokens_after[:, 0],
        }


class Replay:
    """Traces, ready to be put under any alternative and deadline.

    traces: the runs; those of a control, which nothing cut, can answer for every deadline. behaviour: what the server
    does with a call whose client has left.
    """

    def __init__(self, traces: Traces, behaviour: ServerBehaviour = STOPS) -> None:
        if not len(traces):
            raise ConfigurationError("there is no trace to replay; import some first")
        self.traces, self.behaviour = traces, behaviour
        runs = traces.runs
        self._count = len(runs)
        place = pd.Series(np.arange(self._count), index=runs["trace_id"])
        spans = traces.spans.assign(run=place[traces.spans["trace_id"]].to_numpy())
        self._ended = runs["ended_at_s"].to_numpy()[:, None]
        self._observed = runs["observed_until_s"].to_numpy()[:, None]
        self._result_from = runs["result_from_s"].fillna(np.inf).to_numpy()[:, None]
        outcomes = runs["outcome"].astype("str").map({**_ENDING, "cut": _ENDING["unfinished"]})
        self._outcome = outcomes.to_numpy(dtype=np.int8)[:, None]
        around = around_spans(spans)
        # A step that the limit of its run cut would have gone on: its end was not seen.
        until = np.where(np.isnan(self._ended), self._observed, np.inf)[spans["run"], 0]
        is_cut = (spans["outcome"] == "cut") & (spans["ended_at_s"] >= until)
        as_steps = spans.assign(ended_at_s=spans["ended_at_s"].mask(is_cut))
        self._steps = {
            "to_end_of_step": step_rows(as_steps, around.inner, self._count),
            "to_end_of_outer_step": step_rows(as_steps, around.outer, self._count),
        }
        self._outermost = outermost_step_rows(spans, around.outer, self._count)
        self._calls = call_rows(spans, around, self._count)
        self._generation = generation_rows(spans, traces.generation, self._calls, self._count)
        self._adapts = runs["adapts"].to_numpy()[:, None]
        # Retries of its own take another path than the clients' would, from the first error on.
        own = runs["retries"].astype("str").str.startswith("sdk:") & (runs["retries"].astype("str") != "sdk:0")
        error_at = self._calls.min(np.where(self._calls["is_error"] > 0, self._calls["ended"], np.inf))
        failed_at = np.where(self._outcome == _ENDING["failed"], self._ended, np.inf)
        self._error_at = np.where(own.to_numpy()[:, None], np.minimum(error_at, failed_at), np.inf)
        # The last question, and what its answers have that alternatives with the same rule for the work share.
        self._question: tuple[bytes, float | None] = (b"", None)
        self._late_work: dict[tuple[Any, ...], tuple[Floats, Floats, Floats, Floats]] = {}

    def under(self, rule: Rule, deadlines_s: ArrayLike, *, horizon_factor: float | None = None) -> RunOutcomes:
        """Return what becomes of every run at every deadline.

        deadlines_s: the deadlines, seconds from the start of a run. horizon_factor: runs are observed until their
        deadline times this; None means as long as the trace was. Raises: ConfigurationError (a deadline is not positive
        and finite).
        """
        deadlines = np.atleast_1d(np.asarray(deadlines_s, dtype=np.float64))
        bad = deadlines[~((deadlines > 0) & np.isfinite(deadlines))]
        if len(bad):
            raise ConfigurationError(f"a decision timeout must be positive and finite: got {bad[0]:g}")
        question = (deadlines.tobytes(), horizon_factor)
        if question != self._question:
            self._question, self._late_work = question, {}
        width = max(1, _CELLS_AT_ONCE // max(len(self._calls.owner), len(self._generation.owner)))
        chunks = [deadlines[start : start + width] for start in range(0, len(deadlines), width)]
        return RunOutcomes.joined([self._outcomes_at(rule, chunk, horizon_factor) for chunk in chunks])

    def _outcomes_at(self, rule: Rule, deadlines: Floats, horizon_factor: float | None) -> RunOutcomes:
        """Return what becomes of the runs at a few deadlines."""
        horizon = np.broadcast_to(self._observed, (self._count, len(deadlines)))
        if horizon_factor is not None:
            horizon = np.minimum(horizon, deadlines * horizon_factor)
        # Whoever is back by the deadline is untouched by any rule.
        finished = self._ended <= deadlines
        stop = np.where(finished, np.inf, self._stop(rule, deadlines))
        back = np.broadcast_to(deadlines, stop.shape) if rule.caller == "leaves" else stop
        returned = np.fmin(np.where(np.isnan(self._ended), np.inf, self._ended), back)
        is_seen = returned <= horizon
        key = (rule.work, rule.cut_after_s, rule.propagates, deadlines.tobytes())
        if key not in self._late_work:
            self._late_work[key] = self._late(*self._work(rule, deadlines, finished), deadlines, horizon)
        calls, busy, tokens, last = self._late_work[key]
        all_ended = np.maximum(last, np.where(is_seen, returned, horizon))
        outcome = self._outcomes(rule, deadlines, stop, returned, is_seen)
        return RunOutcomes(
            outcome=outcome,
            returned_at_s=np.where(is_seen, returned, np.nan),
            in_time=(outcome == _ENDING["answered"]) & (returned <= deadlines),
            calls_after=calls,
            busy_after_s=busy,
            tokens_after=tokens,
            work_until_s=np.minimum(all_ended, horizon),
            censored=(last > horizon) | self._goes_on_after(rule, horizon, finished, stop),
            known=self._known(rule, deadlines),
        )

    def _goes_on_after(self, rule: Rule, horizon: Floats, finished: Bools, stop: Floats) -> Bools:
        """Whether the run itself goes on when nobody looks any more."""
        if rule.work == "cut":
            return np.zeros(finished.shape, dtype=np.bool_)
        goes_on = ~finished & ~(self._ended <= horizon)
        return goes_on if rule.work == "goes_on" else goes_on & (stop > horizon)

    def _known(self, rule: Rule, deadlines: Floats) -> Bools:
        """Whether the traces can say what becomes of each run."""
        # Whatever a run that was cut before the deadline would have done, nobody saw it.
        known = np.asarray(~(np.isnan(self._ended) & (self._observed < deadlines)))
        if rule.propagates:
            known &= ~((self._error_at < deadlines) | self._adapts)
        if rule.cuts_calls:
            # The task of a peer outlives the request that asked for it, for as long as that peer pleases.
            calls = self._calls
            cut = (calls["is_peer"] > 0) & (calls["started"] < deadlines) & (calls["server_ended"] > deadlines)
            known &= (calls.sum(cut) == 0) | ~self._adapts
        return known

    def _stop(self, rule: Rule, deadlines: Floats) -> Floats:
        """When the work is stopped; inf where it is not."""
        if rule.work == "goes_on":
            return np.full((self._count, len(deadlines)), np.inf)
        if rule.work == "cut":
            return np.broadcast_to(deadlines + rule.cut_after_s, (self._count, len(deadlines)))
        steps = self._steps[rule.work]
        under_way = (steps["started"] <= deadlines) & (steps["ended"] > deadlines)
        ends = steps.max(np.where(under_way, steps["ended"], -np.inf))
        # Between two steps the flag is looked at when the next one would begin.
        begins = steps.min(np.where(steps["started"] > deadlines, steps["started"], np.inf))
        return np.asarray(np.where(np.isneginf(ends), begins, ends))

    def _work(self, rule: Rule, deadlines: Floats, finished: Bools) -> tuple[Bools, Floats]:
        """Return which calls are made at all, and when the server is done with each."""
        calls = self._calls
        ends = np.broadcast_to(calls["server_ended"], (len(calls.owner), len(deadlines)))
        if rule.work == "goes_on":
            return np.ones(ends.shape, dtype=np.bool_), ends
        untouched = finished[calls.owner]
        if rule.work != "cut":
            began = calls["inner_from" if rule.work == "to_end_of_step" else "outer_from"] <= deadlines
            return began | untouched, ends
        cut = deadlines + rule.cut_after_s
        began = calls["started"] < (cut - _FLOOR_S if rule.propagates else cut)
        left = np.where(calls["ended"] > cut, self._ends_when_left(cut), ends)
        inside = calls["inside"][:, 0].astype(np.int64)
        # What a server asks of others it goes on asking until its own work ends.
        began = np.where((inside >= 0)[:, None], calls["server_started"] < left[inside], began)
        return began | untouched, np.where(untouched, ends, left)

    def _ends_when_left(self, left_at: Floats) -> Floats:
        """When the server ends each call if its client leaves at these instants."""
        calls, behaviour = self._calls, self.behaviour
        ends = np.broadcast_to(calls["server_ended"], (len(calls.owner), left_at.shape[-1]))
        early = np.full(ends.shape, np.inf)
        begun = left_at >= calls["served_from"]
        generating = left_at >= calls["generating_from"]
        streams = calls["streams"] > 0
        is_model = calls["is_model"] > 0
        phases: dict[Phase | None, Bools] = {
            None: np.broadcast_to(~is_model, ends.shape),
            "queue": is_model & ~begun,
            "prefill": is_model & begun & ~streams & ~generating,
            "generation": is_model & begun & ~streams & generating,
            "before_first_token": is_model & begun & streams & ~generating,
            "mid_stream": is_model & begun & streams & generating,
        }
        for phase, here in phases.items():
            each = behaviour.phases.get(phase) if phase is not None else None
            if phase is None and behaviour.other_requests == "at_once":
                early = np.where(here, left_at, early)
            elif each is not None and each.work_ends == "at_once":
                early = np.where(
                    here, left_at + _notice_s(each, np.maximum(0.0, left_at - calls["server_started"])), early
                )
            elif behaviour.ends_at_next_write(phase):
                early = np.where(here, self._next_write(left_at), early)
        return np.asarray(np.minimum(ends, np.maximum(early, calls["server_started"])))

    def _next_write(self, left_at: Floats) -> Floats:
        """When the server next writes to a client: with the next tokens of a stream, else with its whole answer."""
        stretches, calls = self._generation, self._calls
        cells = np.full((len(calls.owner), left_at.shape[-1]), np.inf)
        later = np.where(stretches["ended"] > left_at, stretches["ended"], np.inf)
        np.minimum.at(cells, stretches["call"][:, 0].astype(np.int64), later)
        return np.asarray(np.where(calls["streams"] > 0, cells, np.inf))

    def _late(
        self, included: Bools, ends: Floats, deadlines: Floats, horizon: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return calls begun, seconds worked and tokens generated after each deadline, and when the last work ended."""
        calls, of_call = self._calls, horizon[self._calls.owner]
        seen = included & (calls["server_started"] <= of_call)
        until = np.minimum(ends, of_call)
        busy = np.where(seen, np.maximum(0.0, until - np.maximum(calls["served_from"], deadlines)), 0.0)
        begun_late = seen & (calls["server_started"] > deadlines)
        last = calls.max(np.where(seen, ends, 0.0))
        return calls.sum(begun_late), calls.sum(busy), self._late_tokens(seen, until, deadlines), last

    def _late_tokens(self, seen: Bools, until: Floats, deadlines: Floats) -> Floats:
        stretches = self._generation
        call = stretches["call"][:, 0].astype(np.int64)
        begun, ended, tokens = stretches["begun"], stretches["ended"], stretches["tokens"]
        length_s = np.maximum(ended - begun, _SHORTEST_S)
        stop = np.minimum(ended, until[call])
        tokens_by_stop = np.where(stop >= ended, tokens, np.floor(tokens * np.maximum(0.0, stop - begun) / length_s))
        until_stop_s = np.maximum(stop - begun, _SHORTEST_S)
        in_time = np.floor(tokens_by_stop * np.clip((deadlines - begun) / until_stop_s, 0.0, 1.0))
        late = np.where(seen[call] & (stop > deadlines), tokens_by_stop - in_time, 0.0)
        return stretches.sum(late)

    def _result_step_from(self, steps: Rows) -> Floats:
        """When the last step began without which the first result is not there; inf if there is none."""
        outermost = self._outermost
        brought = self._ends_with_result(outermost)
        # Of steps that end together the last to begin brought it, as tools do that take no time.
        last = outermost.max(np.where(brought, outermost["last_started"], -np.inf))
        inside = steps.min(np.where(self._ends_with_result(steps), steps["started"], np.inf))
        # Documents that a step keeps by the way are there before the outermost step ends.
        return np.asarray(np.where(np.isneginf(last), np.minimum(self._result_from, inside), last))

    def _ends_with_result(self, steps: Rows) -> Bools:
        result = self._result_from[steps.owner]
        return np.asarray((steps["ended"] >= result - _TOGETHER_S) & (steps["ended"] <= result + _TOGETHER_S))

    def _outcomes(
        self, rule: Rule, deadlines: Floats, stop: Floats, returned: Floats, is_seen: Bools
    ) -> NDArray[np.int8]:
        """Return the outcome of each run at each deadline."""
        by_itself = np.where(np.isnan(self._ended), np.inf, self._ended) <= returned
        if rule.work in self._steps and rule.caller == "waits":
            # A step that has not begun by the deadline never does, however short it is.
            steps = self._steps[rule.work]
            begun = np.where(np.isinf(steps["started"]), -np.inf, steps["started"])
            by_itself &= (self._ended <= deadlines) | (steps.max(begun) <= deadlines)
        outcome = np.where(by_itself, self._outcome, _ENDING["timed_out"]).astype(np.int8)
        if rule.returns_result:
            has_result = self._result_from <= np.minimum(stop, returned)
            if rule.work in self._steps:
                # What a step would have brought that had not begun by the deadline is not there.
                has_result &= self._result_step_from(self._steps[rule.work]) <= deadlines
            outcome[~by_itself & has_result] = _ENDING["partial"]
        if rule.tells_late:
            outcome[by_itself & (returned > deadlines)] = _ENDING["timed_out"]
        outcome[~is_seen] = _ENDING["unfinished"]
        return outcome


def _notice_s(phase: Any, since_start: Floats) -> Floats | float:
    """Seconds until a server that ends its work at once notices; as `ServerBehaviour.delay_s`."""
    if phase.checks_every_s is None:
        return float(phase.delay_s or 0.0)
    checks = np.floor(since_start / phase.checks_every_s) + 1
    return np.asarray(checks * phase.checks_every_s - since_start)
