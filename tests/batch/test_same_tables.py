"""The same study gives the same tables, bit for bit, whoever computes it and however busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from same_tables_program import digest, study

PROGRAM = Path(__file__).with_name("same_tables_program.py")
BURN = "while True: pass"


def computed(workers: int, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(workers)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def reference() -> str:
    return digest(study(0))


def test_again_in_the_same_process(reference: str) -> None:
    assert digest(study(0)) == reference


def test_in_two_processes_with_other_hash_seeds_and_a_busy_cpu(reference: str) -> None:
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(2)]
    try:
        assert computed(workers=2, hash_seed="4242") == reference
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 3])
def test_with_any_number_of_workers(workers: int, reference: str) -> None:
    assert computed(workers=workers, hash_seed="7") == reference


def test_a_run_is_the_same_alone_and_among_others(reference: str) -> None:
    """Common random numbers: what other alternatives do has no part in a run."""
    together, alone = study(0), study(0, alternatives="A")
    ids = alone.runs["question_id"].tolist()
    mine = together.runs[
        (together.runs["alternative"] == "cooperative") & (together.runs["alternative_options"] == "{}")
    ]
    for column in ("returned_at_s", "outcome", "llm_calls", "source_recall"):
        assert mine[column].tolist() == alone.runs[column].tolist(), column
    assert mine["question_id"].tolist() == ids
