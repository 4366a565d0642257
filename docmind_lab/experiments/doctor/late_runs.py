"""Where a late run lost its time: in which node, to which cause, and in which call.

Everything is read off the tables of the run: its calls, its nodes, and what its event loop had handed to threads. An
overrun that nothing explains is one of the graph as a whole, and still an overrun.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from docmind_lab.core.alternative_catalogue import CATALOGUE, level_and_variant
from docmind_lab.core.text import node_in_words
from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.records import CallRecord

Cause = Literal["call", "per_read", "retries", "code", "blocks_loop", "thread", "no_context", "uncancelled", "graph"]

TimeSpan = tuple[float, float]


def length_of(interval: TimeSpan) -> float:
    """Return the length of an interval in seconds."""
    return interval[1] - interval[0]


def length_s(intervals: Iterable[TimeSpan]) -> float:
    """Return the seconds that the union of the intervals covers."""
    return sum(to - start for start, to in union(intervals))


def union(intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the intervals in order, with those that touch merged."""
    made: list[TimeSpan] = []
    for start, to in sorted(intervals):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], to))
        elif to > start:
            made.append((start, to))
    return made


def within(intervals: Iterable[TimeSpan], start: float, to: float) -> list[TimeSpan]:
    """Return the parts of the intervals that lie between two instants."""
    clipped = ((max(start, from_s), min(to, until_s)) for from_s, until_s in intervals)
    return [(from_s, until_s) for from_s, until_s in clipped if until_s > from_s]


def without(whole: TimeSpan, intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the parts of an interval that no other interval covers; one of length 0 still divides it."""
    made, at = [], whole[0]
    for start, to in sorted(intervals):
        if start > whole[1] or to < whole[0]:
            continue
        if start > at:
            made.append((at, start))
        at = max(at, to)
    if whole[1] > at:
        made.append((at, whole[1]))
    return made


@dataclass(frozen=True)
class Overrun:
    """A run in which work, or the wait of its caller, lasted past the deadline.

    caller_s, work_s: how long the caller waited past the deadline, and how long anything went on past it, seconds;
    lower bounds if the caller `is_unfinished`, or the work `is_censored`, at the horizon. node: where most of that was.
    call_id: of the call that was under way, or that had failed and was to be tried again; empty where there was none.
    Its instants are in seconds since the run's start. blocked_at: the line of code that blocked the event loop, where E
    left it behind; empty if it is not known.
    """

    trial: Trial
    run_id: str
    node: str
    cause: Cause
    call_id: str
    call_started_at_s: float
    call_ended_at_s: float
    caller_s: float
    work_s: float
    is_censored: bool
    is_unfinished: bool = False
    blocked_at: str = ""

    @property
    def worst_s(self) -> float:
        """The longer of the caller's overrun and the work's, seconds."""
        return max(self.caller_s, self.work_s)

    def what_ate_it(self) -> str:
        """Name the call, or the code, that took the time, in words."""
        node = node_in_words(self.node) if self.node else "no node"
        if not self.call_id:
            line = f", at {self.blocked_at}" if self.blocked_at else ""
            return f"code of {node} outside every call{line}" if self.node else "work outside every node"
        if self.cause == "retries":
            return f"the wait in {node} after call {self.call_id} had failed at {self.call_ended_at_s:.3f} s"
        ended = "was still under way at the horizon"
        if not math.isnan(self.call_ended_at_s):
            ended = f"ended at {self.call_ended_at_s:.3f} s"
        return f"call {self.call_id} in {node}, which began at {self.call_started_at_s:.3f} s and {ended}"


def requests_of(measured: MeasuredRun) -> list[CallRecord]:
    """Return the attempts that reached a server, as the client saw them: what a deadline can cut."""
    arrived = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "server"}
    return [call for call in measured.calls if call.seen_from == "client" and (call.call_id, call.attempt) in arrived]


def span_of(call: CallRecord) -> TimeSpan:
    """Return the interval from the call's start to its end; the end is infinite if the call never ended."""
    return call.started_at_s, math.inf if math.isnan(call.ended_at_s) else call.ended_at_s


def cut_behind(measured: MeasuredRun) -> set[str]:
    """Return the nodes whose requests the deadline cut after the run had been answered."""
    run = measured.run
    return {
        call.role
        for call in requests_of(measured)
        if run.outcome == "answered" and call.cut_by == "deadline" and call.ended_at_s > run.returned_at_s
    }


def spans_of(measured: MeasuredRun, what: Literal["thread", "node"]) -> defaultdict[str, list[TimeSpan]]:
    """Return for each role when threads ran its work, or when its outermost nodes were at work or about to try again.

    The end is infinite for what was never done.
    """
    under_way: Counter[tuple[str, float]] = Counter()
    made: defaultdict[str, list[TimeSpan]] = defaultdict(list)
    failed_at_s: dict[str, float] = {}
    for event in measured.events:
        if event.event not in (f"{what}_started", f"{what}_ended"):
            continue
        detail = event.detail
        if what == "node" and "/" in detail["node"]:
            continue
        if event.event == f"{what}_started":
            under_way[event.role, event.at_s] += 1
            # A RetryPolicy waits between its tries.
            made[event.role].append((failed_at_s.pop(event.role, event.at_s), event.at_s))
        else:
            under_way[event.role, detail["begun_at_s"]] -= 1
            made[event.role].append((detail["begun_at_s"], event.at_s))
            if detail.get("outcome", "ok") != "ok":
                failed_at_s[event.role] = event.at_s
    if measured.run.work_censored or measured.run.outcome == "unfinished":
        under_way.update(failed_at_s.items())
    for role, begun_at_s in under_way.elements():
        made[role].append((begun_at_s, math.inf))
    return made


def overrun_of(
    trial: Trial,
    measured: MeasuredRun,
    *,
    is_async: bool,
    blocking: Iterable[str],
    slack_s: float,
    is_held: bool = True,
) -> Overrun | None:
    """Return the run's overrun; None if it is within the slack.

    blocking: nodes that block an event loop. is_held: whether a deadline that travels reaches the requests of no node.
    """
    run = measured.run
    due_s, horizon_s = run.decision_timeout_s, run.horizon_s
    is_unfinished = run.outcome == "unfinished"
    caller_s = horizon_s - due_s if is_unfinished else run.caller_overrun_s
    work_s = max(run.work_overrun_s, caller_s)
    if work_s <= slack_s:
        return None
    late = due_s, due_s + work_s
    requests = requests_of(measured)
    asked = _by_role((call.role, span_of(call)) for call in requests)
    calls = [call for call in measured.calls if call.seen_from == "client"]
    called = _by_role((call.role, span_of(call)) for call in calls)
    at_work, threads = spans_of(measured, "node"), spans_of(measured, "thread")
    roles = {role for role in (*asked, *called, *at_work, *threads) if role}
    covered = {role: length_s(within(at_work[role] + called[role] + threads[role], *late)) for role in sorted(roles)}
    node = max(covered, key=lambda role: covered[role], default="")
    # A request of no node that no deadline reaches: its thread was started without the context of the node.
    alone_s = 0.0 if is_held else length_s(within(asked[""], *late))
    failed = failed_last(requests, node, due_s)
    cause: Cause = "no_context" if alone_s > 0 else "graph"
    if not node or not covered[node]:
        node = ""
    else:
        half_s, of_blocking = covered[node] / 2, set(blocking)
        in_http, in_thread = (length_s(within(spans[node], *late)) >= half_s for spans in (asked, threads))
        if alone_s >= half_s and not in_http:
            cause = "no_context"
        elif is_async and in_thread:
            cause = "thread"
        elif is_async and node in of_blocking:
            cause = "blocks_loop"
        elif (
            is_async
            and CATALOGUE[level_and_variant(trial.alternative)[0]].cancels
            and length_s(within(at_work[node], *late)) >= half_s
            and not any(within(at_work[other], *late) for other in of_blocking)
        ):
            cause = "uncancelled"
        elif in_http:
            cause = "per_read" if trial.alternative.endswith(":per_read") else "call"
        else:
            cause = "retries" if failed else "code"
    eaten = failed[-1] if cause == "retries" else _longest_call(calls, "" if cause == "no_context" else node, late)
    return Overrun(
        trial=trial,
        run_id=run.run_id,
        node=node,
        cause=cause,
        call_id="" if eaten is None else eaten.call_id,
        call_started_at_s=math.nan if eaten is None else eaten.started_at_s,
        call_ended_at_s=math.nan if eaten is None else eaten.ended_at_s,
        caller_s=caller_s,
        work_s=work_s,
        is_censored=is_unfinished or run.work_censored,
        is_unfinished=is_unfinished,
    )


def failed_last(requests: Iterable[CallRecord], node: str, due_s: float) -> list[CallRecord]:
    """Return the requests of a node that had failed by the deadline, and none of whose visit had begun since."""
    begun = [call for call in requests if call.role == node and call.started_at_s <= due_s]
    begun.sort(key=lambda call: call.started_at_s)
    made = []
    for place, call in enumerate(begun):
        visit, ended_at_s = call.step.rpartition(".")[0], span_of(call)[1]
        since = (each for each in begun[place + 1 :] if each.step.rpartition(".")[0] == visit)
        if call.outcome != "ok" and ended_at_s <= due_s and all(each.started_at_s < ended_at_s for each in since):
            made.append(call)
    return sorted(made, key=lambda call: call.ended_at_s)


def _longest_call(calls: Iterable[CallRecord], node: str, late: TimeSpan) -> CallRecord | None:
    """Return the node's call that filled most of the late interval; a request comes before the tool that sent it."""
    under_way = [call for call in calls if call.role == node and within([span_of(call)], *late)]
    return max(
        under_way, key=lambda call: (length_s(within([span_of(call)], *late)), call.kind != "tool"), default=None
    )


def _by_role(pairs: Iterable[tuple[str, TimeSpan]]) -> defaultdict[str, list[TimeSpan]]:
    made: defaultdict[str, list[TimeSpan]] = defaultdict(list)
    for role, interval in pairs:
        made[role].append(interval)
    return made
