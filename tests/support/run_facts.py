"""Made-up facts of a run, as a comparison gives them before the run begins."""

from __future__ import annotations

from typing import Any

from docmind_lab.experiments.measurement.derive import RunFacts

DEADLINE_S, HORIZON_S = 2.0, 10.0


def facts(**changes: Any) -> RunFacts:
    """Facts of a run under the cooperative alternative; `changes` replace some."""
    values: dict[str, Any] = {
        "study_id": "s",
        "run_id": "r",
        "workload": "supervisor",
        "alternative": "cooperative",
        "alternative_options": "{}",
        "seed": 7,
        "question_id": "q01",
        "decision_timeout_s": DEADLINE_S,
        "horizon_s": HORIZON_S,
        "deadline_propagation": True,
        "router_injection": False,
        "retries": "budgeted:1",
        "latency_profile": "typical",
        "fault": "none",
        "node_mode": "sync",
        "clock": "wall",
        "gold_topics": ("with", "try"),
    }
    return RunFacts(**{**values, **changes})
