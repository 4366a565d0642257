"""Traces of the control, replayed under each alternative, against the whole stack in virtual time."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from flat_compare import compare_by
from sample_runs import sample_run, study_of

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.what_if.trace_agreement import SAME_SHARE, agreement_with_stack
from docmind_lab.tables.traces.traced_studies import traces_of_study

# Each with a deadline that cuts a good part of its runs. The seeds are used nowhere else.
CASES: tuple[dict[str, Any], ...] = (
    {"decision_timeout_s": 12},
    {"decision_timeout_s": 9, "server": "goes-on"},
    {"decision_timeout_s": 9, "server": "llama-cpp-2026.10"},
    {"decision_timeout_s": 12, "faults": "hang"},
    {"decision_timeout_s": 12, "faults": "trickle"},
    {"decision_timeout_s": 12, "faults": ["stall", "disconnect:planner:0.5"]},
    {"decision_timeout_s": 12, "faults": "slow_first_token"},
    {"decision_timeout_s": 12, "faults": "http_500@1"},
    {"decision_timeout_s": 12, "faults": "rate_limit"},
    {"decision_timeout_s": 12, "faults": "empty:planner:0.5"},
    {"decision_timeout_s": 12, "faults": "retrieval_slow"},
    {"decision_timeout_s": 12, "faults": "retrieval_hang"},
    {"decision_timeout_s": 12, "faults": "retrieval_503"},
    {"system": "research", "decision_timeout_s": 8},
    {"system": "research", "decision_timeout_s": 8, "server": "goes-on"},
    {"system": "staged", "decision_timeout_s": 5},
    {"system": "peers", "decision_timeout_s": 15},
    {"system": "hops", "decision_timeout_s": 8},
    {"system": "hops", "decision_timeout_s": 8, "server": "goes-on"},
)


@pytest.mark.full
def test_a_research_run_that_keeps_documents_has_a_result_from_then_on() -> None:
    study = dl.compare(
        dl.research(),
        decision_timeout_s=8,
        alternatives="unguarded,A,D",
        world=dl.World(clock="virtual"),
        runs=2,
        seed=20262,
    )
    assert traces_of_study(study).runs["result_from_s"].notna().all()
    found = agreement_with_stack(study)
    assert found.differences.empty, found
    assert "100.00% of 6 runs are the same" in repr(found)


@pytest.mark.full
def test_replay_agrees_with_the_stack_for_every_workload_fault_and_server() -> None:
    """At least 99.5 % of the runs that a trace can say of; what differs is listed. Without a fault, all of them."""
    found = [
        agreement_with_stack(
            compare_by(**case, runs=5, seed=31_000 + number, alternatives="unguarded,A,B,C,D,E,F", clock="virtual")
        ).pairs
        for number, case in enumerate(CASES)
    ]
    assert found[0]["known"].all()
    assert found[0]["same"].all(), found[0].to_string()
    pairs = pd.concat(found, ignore_index=True)
    answerable = pairs[pairs["known"]]
    assert len(answerable) > 0.85 * len(pairs)
    assert answerable["same"].mean() >= SAME_SHARE, answerable[~answerable["same"]].to_string()


def test_runs_of_several_conditions_are_refused() -> None:
    study = study_of([sample_run("unguarded", repeat, decision_timeout_s=2.0 + repeat) for repeat in range(2)])
    with pytest.raises(ConfigurationError, match="several values of decision_timeout_s"):
        agreement_with_stack(study)
