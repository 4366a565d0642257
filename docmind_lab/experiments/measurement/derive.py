"""Turn what was observed of a run into rows: call and event records, and the run's columns derived from them.

`derive_run` looks at nothing but call records, event records and the facts that were fixed before the run, so that
anybody can recompute a run from the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from docmind_lab.alternatives.base import Alternative, options_json
from docmind_lab.core.budgets import Budget
from docmind_lab.core.levels import NAN, CallOutcome, RunOutcome
from docmind_lab.core.server_behaviour import STOPS
from docmind_lab.experiments.measurement.from_events import (
    coordination_overhead,
    coverage,
    error_columns,
    mean_score,
    recall_at_deadline,
    tokens_after,
)
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.recorder import Recorder
from docmind_lab.network.snapshots import RawEvent, Snapshot
from docmind_lab.services.log import RequestRow
from docmind_lab.tables.frames import positive_part
from docmind_lab.tables.records import EVENTS, CallRecord, EventRecord, RunRecord, detail_json

# What ends the work of a run, on either clock: see "quiescent" in docs/architecture.md.
WORK_EVENTS = frozenset({"checkpoint_put", "node_ended", "thread_ended", "tokens_generated"})


HORIZON_FACTOR = 5.0
"""How many decision timeouts a run is observed for, where nothing else is said."""


def horizon_of(decision_timeout_s: float, factor: float = HORIZON_FACTOR) -> float:
    """Return how long a run is observed after its start, in seconds."""
    return factor * decision_timeout_s


@dataclass(frozen=True)
class RunFacts:
    """Everything known of a run before it starts: the columns of `runs` that are not measured."""

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
    node_mode: str
    clock: str
    server_behaviour: str = STOPS.name
    adoption: float = 0.0
    gold_topics: tuple[str, ...] = ()
    has_server_log: bool = True
    alone: bool = True
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def of(
        cls, alternative: Alternative, decision_timeout_s: float, *, horizon_s: float | None = None, **others: Any
    ) -> RunFacts:
        """Return the facts of a run under an alternative.

        Args:
            alternative: It says its name, its options and whether it propagates.
            decision_timeout_s: The budget, in seconds.
            horizon_s: How long the run is observed, in seconds; that of `horizon_of` when left out.
            others: The other facts, by name. The nodes are of the alternative's own mode where nothing is said.
        """
        return cls(
            alternative=alternative.name,
            alternative_options=options_json(alternative),
            deadline_propagation=alternative.propagates,
            decision_timeout_s=decision_timeout_s,
            horizon_s=horizon_of(decision_timeout_s) if horizon_s is None else horizon_s,
            **{"node_mode": alternative.node_mode, **others},
        )


@dataclass(frozen=True)
class Answer:
    """The caller's answer: how the run ended, and how good the answer is (NaN where unknown)."""

    outcome: RunOutcome
    stop_reason: str = ""
    documents_count: int = 0
    source_recall: float = NAN
    answer_score: float = NAN
    error_type: str = ""


def call_records(
    facts: RunFacts, recorder: Recorder, snapshot: Snapshot, rows: Sequence[RequestRow]
) -> list[CallRecord]:
    """Return the run's calls: client rows, then server rows, ordered by start."""
    client = [_client_record(facts, recorder, attempt) for attempt in snapshot.attempts]
    horizon_at = recorder.started_at + facts.horizon_s
    server = [_server_record(facts, recorder, row, min(snapshot.taken_at, horizon_at)) for row in rows]
    return sorted(client + server, key=lambda record: (record.seen_from, record.started_at_s, record.call_id))


def event_records(
    facts: RunFacts, recorder: Recorder, snapshot: Snapshot, rows: Sequence[RequestRow]
) -> list[EventRecord]:
    """Return the run's events in order, including those from the service's log."""
    raw = [*snapshot.events, RawEvent(recorder.deadline.at_s, "deadline")]
    for row in rows:
        if row.fault:
            met = {"fault": row.fault, "call_id": row.call_id, "attempt": row.attempt}
            raw.append(RawEvent(row.received_at, "fault_met", row.role, met))
        if row.made_up:
            raw.append(RawEvent(row.received_at, "answer_made_up", row.role, {"of": row.made_up}))
        for begun_at, ended_at, tokens in row.token_spans:
            detail = {
                "begun_at_s": begun_at - recorder.started_at,
                "tokens": tokens,
                "call_id": row.call_id,
                "attempt": row.attempt,
            }
            raw.append(RawEvent(ended_at, "tokens_generated", row.role, detail))
    records = [
        EventRecord(
            study_id=facts.study_id,
            run_id=facts.run_id,
            at_s=event.at - recorder.started_at,
            event=event.event,
            role=event.role,
            detail=event.detail,
        )
        for event in raw
    ]
    return sorted(records, key=_sort_key)


_RANK_OF_EVENT = {name: rank for rank, name in enumerate(EVENTS)}


def _sort_key(event: EventRecord) -> tuple[float, int, str, str]:
    # In virtual time much happens at one instant, in an order that an event loop may change with the next Python.
    return event.at_s, _RANK_OF_EVENT.get(event.event, len(_RANK_OF_EVENT)), event.role, detail_json(event.detail)


def _since(start: float, instant: float | None) -> float:
    return NAN if instant is None else instant - start


def _client_record(facts: RunFacts, recorder: Recorder, attempt: Attempt) -> CallRecord:
    started_at_s = attempt.started_at - recorder.started_at
    ended_at_s = _since(recorder.started_at, attempt.ended_at)
    acquired_at_s = _since(recorder.started_at, attempt.acquired_at)
    late = _ended_after_return(recorder, attempt.ended_at)
    outcome: CallOutcome = "abandoned" if late or attempt.outcome == "open" else attempt.outcome
    return CallRecord(
        **_shared_columns(facts, started_at_s, ended_at_s),
        call_id=attempt.call.call_id,
        parent_call_id=attempt.call.parent_call_id,
        attempt=attempt.number,
        seen_from="client",
        role=attempt.call.role,
        step=attempt.call.step,
        kind=attempt.call.kind,
        first_byte_at_s=_since(recorder.started_at, attempt.first_byte_at),
        queue_wait_s=acquired_at_s - started_at_s,
        timeout_s=NAN if math.isinf(attempt.timeout_s) else attempt.timeout_s,
        outcome=outcome,
        ended_after_return=late,
        input_tokens=NAN if attempt.input_tokens is None else attempt.input_tokens,
        output_tokens=NAN if attempt.output_tokens is None else attempt.output_tokens,
        error_type=attempt.error_type,
        first_token_at_s=_since(recorder.started_at, attempt.first_token_at),
        longest_gap_s=attempt.longest_gap_s,
        cut_by=attempt.cut_by,
    )


def _server_record(facts: RunFacts, recorder: Recorder, row: RequestRow, observed_until: float) -> CallRecord:
    # A row that was cut when its run was over had not ended by then, whatever the cut wrote into it.
    ended_at = None if row.outcome in ("open", "ended") else row.ended_at
    if ended_at is not None and ended_at > observed_until:
        ended_at = None
    late = _ended_after_return(recorder, ended_at)
    outcomes: dict[str, CallOutcome] = {
        "ok": "ok",
        "client_gone": "cancelled",
        "cancelled": "cancelled",
        "error": "error",
    }
    outcome: CallOutcome = "abandoned" if late or ended_at is None else outcomes[row.outcome]
    started_at_s = row.received_at - recorder.started_at
    kind = row.kind
    return CallRecord(
        **_shared_columns(facts, started_at_s, _since(recorder.started_at, ended_at)),
        call_id=row.call_id,
        parent_call_id="",
        attempt=row.attempt,
        seen_from="server",
        role=row.role,
        step=row.step,
        kind=kind,
        first_byte_at_s=_since(recorder.started_at, row.first_byte_at),
        queue_wait_s=row.queue_wait_s,
        timeout_s=NAN,
        outcome=outcome,
        ended_after_return=late,
        input_tokens=float(row.input_tokens) if kind == "llm" else NAN,
        output_tokens=float(row.output_tokens) if kind == "llm" else NAN,
        error_type=_server_error(row),
    )


def _server_error(row: RequestRow) -> str:
    if row.status is not None and row.status >= 400:
        return f"HTTP {row.status}"
    return "disconnect" if row.outcome == "error" else ""


def _ended_after_return(recorder: Recorder, ended_at: float | None) -> bool:
    if ended_at is None:
        return True
    return recorder.returned_at is not None and ended_at > recorder.returned_at


def _shared_columns(facts: RunFacts, started_at_s: float, ended_at_s: float) -> dict[str, Any]:
    return {
        "study_id": facts.study_id,
        "run_id": facts.run_id,
        "workload": facts.workload,
        "alternative": facts.alternative,
        "started_at_s": started_at_s,
        "ended_at_s": ended_at_s,
        "latency_s": ended_at_s - started_at_s,
        "remaining_at_start_s": facts.decision_timeout_s - started_at_s,
        "overrun_s": positive_part(ended_at_s - facts.decision_timeout_s),
        "started_after_deadline": started_at_s > facts.decision_timeout_s,
    }


# ---- a run from its calls and events


def derive_run(
    facts: RunFacts,
    answer: Answer,
    calls: Sequence[CallRecord],
    events: Sequence[EventRecord],
    *,
    work_censored: bool,
    threads_left: int,
) -> RunRecord:
    """Return the run's row. calls and events are those of this run only."""
    deadline_s = facts.decision_timeout_s
    client = [call for call in calls if call.seen_from == "client"]
    server = [call for call in calls if call.seen_from == "server"]
    # The requests of another process are seen by the server alone.
    started = [call for call in client or server if call.outcome != "refused"]
    returned_at_s = next((event.at_s for event in events if event.event == "returned"), NAN)
    quiescent_at_s = facts.horizon_s if work_censored else _last_work(calls, events)
    answered_in_time = answer.outcome == "answered" and returned_at_s <= deadline_s
    measured_at_server = facts.has_server_log
    # In virtual time Python's own work takes none; beside other runs it is not the run's own.
    is_timed = facts.clock == "wall" and facts.alone and answer.outcome == "answered"
    fixed = {field.name: getattr(facts, field.name) for field in fields(RunRecord) if hasattr(facts, field.name)}
    return RunRecord(
        **fixed,
        stops_on_disconnect=facts.server_behaviour == STOPS.name,
        returned_at_s=returned_at_s,
        quiescent_at_s=quiescent_at_s,
        work_censored=work_censored,
        caller_overrun_s=positive_part(returned_at_s - deadline_s),
        work_overrun_s=positive_part(quiescent_at_s - deadline_s),
        outcome=answer.outcome,
        answered_in_time=answered_in_time,
        stop_reason=answer.stop_reason,
        llm_calls=sum(call.kind == "llm" for call in started),
        retrieval_calls=sum(call.kind == "retrieval" for call in started),
        calls_after_deadline=sum(c.started_after_deadline for c in server) if measured_at_server else NAN,
        busy_after_deadline_s=_busy_after(server, deadline_s, facts.horizon_s) if measured_at_server else NAN,
        tokens_after_deadline=tokens_after(events, deadline_s) if measured_at_server else NAN,
        late_checkpoints=sum(e.event == "checkpoint_put" and e.at_s > returned_at_s for e in events),
        threads_left=threads_left,
        propagation_coverage=coverage(events) if facts.deadline_propagation else NAN,
        documents_count=answer.documents_count,
        source_recall=answer.source_recall,
        recall_at_deadline=recall_at_deadline(events, facts.gold_topics, deadline_s),
        answer_score=answer.answer_score,
        coordination_overhead_s=coordination_overhead(events, returned_at_s) if is_timed else NAN,
        mean_score=NAN if math.isnan(answer.answer_score) else mean_score(events, deadline_s),
        faulted_calls=float(sum(e.event == "fault_met" for e in events)) if measured_at_server else NAN,
        **error_columns(answer.outcome, answer.error_type, client, events),
        **_spending(facts.budget, [call for call in started if call.kind == "llm"]),
    )


def _spending(budget: Budget, requests: Sequence[CallRecord]) -> dict[str, Any]:
    """Return the columns of second budgets. requests: those to the model, as the client saw them."""
    read, written = (
        math.fsum(tokens for tokens in column if not math.isnan(tokens))
        for column in ([call.input_tokens for call in requests], [call.output_tokens for call in requests])
    )
    spent = {
        "token": read + written,
        "call": float(len(requests)),
        "cost": NAN if budget.price is None else budget.price.cost(read, written),
    }
    limits = {"token": budget.tokens, "call": budget.calls, "cost": budget.cost}
    columns: dict[str, Any] = {"second_budgets": budget.level}
    for kind, limit in limits.items():
        plural = kind if kind == "cost" else f"{kind}s"
        columns[f"{kind}_budget"] = NAN if limit is None else float(limit)
        columns[f"{plural}_spent"] = spent[kind]
        columns[f"{plural}_overspent"] = NAN if limit is None else positive_part(spent[kind] - limit)
    return columns


def _last_work(calls: Iterable[CallRecord], events: Iterable[EventRecord]) -> float:
    ends = [c.ended_at_s for c in calls if not math.isnan(c.ended_at_s) and c.outcome != "refused"]
    ends += [event.at_s for event in events if event.event in WORK_EVENTS]
    return max(ends, default=0.0)


def _busy_after(server: Iterable[CallRecord], deadline_s: float, horizon_s: float) -> float:
    busy = 0.0
    for call in server:
        ended_at_s = horizon_s if math.isnan(call.ended_at_s) else call.ended_at_s
        # In the server's queue nothing is done for a request yet.
        busy += max(0.0, ended_at_s - max(call.started_at_s + call.queue_wait_s, deadline_s))
    return busy
