"""Prints a digest of every value of the tables of one small study: run by tests in processes of other kinds."""

from __future__ import annotations

import hashlib
import json
import sys

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison, run_comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.findings.study import Study
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.workload_by_name import workload_kind
from docmind_lab.tables.records import TABLES

ALTERNATIVES = "unguarded,A,B,C,D,E,F,A:per_read,B:drain,F:per_step"


def study(workers: int, alternatives: str = ALTERNATIVES, runs: int = 2, workload: str = "supervisor") -> Study:
    """The study, computed by so many processes; 0 for none but this one."""
    comparison = Comparison(
        decision_timeout_s=workload_kind(workload).defaults["virtual"].decision_timeout_s,
        runs=runs,
        seed=11,
        alternatives=parse_alternatives(alternatives),
        profile=LatencyProfile.named("heavy_tail/3"),
        faults=(Fault.parse("http_500@1:*:0.2"), Fault.parse("retrieval_slow=2:*:0.3")),
        documents=Documents("handbook"),
        workload=workload,
    )
    return run_comparison(comparison, Settings(), workers=workers or None)


def digest(made: Study) -> str:
    """Of every value of all tables, floats to their last bit."""
    text = hashlib.sha256()
    for table in TABLES:
        for row in getattr(made, table).itertuples(index=False):
            text.update(json.dumps([value.hex() if isinstance(value, float) else str(value) for value in row]).encode())
    return text.hexdigest()


if __name__ == "__main__":
    print(digest(study(int(sys.argv[1]))))
