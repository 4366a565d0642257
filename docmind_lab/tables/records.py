"""The columns of the three tables, each stated once: a field of a record, with its type and meaning; and the events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import NAN, STOP_REASONS, CallOutcome, CutBy, RunOutcome

Kind = Literal["text", "level", "float", "int", "bool"]
DTYPES: Final[Mapping[str, str]] = {
    "text": "str",
    "level": "category",
    "float": "float64",
    "int": "int64",
    "bool": "bool",
}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    name: name of the column; its ending says the unit. kind: kind of its values; see `DTYPES`. levels: the values that
    a categorical may take; () for open ones. before: value that fills it in tables of older versions, which lack it.
    """

    name: str
    kind: Kind
    meaning: str
    levels: tuple[str, ...] = ()
    since: int = 1
    before: str | float | None = None


@dataclass(frozen=True)
class Level:
    """Marks a field whose column is a categorical, with the values that it may take; () for open ones."""

    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Since:
    """Marks a field added in a later version of the schema; older tables get its default."""

    version: int


_StudyId = Annotated[str, "The study that the row belongs to."]
_RunId = Annotated[str, "The run; key of `runs`."]
_Workload = Annotated[str, "The system under the deadline.", Level()]
_Alternative = Annotated[str, "How the deadline was enforced.", Level()]


@dataclass(frozen=True)
class CallRecord:
    """One attempt of one call. NaN: did not happen, or cannot be known."""

    study_id: _StudyId
    run_id: _RunId
    call_id: Annotated[str, "The logical call within the run; its attempts share it."]
    parent_call_id: Annotated[str, "The call that this one was made inside of; empty at the top."]
    attempt: Annotated[
        int, "Number of the request within its call: retries of the client and ours, and the requests of one search."
    ]
    seen_from: Annotated[
        Literal["client", "server"], "client: timed at the network seam; server: from the service's own log."
    ]
    workload: _Workload
    alternative: _Alternative
    role: Annotated[str, "Who made the call.", Level()]
    step: Annotated[str, "Logical position: handoff ordinal . fan-out index . ordinal within the role."]
    kind: Annotated[str, "What was called.", Level(("llm", "retrieval", "tool", "peer"))]
    started_at_s: Annotated[
        float, "Client: the request was made, before any wait for a connection. Server: it was received."
    ]
    first_byte_at_s: Annotated[float, "First byte of the response, received or sent; NaN if there was none."]
    ended_at_s: Annotated[
        float, "Client: last byte, or the error. Server: the last thing done for it. NaN if not by the horizon."
    ]
    latency_s: Annotated[float, "ended_at_s − started_at_s."]
    queue_wait_s: Annotated[float, "Client: waiting for a pooled connection. Server: waiting for a slot."]
    timeout_s: Annotated[float, "The cap that the attempt was given; NaN if none. Client rows."]
    remaining_at_start_s: Annotated[float, "Decision timeout left when it started; negative after the deadline."]
    overrun_s: Annotated[float, "Seconds of ended_at_s past the deadline, 0 before it; NaN if it has not ended."]
    outcome: Annotated[
        CallOutcome, "abandoned: unended when the caller returned. refused: not started, no budget left."
    ]
    started_after_deadline: Annotated[bool, "started_at_s > decision timeout."]
    ended_after_return: Annotated[bool, "Ended after the caller returned, or not at all by the horizon."]
    input_tokens: Annotated[float, "Tokens of the request; NaN where not known."]
    output_tokens: Annotated[float, "Client: as the response says. Server: as generated, also when nobody listened."]
    error_type: Annotated[str, "Name of the exception, or HTTP and the status; empty without an error."]
    first_token_at_s: Annotated[
        float,
        "Client: first token of a streamed answer, or first byte of the body of another; NaN if there was none. Keep-"
        "alives are no tokens. Server: NaN.",
        Since(6),
    ] = NAN
    longest_gap_s: Annotated[
        float, "Client: longest silence between two tokens; NaN with fewer than two. Server: NaN.", Since(6)
    ] = NAN
    cut_by: Annotated[
        CutBy,
        "What ended it by its time: deadline (of the run), or a limit of the call: first_token, idle, total; wrap_up "
        "of a tool's request when its run was to be wrapped up. Empty for no limit of ours. Client rows.",
        Since(6),
    ] = ""


@dataclass(frozen=True)
class EventRecord:
    """One event. detail: names and numbers, in the table as a JSON object; never text of a user or a document."""

    study_id: _StudyId
    run_id: _RunId
    at_s: Annotated[float, "When it happened."]
    event: Annotated[str, "What happened: see the list of events below.", Level()]
    role: Annotated[str, "Who it happened to; empty for the run as a whole.", Level()]
    detail: Annotated[Mapping[str, Any], "A JSON object of names and numbers; never text of a user or a document."]


@dataclass(frozen=True)
class RunRecord:
    """One run."""

    study_id: _StudyId
    run_id: Annotated[str, "The run; the key of this table."]
    workload: _Workload
    alternative: _Alternative
    alternative_options: Annotated[str, "A JSON object: the options of the alternative that are not the default."]
    seed: Annotated[int, "Keys every draw of latency and fault; the same for all alternatives of one question."]
    question_id: Annotated[str, "The question asked.", Level()]
    decision_timeout_s: Annotated[float, "The budget; the deadline is this long after the run's start."]
    horizon_s: Annotated[float, "How long the run was observed at most."]
    deadline_propagation: Annotated[bool, "Whether `deadline_ts` was in the graph's state."]
    router_injection: Annotated[
        bool, "Whether an injected router engine was to be asked first; events tell what it gave."
    ]
    retries: Annotated[
        str,
        "Who retries: sdk:N (the clients), budgeted:N (ours, within the budget), workload:N (the workload's own "
        "loop, with budgeted:N inside it where both stand), own (your graph).",
        Level(),
    ]
    latency_profile: Annotated[
        str,
        "Where the latencies of the simulated services come from: a profile, or recorded (a replay); "
        "empty for live ones.",
        Level(),
    ]
    fault: Annotated[str, "The faults injected; none without.", Level()]
    stops_on_disconnect: Annotated[bool, "Whether the model server stops generating when its client goes away."]
    node_mode: Annotated[
        str,
        "What the alternative called in the nodes: sync, async, or blocking (coroutines that block the loop).",
        Level(),
    ]
    clock: Annotated[str, "wall or virtual.", Level()]
    returned_at_s: Annotated[float, "The caller returned, with an answer or without; NaN if not by the horizon."]
    quiescent_at_s: Annotated[
        float, "Last of: a server's last byte or token, a checkpoint put, the end of a call, node or worker thread."
    ]
    work_censored: Annotated[bool, "Still busy at the horizon: quiescent_at_s is then a lower bound."]
    caller_overrun_s: Annotated[float, "Positive part of returned − deadline; NaN if unfinished."]
    work_overrun_s: Annotated[float, "Positive part of quiescent − deadline; a lower bound if work_censored."]
    outcome: Annotated[
        RunOutcome,
        "answered, partial (documents, a draft, state of a user's graph), timed_out (nothing), failed (an error, or a "
        "second budget spent with nothing to show), interrupted (waits for a person), unfinished.",
    ]
    answered_in_time: Annotated[bool, "Answered, and returned by the deadline."]
    stop_reason: Annotated[str, "Why a run stopped short; empty for an ordinary end.", Level(STOP_REASONS)]
    llm_calls: Annotated[int, "LLM attempts that were started (client rows)."]
    retrieval_calls: Annotated[int, "Retrieval attempts that were started (client rows)."]
    calls_after_deadline: Annotated[
        float, "Requests that a server received after the deadline (server rows); NaN without a server log."
    ]
    busy_after_deadline_s: Annotated[float, "Server seconds spent after the deadline, requests added up (server rows)."]
    tokens_after_deadline: Annotated[float, "Tokens generated after the deadline (server rows)."]
    late_checkpoints: Annotated[int, "Checkpoints put after the caller returned."]
    threads_left: Annotated[int, "Threads still inside the run's work when observation ended."]
    propagation_coverage: Annotated[
        float, "Share of LLM and retrieval attempts that carried a cap from the deadline; NaN if not propagated."
    ]
    documents_count: Annotated[int, "Documents returned to the caller."]
    source_recall: Annotated[float, "Gold topics among the sources returned; 0 when none came back, NaN without gold."]
    recall_at_deadline: Annotated[float, "The same over everything retrieved by the deadline."]
    answer_score: Annotated[float, "Share of gold facts stated with a citation that supports them; NaN without gold."]
    coordination_overhead_s: Annotated[
        float, "Returned minus the union of LLM and retrieval intervals; answered runs on the wall clock, alone."
    ]
    second_budgets: Annotated[
        str, "The budgets beside time, such as 6000 tokens, 12 calls; none without.", Level(), Since(2)
    ] = "none"
    token_budget: Annotated[float, "Tokens that the run was to use at most; NaN without a limit.", Since(2)] = NAN
    call_budget: Annotated[
        float, "Requests to the model that the run was to make at most; NaN without a limit.", Since(2)
    ] = NAN
    cost_budget: Annotated[
        float, "What the run was to cost at most, in the currency of the price; NaN without a limit.", Since(2)
    ] = NAN
    tokens_spent: Annotated[
        float, "Tokens read and written, as responses count them (client rows); a lower bound.", Since(2)
    ] = NAN
    calls_spent: Annotated[
        float, "Requests to the model, retries included (client rows); those after the return count too.", Since(2)
    ] = NAN
    cost_spent: Annotated[float, "Price of tokens_spent; NaN without a price.", Since(2)] = NAN
    tokens_overspent: Annotated[float, "Positive part of tokens_spent − token_budget.", Since(2)] = NAN
    calls_overspent: Annotated[float, "Positive part of calls_spent − call_budget.", Since(2)] = NAN
    cost_overspent: Annotated[float, "Positive part of cost_spent − cost_budget.", Since(2)] = NAN
    error_type: Annotated[str, "Name of the exception that a failed run ended with; else empty.", Since(3)] = ""
    error_node: Annotated[
        str, "The graph node that raised it, its agents' nodes after a slash; empty where no node did.", Since(3)
    ] = ""
    faulted_calls: Annotated[
        float, "Requests that a fault of the services struck; NaN without a server's log.", Since(3)
    ] = NAN
    server_behaviour: Annotated[
        str,
        "What the model server does when its client leaves: stops, goes-on, or the name of a measured profile; "
        "empty in older tables.",
        Level(),
        Since(3),
    ] = ""
    adoption: Annotated[
        float, "Share of the services called that hold to a deadline that comes with a request; 0 elsewhere.", Since(3)
    ] = 0.0
    error_attempt: Annotated[
        int,
        "Number of the attempt whose error the run failed with: of the last call in the node that raised, if it failed "
        f"within {HELD_WITHIN_S:g} s before the node did; 0 where no call's error did.",
        Since(4),
    ] = 0
    mean_score: Annotated[
        float,
        "Mean, over the time until the deadline, of the answer_score that a caller cut at that instant would have had; "
        "NaN without gold.",
        Since(5),
    ] = NAN


@dataclass(frozen=True)
class RunRows:
    """The rows of one run in the three tables."""

    run: RunRecord
    calls: tuple[CallRecord, ...]
    events: tuple[EventRecord, ...]


def detail_json(detail: Mapping[str, Any]) -> str:
    """Return an event's detail as JSON, as it stands in the events table."""
    return json.dumps(detail, sort_keys=True, separators=(",", ":"))


def row_of(record: RunRecord | CallRecord | EventRecord) -> dict[str, Any]:
    """Return a record as a row of its table."""
    # Records are flat but for the detail of an event, and `asdict` would copy each of their values.
    return vars(record) | {"detail": detail_json(record.detail)} if isinstance(record, EventRecord) else vars(record)


def columns_of(record_type: type[Any]) -> tuple[Column, ...]:
    """Return the columns for the fields of a record, in order."""
    types = get_type_hints(record_type, include_extras=True)
    return tuple(_column(field.name, types[field.name], field.default) for field in fields(record_type))


def _column(name: str, annotated: Any, default: Any) -> Column:
    plain, meaning, *marks = get_args(annotated)
    level = next((mark for mark in marks if isinstance(mark, Level)), None)
    since = next((mark.version for mark in marks if isinstance(mark, Since)), 1)
    is_literal = get_origin(plain) is Literal
    levels = get_args(plain) if is_literal else level.values if level is not None else ()
    is_text = plain is str or get_origin(plain) is Mapping
    kind: Any = "level" if is_literal or level is not None else "text" if is_text else plain.__name__
    return Column(name, kind, meaning, levels, since, None if default is MISSING else default)


TABLES: Final[Mapping[str, tuple[type[Any], tuple[Column, ...]]]] = {
    name: (record_type, columns_of(record_type))
    for name, record_type in (("calls", CallRecord), ("runs", RunRecord), ("events", EventRecord))
}
STUDY_ID, RUN_ID, ALTERNATIVE = (
    next(column for column in TABLES["calls"][1] if column.name == name)
    for name in ("study_id", "run_id", "alternative")
)
"""The columns that identify the run of a row, in every table, those of workloads too."""

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
    "wrapped_up": "The reserve of the policy wrap_up had begun, and something was done. detail: what (told, untold, "
    "refused, cut), of (the host or tool), left_s.",
    "tokens_generated": "A server generated tokens. detail: begun_at_s, tokens, call_id, attempt.",
    "deadline_cut": "A call was cut by the deadline. detail: kind, source.",
    "usage_missing": "A response did not say what it used: tokens and cost could not be charged. detail: kind.",
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
