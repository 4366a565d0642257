"""How many processes compute runs."""

from __future__ import annotations

import pytest

from docmind_lab.batch.workers import workers_for

MANY_RUNS = 1_000


@pytest.mark.parametrize("cores", [1, 2])
def test_there_are_as_many_processes_as_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", str(cores))
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(2)), raising=False)
    with workers_for(MANY_RUNS) as workers:
        assert workers.window == 2 * cores


def test_a_count_that_is_named_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    with workers_for(MANY_RUNS, 3) as workers:
        assert workers.window == 6
