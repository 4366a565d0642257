"""The three tidy tables: what a row is, which columns it has, and what each column means.

    calls    one attempt of one call, as the client or as the server saw it
    runs     one question answered, or not, under one alternative
    events   something that happened in a run at an instant

`data_dictionary` describes them; docs/data-dictionary.md has it. Instants are seconds since the run's start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from docmind_lab.errors import RecordError

SCHEMA_VERSION: Final = 2

CallOutcome = Literal["ok", "timeout", "cancelled", "error", "abandoned", "refused"]
RunOutcome = Literal["answered", "partial", "timed_out", "failed", "unfinished"]

CALL_OUTCOMES: Final = ("ok", "timeout", "cancelled", "error", "abandoned", "refused")
RUN_OUTCOMES: Final = ("answered", "partial", "timed_out", "failed", "unfinished")
TIMEOUT_REASONS: Final = (
    "deadline",
    "budget_refused",
    "hard_timeout",
    "cancelled",
    "stop_flag",
    "step_timeout",
    "node_timeout",
    "left_behind",
)
"""Stop reasons that mean that the budget ended the run."""

SPENDING_REASONS: Final = ("token_budget", "call_budget", "cost_budget")
"""Stop reasons that mean that a second budget ended the run."""

STOP_REASONS: Final = ("", *TIMEOUT_REASONS, *SPENDING_REASONS, "step_limit", "no_agent", "error", "horizon")
NAN: Final = math.nan

Kind = Literal["text", "level", "float", "int", "bool", "maybe_bool"]
_DTYPES: Final[Mapping[str, str]] = {
    "text": "str",
    "level": "category",
    "float": "float64",
    "int": "int64",
    "bool": "bool",
    "maybe_bool": "boolean",
}


@dataclass(frozen=True)
class Column:
    """One column: its name, kind, and what it means. levels: the values a categorical may take, () for open ones.

    since: the schema version that it came with. before: its value in tables of older versions, which lack it.
    """

    name: str
    kind: Kind
    meaning: str
    levels: tuple[str, ...] = ()
    since: int = 1
    before: str | float | None = None


@dataclass(frozen=True)
class CallRecord:
    """One attempt of one call. NaN: did not happen, or cannot be known."""

    study_id: str
    run_id: str
    call_id: str
    parent_call_id: str
    attempt: int
    seen_from: Literal["client", "server"]
    workload: str
    alternative: str
    role: str
    step: str
    kind: str
    started_at_s: float
    first_byte_at_s: float
    ended_at_s: float
    latency_s: float
    queue_wait_s: float
    timeout_s: float
    remaining_at_start_s: float
    overrun_s: float
    outcome: CallOutcome
    started_after_deadline: bool
    ended_after_return: bool
    input_tokens: float
    output_tokens: float
    error_type: str


@dataclass(frozen=True)
class EventRecord:
    """One event. detail: a JSON object of names and numbers; never text of a user or a document."""

    study_id: str
    run_id: str
    at_s: float
    event: str
    role: str
    detail: str


@dataclass(frozen=True)
class RunRecord:
    """One run."""

    study_id: str
    run_id: str
    workload: str
    alternative: str
    alternative_options: str
    seed: int
    question_id: str
    decision_timeout_s: float
    horizon_s: float
    deadline_propagation: bool
    router_injection: bool
    retries: str
    latency_profile: str
    fault: str
    stops_on_disconnect: bool
    node_colour: str
    clock: str
    returned_at_s: float
    quiescent_at_s: float
    work_censored: bool
    caller_overrun_s: float
    work_overrun_s: float
    outcome: RunOutcome
    answered_in_time: bool
    stop_reason: str
    llm_calls: int
    retrieval_calls: int
    calls_after_deadline: float
    busy_after_deadline_s: float
    tokens_after_deadline: float
    late_checkpoints: int
    threads_left: int
    propagation_coverage: float
    documents_count: int
    source_recall: float
    recall_at_deadline: float
    answer_score: float
    coordination_overhead_s: float
    second_budgets: str = "none"
    token_budget: float = NAN
    call_budget: float = NAN
    cost_budget: float = NAN
    tokens_spent: float = NAN
    calls_spent: float = NAN
    cost_spent: float = NAN
    tokens_overspent: float = NAN
    calls_overspent: float = NAN
    cost_overspent: float = NAN


_CALL_COLUMNS: Final = (
    Column("study_id", "text", "The study that the row belongs to."),
    Column("run_id", "text", "The run; key of `runs`."),
    Column("call_id", "text", "The logical call within the run; its attempts share it."),
    Column("parent_call_id", "text", "The call that this one was made inside of; empty at the top."),
    Column(
        "attempt",
        "int",
        "Number of the request within its call: retries of the client and ours, and the requests of one search.",
    ),
    Column(
        "seen_from",
        "level",
        "client: timed at the network seam; server: from the service's own log.",
        ("client", "server"),
    ),
    Column("workload", "level", "The system under the deadline."),
    Column("alternative", "level", "How the deadline was enforced."),
    Column("role", "level", "Who made the call."),
    Column("step", "text", "Logical position: handoff ordinal . fan-out index . ordinal within the role."),
    Column("kind", "level", "What was called.", ("llm", "retrieval", "tool", "peer")),
    Column(
        "started_at_s",
        "float",
        "Client: the request was made, before any wait for a connection. Server: it was received.",
    ),
    Column("first_byte_at_s", "float", "First byte of the response, received or sent; NaN if there was none."),
    Column(
        "ended_at_s",
        "float",
        "Client: last byte, or the error. Server: the last thing done for it. NaN if not by the horizon.",
    ),
    Column("latency_s", "float", "ended_at_s − started_at_s."),
    Column("queue_wait_s", "float", "Client: waiting for a pooled connection. Server: waiting for a slot."),
    Column("timeout_s", "float", "The cap that the attempt was given; NaN if none. Client rows."),
    Column("remaining_at_start_s", "float", "Decision timeout left when it started; negative after the deadline."),
    Column("overrun_s", "float", "Seconds of ended_at_s past the deadline, 0 before it; NaN if it has not ended."),
    Column(
        "outcome",
        "level",
        "abandoned: unended when the caller had its answer. refused: not started, no budget left.",
        CALL_OUTCOMES,
    ),
    Column("started_after_deadline", "bool", "started_at_s > decision timeout."),
    Column("ended_after_return", "bool", "Ended after the caller had its answer, or not at all by the horizon."),
    Column("input_tokens", "float", "Tokens of the request; NaN where not known."),
    Column("output_tokens", "float", "Client: as the response says. Server: as generated, also when nobody listened."),
    Column("error_type", "text", "Name of the exception, or HTTP and the status; empty without an error."),
)

_EVENT_COLUMNS: Final = (
    Column("study_id", "text", "The study that the row belongs to."),
    Column("run_id", "text", "The run; key of `runs`."),
    Column("at_s", "float", "When it happened."),
    Column("event", "level", "What happened: see the list of events below."),
    Column("role", "level", "Who it happened to; empty for the run as a whole."),
    Column("detail", "text", "A JSON object of names and numbers; never text of a user or a document."),
)


def _since_2(name: str, meaning: str) -> Column:
    return Column(name, "float", meaning, since=2, before=NAN)


_RUN_COLUMNS: Final = (
    Column("study_id", "text", "The study that the row belongs to."),
    Column("run_id", "text", "The run; the key of this table."),
    Column("workload", "level", "The system under the deadline."),
    Column("alternative", "level", "How the deadline was enforced."),
    Column("alternative_options", "text", "A JSON object: the options of the alternative that are not the default."),
    Column("seed", "int", "Keys every draw of latency and fault; the same for all alternatives of one question."),
    Column("question_id", "level", "The question asked."),
    Column("decision_timeout_s", "float", "The budget; the deadline is this long after the run's start."),
    Column("horizon_s", "float", "How long the run was observed at most."),
    Column("deadline_propagation", "bool", "Whether `deadline_ts` was in the graph's state."),
    Column(
        "router_injection", "bool", "Whether an injected router engine was to be asked first; events tell what it gave."
    ),
    Column(
        "retries",
        "level",
        "Who retries: sdk:N (the clients), budgeted:N (ours, within the budget), workload:N (the workload's own loop, "
        "with budgeted:N inside it where both stand), own (your graph).",
    ),
    Column(
        "latency_profile",
        "level",
        "Where the latencies of the simulated services come from: a profile, or recorded (a replay); empty for live "
        "ones.",
    ),
    Column("fault", "level", "The faults injected; none without."),
    Column("stops_on_disconnect", "bool", "Whether the model server stops generating when its client goes away."),
    Column(
        "node_colour",
        "level",
        "What the alternative called in the nodes: sync, async, or blocking_async (coroutines that block the loop).",
    ),
    Column("clock", "level", "wall or virtual."),
    Column("returned_at_s", "float", "The caller had its answer; NaN if not by the horizon."),
    Column(
        "quiescent_at_s",
        "float",
        "Last of: a server's last byte or token, a checkpoint put, the end of a call, node or worker thread.",
    ),
    Column("work_censored", "bool", "Still busy at the horizon: quiescent_at_s is then a lower bound."),
    Column("caller_overrun_s", "float", "Positive part of returned − deadline; NaN if unfinished."),
    Column("work_overrun_s", "float", "Positive part of quiescent − deadline; a lower bound if work_censored."),
    Column(
        "outcome",
        "level",
        "answered, partial (documents or a draft), timed_out (nothing), failed (an error, or a second budget spent "
        "with nothing to show), unfinished.",
        RUN_OUTCOMES,
    ),
    Column("answered_in_time", "bool", "Answered, and returned by the deadline."),
    Column("stop_reason", "level", "Why a run stopped short; empty for an ordinary end.", STOP_REASONS),
    Column("llm_calls", "int", "LLM attempts that were started (client rows)."),
    Column("retrieval_calls", "int", "Retrieval attempts that were started (client rows)."),
    Column(
        "calls_after_deadline",
        "float",
        "Requests that a server received after the deadline (server rows); NaN without a server log.",
    ),
    Column(
        "busy_after_deadline_s", "float", "Server seconds spent after the deadline, requests added up (server rows)."
    ),
    Column("tokens_after_deadline", "float", "Tokens generated after the deadline (server rows)."),
    Column("late_checkpoints", "int", "Checkpoints put after the caller had its answer."),
    Column("threads_left", "int", "Threads still inside the run's work when observation ended."),
    Column(
        "propagation_coverage",
        "float",
        "Share of LLM and retrieval attempts that carried a cap from the deadline; NaN if not propagated.",
    ),
    Column("documents_count", "int", "Documents returned to the caller."),
    Column(
        "source_recall", "float", "Gold topics among the sources returned; 0 when none came back, NaN without gold."
    ),
    Column("recall_at_deadline", "float", "The same over everything retrieved by the deadline."),
    Column("answer_score", "float", "Share of gold facts stated with a citation that supports them; NaN without gold."),
    Column(
        "coordination_overhead_s",
        "float",
        "Returned minus the union of LLM and retrieval intervals; answered runs on the wall clock, alone.",
    ),
    Column(
        "second_budgets",
        "level",
        "The budgets beside time, such as 6000 tokens, 12 calls; none without.",
        (),
        2,
        "none",
    ),
    _since_2("token_budget", "Tokens that the run was to use at most; NaN without a limit."),
    _since_2("call_budget", "Requests to the model that the run was to make at most; NaN without a limit."),
    _since_2("cost_budget", "What the run was to cost at most, in the currency of the price; NaN without a limit."),
    _since_2("tokens_spent", "Tokens read and written, as responses count them (client rows); a lower bound."),
    _since_2("calls_spent", "Requests to the model, retries included (client rows); those after the return count too."),
    _since_2("cost_spent", "Price of tokens_spent; NaN without a price."),
    _since_2("tokens_overspent", "Positive part of tokens_spent − token_budget."),
    _since_2("calls_overspent", "Positive part of calls_spent − call_budget."),
    _since_2("cost_overspent", "Positive part of cost_spent − cost_budget."),
)

TABLES: Final[Mapping[str, tuple[type[Any], tuple[Column, ...]]]] = {
    "calls": (CallRecord, _CALL_COLUMNS),
    "runs": (RunRecord, _RUN_COLUMNS),
    "events": (EventRecord, _EVENT_COLUMNS),
}

EVENTS: Final[Mapping[str, str]] = {
    "run_started": "The budget began.",
    "deadline": "The deadline fell, by the plan of the run.",
    "stop_requested": "The stop flag was raised.",
    "node_started": "A graph node began. detail: node.",
    "thread_started": "A thread began what an event loop or a node had handed to it. detail: node.",
    "attempt_started": "A request was made. detail: kind, call_id, attempt, capped (by the deadline).",
    "refused": "A call was refused: a budget was used up. detail: kind; budget if not time (tokens, calls, cost).",
    "retry": "A failed attempt is tried again within the budget. detail: kind, attempt, wait_s.",
    "tokens_generated": "A server generated tokens. detail: begun_at_s, tokens, call_id, attempt.",
    "deadline_cut": "A call was cut by the deadline. detail: kind, source.",
    "reply_cut": "A reply was cut at the tokens that a second budget had left. detail: kind, budget, tokens.",
    "usage_missing": "A response did not say what it used: tokens and cost could not be charged. detail: kind.",
    "allotment_spent": "A role's part of the budget was used up; the run goes on without it. detail: allotted_s.",
    "retrieved": "Documents were found. detail: ids, topics, strategy, router_used.",
    "router_fallback": "An injected router gave no documents; explicit retrieval follows. detail: reason, error_type.",
    "router_refused": "An injected router was not used: its endpoint is not admitted. detail: error_type.",
    "router_abandoned": "A router's thread is waited for no longer and keeps running. detail: share (of the budget).",
    "call_ended": "A call of an agent was over, retries and waits included. detail: kind, call_id, begun_at_s.",
    "handoff_refused": "A handoff was refused. detail: agent, reason.",
    "thread_ended": "It was done, which a cancellation does not hasten. detail: node, begun_at_s.",
    "node_ended": "A graph node ended. detail: node, outcome (ok, error).",
    "checkpoint_put": "A checkpoint was put. detail: step.",
    "checkpoint_blocked": "A fence kept a checkpoint of an old run out of its thread. detail: step.",
    "returned": "The caller had its answer.",
    "quiet": "Nothing of the run was at work any more.",
    "horizon": "Observation ended while the run was still at work.",
}
"""What an event means. Events of one instant stand in this order, so that no table tells who was scheduled first."""


def to_frame(table: str, records: Iterable[Any]) -> pd.DataFrame:
    """A table's frame with its documented dtypes, one row per record; also for no records at all."""
    record_type, columns = TABLES[table]
    rows: Sequence[Any] = list(records)
    data = {column.name: [getattr(row, column.name) for row in rows] for column in columns}
    assert {field.name for field in fields(record_type)} == set(data)
    return typed(table, pd.DataFrame(data))


def typed(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the table's columns in order and their dtypes; columns that came later filled up in older ones.

    Raises: RecordError naming the columns that are missing.
    """
    _, columns = TABLES[table]
    later = {column.name: column.before for column in columns if column.since > 1 and column.name not in frame}
    frame = frame.assign(**later) if later else frame
    missing = [column.name for column in columns if column.name not in frame]
    if missing:
        raise RecordError(f"table {table} has no column {', '.join(missing)}; it was not written by this package")
    result = {column.name: _typed_column(frame[column.name], column) for column in columns}
    return pd.DataFrame(result)


def _typed_column(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    if column.kind == "level" and isinstance(values.dtype, pd.CategoricalDtype):
        # As files hold them. Only the few levels are looked at, and the rows take over their numbers.
        used = values.cat.remove_unused_categories()
        named = used.cat.rename_categories([str(level) for level in used.cat.categories]).cat.as_unordered()
        return named.cat.set_categories(list(column.levels) or sorted(named.cat.categories))
    if column.kind == "level":
        text = values.astype("str")
        levels = list(column.levels) or sorted(text.unique())
        return pd.Series(pd.Categorical(text, categories=levels), index=values.index)
    return values.astype(_DTYPES[column.kind])  # type: ignore[call-overload,no-any-return]


def concatenated(table: str, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames of one table below each other, dtypes kept (levels are united)."""
    if not frames:
        return to_frame(table, [])
    plain = [frame.astype(dict.fromkeys(frame.select_dtypes("category"), "str")) for frame in frames]
    return typed(table, pd.concat(plain, ignore_index=True))


def positive_part(value: float) -> float:
    """max(0, value); NaN stays NaN."""
    return value if np.isnan(value) else max(0.0, value)


def column_rows(columns: Iterable[Column]) -> list[str]:
    """Columns as the lines of a Markdown table."""
    lines = ["| column | dtype | meaning |", "|---|---|---|"]
    for column in columns:
        levels = f" Levels: {', '.join(level or '(empty)' for level in column.levels)}." if column.levels else ""
        lines.append(f"| `{column.name}` | {_DTYPES[column.kind]} | {column.meaning}{levels} |")
    return lines


def data_dictionary() -> str:
    """The tables, columns, units and events as Markdown."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}. Written by `make docs` from the code; do not edit.",
        "Names ending in `_at_s` are instants in seconds since the run's start, `_s` durations in seconds.",
    ]
    for table, (record_type, columns) in TABLES.items():
        first_line = (record_type.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"## `{table}`", "", first_line, "", *column_rows(columns)]
    lines += ["", "## Events", "", "| event | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in EVENTS.items()]
    return "\n".join(lines) + "\n"
