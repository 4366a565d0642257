"""The same study gives the same tables, bit for bit, whoever computes it and however busy the machine is."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from often import often
from same_tables_program import digest, other_study, study

from docmind_lab.findings.study import Study
from docmind_lab.systems.kinds import WORKLOADS

PROGRAM = Path(__file__).parents[1] / "support" / "same_tables_program.py"
BURN = "while True: pass"


def computed(workers: int, hash_seed: str, runs: int, *others: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(workers), str(runs), *others],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@functools.cache
def together(runs: int) -> Study:
    """So many runs of each alternative, in this process."""
    return study(0, runs=runs)


def test_again_in_the_same_process() -> None:
    assert digest(study(0, runs=1)) == digest(together(1))


OTHERS = [name for name in WORKLOADS if name != "supervisor"]


@pytest.mark.parametrize("workload", often(OTHERS, "peers"))
def test_another_workload_again_in_the_same_process(workload: str) -> None:
    assert digest(other_study(0, workload)) == digest(other_study(0, workload))


@pytest.mark.full
def test_other_workloads_in_two_processes_with_other_hash_seeds() -> None:
    expected = [digest(study(0, runs=1)), *(digest(other_study(0, workload)) for workload in OTHERS)]
    assert computed(2, "4242", 1, *OTHERS).split() == expected


# The digests of `test_table_digests` are of another process, and `tests/clocks` has another hash seed.
@pytest.mark.full
@pytest.mark.parametrize(("workers", "busy"), [(1, 0), (2, 2), (3, 0)])
def test_in_any_number_of_processes_with_other_hash_seeds_and_a_busy_cpu(workers: int, busy: int) -> None:
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(busy)]
    try:
        assert computed(workers=workers, hash_seed="4242", runs=2) == digest(together(2))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_a_run_is_the_same_alone_and_among_others() -> None:
    """Common random numbers: what other alternatives do has no part in a run."""
    alone = study(0, alternatives="A", runs=1)
    ids = alone.runs["question_id"].tolist()
    runs = together(1).runs
    mine = runs[(runs["alternative"] == "cooperative") & (runs["alternative_options"] == "{}")]
    for column in ("returned_at_s", "outcome", "llm_calls", "source_recall"):
        assert mine[column].tolist() == alone.runs[column].tolist(), column
    assert mine["question_id"].tolist() == ids
