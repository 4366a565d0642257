"""Columns of a run that follow from its events: tokens after the deadline, coverage, recall, scores, errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import ENDED_UNANSWERED, NAN, RunOutcome
from docmind_lab.network.recorder import time_outside
from docmind_lab.tables.records import CallRecord, EventRecord

# What LangGraph raises in a node that waits for a person.
_ERROR_OF_INTERRUPT = "GraphInterrupt"


def tokens_after(events: Iterable[EventRecord], deadline_s: float) -> float:
    """Count the tokens generated after the deadline; token i of n comes at begun + span × i / n."""
    after = 0
    for event in events:
        if event.event != "tokens_generated":
            continue
        begun_at_s, tokens = event.detail["begun_at_s"], event.detail["tokens"]
        span_s = event.at_s - begun_at_s
        if event.at_s <= deadline_s:
            continue
        before = int(tokens * max(0.0, deadline_s - begun_at_s) / span_s) if span_s > 0 else 0
        after += tokens - before
    return float(after)


def coverage(events: Iterable[EventRecord]) -> float:
    """Return the share of attempts that carried a cap from the deadline; NaN without any."""
    attempts = [event.detail for event in events if event.event == "attempt_started"]
    capped = [bool(attempt["capped"]) for attempt in attempts if attempt["kind"] in ("llm", "retrieval")]
    return sum(capped) / len(capped) if capped else NAN


def recall_at_deadline(events: Iterable[EventRecord], gold_topics: tuple[str, ...], deadline_s: float) -> float:
    """Return the share of gold topics among what was retrieved by the deadline; NaN without gold."""
    if not gold_topics:
        return NAN
    topics: set[str] = set()
    for event in events:
        if event.event == "retrieved" and event.at_s <= deadline_s:
            topics.update(event.detail["topics"])
    return len(topics.intersection(gold_topics)) / len(set(gold_topics))


def mean_score(events: Iterable[EventRecord], deadline_s: float) -> float:
    """Return the mean score, over the time until the deadline, of what there was to return."""
    area, score, since_s = 0.0, 0.0, 0.0
    for event in sorted(events, key=lambda each: each.at_s):
        if event.event == "result_scored" and event.at_s < deadline_s:
            area += score * (event.at_s - since_s)
            score, since_s = event.detail.get("score", 0.0), event.at_s
    return (area + score * (deadline_s - since_s)) / deadline_s


def coordination_overhead(events: Iterable[EventRecord], returned_at_s: float) -> float:
    """Return the seconds until the return without a call of an agent under way."""
    ended = [(event.detail["begun_at_s"], event.at_s) for event in events if event.event == "call_ended"]
    return time_outside(ended, returned_at_s)


def error_columns(
    outcome: RunOutcome, error_type: str, client: Iterable[CallRecord], events: Iterable[EventRecord]
) -> dict[str, Any]:
    """Return the columns of the error that ended a run: its type, its node, the attempt of a call that it came from."""
    if outcome not in ENDED_UNANSWERED:
        return {}
    failed = outcome == "failed"
    raised = error_type if failed else _ERROR_OF_INTERRUPT
    ended = (event for event in events if event.event == "node_ended")
    # The innermost node: an agent's node ends before the node that holds it.
    raising = next((each for each in ended if raised and each.detail.get("outcome") == raised), None)
    columns: dict[str, Any] = {"error_type": error_type} if failed else {}
    if raising is None:
        return columns
    return columns | {
        "error_node": str(raising.detail["node"]),
        "error_attempt": _failed_attempt(raising, client) if failed else 0,
    }


def _failed_attempt(raised: EventRecord, client: Iterable[CallRecord]) -> int:
    """Return the number of the attempt that failed as a node raised; 0 where the node's last call did not."""
    ended = [call for call in client if call.role == raised.role and call.ended_at_s <= raised.at_s]
    last = max(ended, key=lambda call: (call.ended_at_s, call.attempt), default=None)
    if last is None or not last.error_type or raised.at_s - last.ended_at_s > HELD_WITHIN_S:
        return 0
    return last.attempt
