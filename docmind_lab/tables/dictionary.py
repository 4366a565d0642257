"""The data dictionary: tables, columns and events with their meanings, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.text import markdown_table
from docmind_lab.tables.records import DTYPES, TABLES, Column

EVENTS: Final[Mapping[str, str]] = {
    "run_started": "The budget began.",
    "deadline": "The deadline fell, by the plan of the run.",
    "stop_requested": "The stop flag was raised.",
    "node_started": "A graph node began. detail: node.",
    "tool_started": "A tool of the user's graph began. detail: tool (its name).",
    "thread_started": "A thread began what an event loop or a node had handed to it. detail: node.",
    "attempt_started": "A request was made. detail: kind, call_id, attempt, capped (by the deadline).",
    "refused": "A call was refused. detail: kind; budget if it was not time (tokens, calls, cost).",
    "hedged": "A second request was sent for a call that took long. detail: kind, after_s.",
    "retry": "A failed attempt is tried again within the budget. detail: kind, attempt, wait_s.",
    "wound_down": "Little time was left, so a role lost its tools or began no further search. detail: left_s.",
    "tokens_generated": "A server generated tokens. detail: begun_at_s, tokens, call_id, attempt.",
    "deadline_cut": "A call was cut by the deadline. detail: kind, source.",
    "reply_cut": "A reply was cut at the tokens that a second budget had left. detail: kind, budget, tokens.",
    "usage_missing": "A response did not say what it used: tokens and cost could not be charged. detail: kind.",
    "allotment_spent": "A role's part of the budget was used up; the run goes on without it. detail: allotted_s.",
    "retrieved": "Documents were found. detail: ids, topics, strategy, router_used.",
    "result_available": "The run first had something to return: documents or text.",
    "result_scored": "What a caller who is cut from now on has was better or worse than before. detail: recall, score.",
    "router_fallback": "An injected router gave no documents; explicit retrieval follows. detail: reason, error_type.",
    "router_refused": "An injected router was not used: its endpoint is not admitted. detail: error_type.",
    "router_abandoned": "A router's thread is waited for no longer and keeps running. detail: share (of the budget).",
    "call_ended": "A call of an agent was over, retries and waits included. detail: kind, call_id, begun_at_s.",
    "handoff_refused": "A handoff was refused. detail: agent, reason.",
    "thread_ended": "It was done, which a cancellation does not hasten. detail: node, begun_at_s.",
    "node_ended": "A graph node ended. detail: node, outcome (ok, error), begun_at_s.",
    "loop_blocked": "A caller left a run whose event loop stood still; one that awaits it could not. detail: line.",
    "interrupt_answered": "An interrupt was answered, and the run goes on. detail: interrupts, left (answers).",
    "error_in_state": "The graph came to its end with an error of its own in its state. detail: key.",
    "output_not_set": "The graph came to its end without a value of an output that it declares. detail: key.",
    "checkpoint_put": "A checkpoint was put. detail: step.",
    "checkpoint_blocked": "A fence kept a checkpoint of an old run out of its thread. detail: step.",
    "answer_made_up": "A request was answered by what the service does not have, or in a guessed shape. detail: of.",
    "fault_met": "A fault of a service struck a request. detail: fault, call_id, attempt.",
    "returned": "The caller returned, with an answer or without.",
    "quiet": "Nothing of the run was at work any more.",
    "horizon": "Observation ended while the run was still at work.",
}
"""What an event means. Events of one instant stand in this order, so that no table tells who was scheduled first."""


def column_table(columns: Iterable[Column]) -> str:
    """Return columns with their dtypes and meanings as a Markdown table."""
    rows = []
    for column in columns:
        levels = f" Levels: {', '.join(level or '(empty)' for level in column.levels)}." if column.levels else ""
        rows.append((f"`{column.name}`", DTYPES[column.kind], f"{column.meaning}{levels}"))
    return markdown_table(("column", "dtype", "meaning"), rows, left=range(3))


def event_table(events: Mapping[str, str]) -> str:
    """Return events with their meanings as a Markdown table."""
    return markdown_table(("event", "meaning"), ((f"`{name}`", text) for name, text in events.items()), left=range(2))


def common_dictionary() -> str:
    """Return the tables, columns, units and events as Markdown."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}. Written by `make docs` from the code; do not edit.",
        "Names ending in `_at_s` are instants in seconds since the run's start, `_s` durations in seconds.",
    ]
    for table, (record_type, columns) in TABLES.items():
        first_line = (record_type.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"## `{table}`", "", first_line, "", column_table(columns)]
    return "\n".join([*lines, "", "## Events", "", event_table(EVENTS)]) + "\n"
