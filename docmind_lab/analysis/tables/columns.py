"""The columns of each table: name, kind, and what each means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from docmind_lab.analysis.tables.rows import CallRecord, EventRecord, RunRecord
from docmind_lab.core.levels import CALL_OUTCOMES, NAN, RUN_OUTCOMES, STOP_REASONS

Kind = Literal["text", "level", "float", "int", "bool", "maybe_bool"]
DTYPES: Final[Mapping[str, str]] = {
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


STUDY_ID: Final = Column("study_id", "text", "The study that the row belongs to.")
RUN_ID: Final = Column("run_id", "text", "The run; key of `runs`.")
ALTERNATIVE: Final = Column("alternative", "level", "How the deadline was enforced.")
"""Whose row it is: columns that tables share, those of workloads too."""

_WORKLOAD: Final = Column("workload", "level", "The system under the deadline.")

_CALL_COLUMNS: Final = (
    STUDY_ID,
    RUN_ID,
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
    _WORKLOAD,
    ALTERNATIVE,
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
        "abandoned: unended when the caller returned. refused: not started, no budget left.",
        CALL_OUTCOMES,
    ),
    Column("started_after_deadline", "bool", "started_at_s > decision timeout."),
    Column("ended_after_return", "bool", "Ended after the caller returned, or not at all by the horizon."),
    Column("input_tokens", "float", "Tokens of the request; NaN where not known."),
    Column("output_tokens", "float", "Client: as the response says. Server: as generated, also when nobody listened."),
    Column("error_type", "text", "Name of the exception, or HTTP and the status; empty without an error."),
)

_EVENT_COLUMNS: Final = (
    STUDY_ID,
    RUN_ID,
    Column("at_s", "float", "When it happened."),
    Column("event", "level", "What happened: see the list of events below."),
    Column("role", "level", "Who it happened to; empty for the run as a whole."),
    Column("detail", "text", "A JSON object of names and numbers; never text of a user or a document."),
)


def _since_2(name: str, meaning: str) -> Column:
    return Column(name, "float", meaning, since=2, before=NAN)


_RUN_COLUMNS: Final = (
    STUDY_ID,
    Column("run_id", "text", "The run; the key of this table."),
    _WORKLOAD,
    ALTERNATIVE,
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
    Column("returned_at_s", "float", "The caller returned, with an answer or without; NaN if not by the horizon."),
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
    Column("late_checkpoints", "int", "Checkpoints put after the caller returned."),
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
    Column("error_type", "text", "Name of the exception that a failed run ended with; else empty.", since=3, before=""),
    Column(
        "error_node",
        "text",
        "The graph node that raised it, its agents' nodes after a slash; empty where no node did.",
        since=3,
        before="",
    ),
    Column(
        "faulted_calls",
        "float",
        "Requests that a fault of the services struck; NaN without a server's log.",
        since=3,
        before=NAN,
    ),
)

TABLES: Final[Mapping[str, tuple[type[Any], tuple[Column, ...]]]] = {
    "calls": (CallRecord, _CALL_COLUMNS),
    "runs": (RunRecord, _RUN_COLUMNS),
    "events": (EventRecord, _EVENT_COLUMNS),
}
