"""The tables of each workload under each alternative are those they were, to the last bit, whoever computes them.

A refactoring changes none of them. A change of behaviour that is meant does. This writes the digests anew, and the
commit that changes them says why:

    PYTHONPATH=tests/support python tests/batch/test_table_digests.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from often import often
from same_tables_program import digest, study

from docmind_lab.findings.study import Study

DIGESTS = Path(__file__).with_name("table_digests.json")
ALTERNATIVES = "unguarded,A,B,C,D,E,F"
WORKLOADS = ("supervisor", "research", "staged", "peers", "hops")


def digests_of(workload: str) -> dict[str, str]:
    whole = study(0, ALTERNATIVES, 2, workload)
    found = {}
    for alternative, runs in whole.runs.groupby("alternative", observed=True):
        ids = set(runs["run_id"].astype("str"))
        calls, events = (table[table["run_id"].astype("str").isin(ids)] for table in (whole.calls, whole.events))
        found[str(alternative)] = digest(Study(runs, calls, events))
    return dict(sorted(found.items()))


# Research takes as long as all others.
@pytest.mark.parametrize("workload", often(WORKLOADS, *(each for each in WORKLOADS if each != "research")))
def test_each_alternative_has_the_tables_that_were_committed(workload: str) -> None:
    assert digests_of(workload) == json.loads(DIGESTS.read_text(encoding="utf-8"))[workload]


PROGRAM = Path(__file__).parents[1] / "support" / "same_tables_program.py"
BURN = "while True: pass"


# The digests above are of another process with other hash seeds.
@pytest.mark.full
@pytest.mark.parametrize(("workers", "busy"), [(1, 0), (2, 2), (3, 0)])
def test_in_any_number_of_processes_with_other_hash_seeds_and_a_busy_cpu(workers: int, busy: int) -> None:
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(busy)]
    try:
        command, environment = [sys.executable, str(PROGRAM), str(workers)], {**os.environ, "PYTHONHASHSEED": "4242"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == digest(study(0))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_a_run_is_the_same_alone_and_among_others() -> None:
    """Common random numbers: what other alternatives do has no part in a run."""
    alone, runs = study(0, alternatives="A", runs=1).runs, study(0, runs=1).runs
    mine = runs[(runs["alternative"] == "cooperative") & (runs["alternative_options"] == "{}")]
    for column in ("question_id", "returned_at_s", "outcome", "llm_calls", "source_recall"):
        assert mine[column].tolist() == alone[column].tolist(), column


if __name__ == "__main__":
    DIGESTS.write_text(json.dumps({name: digests_of(name) for name in WORKLOADS}, indent=2) + "\n", encoding="utf-8")
