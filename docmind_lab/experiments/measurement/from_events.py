"""Columns of a run that follow from its events: tokens after the deadline, coverage, recall, scores, overhead."""

from __future__ import annotations

from collections.abc import Iterable

from docmind_lab.core.levels import NAN
from docmind_lab.network.recorder import time_outside
from docmind_lab.tables.records import EventRecord


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
