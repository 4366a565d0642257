"""What a row of each table is, as a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from docmind_lab.core.levels import NAN, CallOutcome, RunOutcome


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
    error_type: str = ""
    error_node: str = ""
    faulted_calls: float = NAN


@dataclass(frozen=True)
class RunRows:
    """The rows of one run in the three tables."""

    run: RunRecord
    calls: tuple[CallRecord, ...]
    events: tuple[EventRecord, ...]
