"""How many processes compute runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from docmind_lab.experiments.batch.workers import kept_warm, workers_for

MANY_RUNS = 1_000


@pytest.fixture(autouse=True)
def _two_cores_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(2)), raising=False)


def test_there_are_as_many_processes_as_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    with workers_for(MANY_RUNS) as workers:
        assert workers.window == 4


def test_a_single_core_is_left_to_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with workers_for(MANY_RUNS) as workers:
        assert workers.submit(os.getpid).result() == os.getpid()


@pytest.mark.full
def test_what_is_kept_warm_is_a_process_even_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with kept_warm() as workers:
        assert workers.submit(os.getpid).result() != os.getpid()


def test_a_count_that_is_named_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with workers_for(MANY_RUNS, 3) as workers:
        assert workers.window == 6


@pytest.mark.full
def test_a_process_kept_warm_works_in_the_folder_of_its_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        with kept_warm(1) as workers:
            assert workers.submit(os.getcwd).result() == str(folder)
