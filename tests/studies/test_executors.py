"""Any executor of processes serves, and the tables do not depend on which."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import pytest
from small_studies import DESIGN, RUNS, assert_same_tables, small_cells

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.base import Outcome, SyncOrAsync
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.batch import InThisProcess
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.findings.study import Study


def swept(**options: Any) -> Study:
    with small_cells():
        return sweep(DESIGN, **options)


@pytest.fixture(scope="module")
def reference() -> Study:
    """The study without any process but this one."""
    return swept(executor=InThisProcess())


@contextmanager
def cluster(threads_per_worker: int = 1) -> Iterator[Any]:
    """A client of a cluster of two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=threads_per_worker,
        processes=True,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
    ) as made:
        with distributed.Client(made) as client:
            yield client


def test_few_runs_are_computed_in_this_process_and_give_the_same_tables(reference: Study) -> None:
    assert len(reference.runs) == RUNS
    assert_same_tables(swept(), reference)


@pytest.mark.full
@pytest.mark.parametrize("method", ["our own", "spawn", "forkserver", "a cluster"])
def test_any_processes_give_the_same_tables(method: str, reference: Study) -> None:
    """Virtual time belongs to a process: the threads of a cluster's worker compute one cell at a time."""
    if method == "our own":
        assert_same_tables(swept(workers=2), reference)
    elif method == "a cluster":
        with cluster(threads_per_worker=2) as client:
            assert_same_tables(swept(executor=client.get_executor()), reference)
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            assert_same_tables(swept(executor=pool), reference)
            assert pool.submit(int, "7").result() == 7, "it is its owner who ends it"


def test_a_pool_of_threads_is_refused_before_a_folder_is_touched(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool, pytest.raises(ConfigurationError, match="a pool of threads"):
        sweep(DESIGN, executor=pool, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_executor_and_a_number_of_workers_are_one_too_many() -> None:
    with pytest.raises(ConfigurationError, match="workers: the executor has workers of its own"):
        sweep(DESIGN, executor=InThisProcess(), workers=2)


@dataclass(frozen=True)
class FailingOnce(Cooperative):
    """Raises in the first of all runs, wherever that is, and never again."""

    name: ClassVar[str] = "failing_once"
    node_mode: ClassVar[SyncOrAsync] = "sync"
    mark: str = ""

    def run(self, runnable: Any, inputs: Any, deadline: Any, recorder: Any) -> Outcome:
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return super().run(runnable, inputs, deadline, recorder)
        raise MemoryError("once")


@pytest.mark.full
def test_a_cell_that_was_lost_in_a_cluster_is_computed_anew_and_not_remembered_as_lost(tmp_path: Path) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    factors = {**DESIGN["factors"], "alternative": [FailingOnce(mark=str(tmp_path / "failed"))]}
    with cluster() as client, small_cells():
        study = sweep({**DESIGN, "factors": factors}, executor=client.get_executor())
    assert (tmp_path / "failed").exists()
    assert study.manifest["failed_cells"] == []
    assert study.manifest["complete"]


@pytest.mark.full
def test_a_worker_of_a_cluster_that_is_killed_costs_nothing(reference: Study, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if done and not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    with cluster() as client:
        study = swept(executor=client.get_executor(), out=tmp_path / "out", progress=kill_one)
        assert killed[0] not in client.run(os.getpid).values()
    assert study.manifest["complete"]
    assert_same_tables(study, reference)
