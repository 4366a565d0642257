"""How many processes compute runs; they end with their parent, and one that left virtual time is replaced."""

from __future__ import annotations

import dataclasses
import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import pytest
from held_graphs import wait_until
from job_program import PATIENCE_S
from loky import ProcessPoolExecutor
from loky.backend.popen_loky_posix import Popen

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.base import Outcome, SyncOrAsync
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, Simulated, Workers, compute_cells, run_cell, workers
from docmind_lab.experiments.batch.workers import kept_warm, workers_for
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile

MANY_RUNS = 1_000


@pytest.mark.parametrize(("cores", "count", "window"), [("2", None, 4), ("1", 3, 6), ("1", None, 1)])
def test_there_are_as_many_processes_as_are_named_or_as_cores_that_may_be_used_but_none_for_a_single_core(
    cores: str, count: int | None, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(2)), raising=False)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", cores)
    with workers_for(MANY_RUNS, count) as workers:
        # Two cells for each process, and one for this process.
        assert workers.window == window


@pytest.mark.full
def test_a_process_kept_warm_has_the_folder_and_the_environment_of_its_caller_even_on_a_single_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    monkeypatch.chdir(tmp_path)
    processes = []
    for key in ("first", "first", None):
        if key is None:
            monkeypatch.delenv("OPENAI_API_KEY")
        else:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        with kept_warm() as workers:
            assert workers.submit(os.getcwd).result() == str(tmp_path)
            assert workers.submit(os.getenv, "OPENAI_API_KEY").result() == key
            processes.append(workers.submit(os.getpid).result())
    # What a module reads when it is imported is read anew, so the process is another: but the same for the same.
    assert os.getpid() not in processes
    assert processes[0] == processes[1] != processes[2]


# Loads the one file, since the package takes seconds to import.
WORKER = f"""
import importlib.util, os, time
spec = importlib.util.spec_from_file_location("workers", {workers.__file__!r})
workers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(workers)
workers.begin_worker(os.getppid())
print(os.getpid(), flush=True)
time.sleep(600.0)
"""
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {WORKER!r}])
"""


def is_alive(pid: int) -> bool:
    """Whether a process has not ended. Looks at /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_ends_within_seconds_of_its_parent_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.send_signal(signal.SIGKILL)
    # The watch looks once a second.
    wait_until(lambda: not is_alive(worker), PATIENCE_S)


@pytest.mark.full
def test_ctrl_c_is_held_back_from_processes_that_start_and_afterwards_is_the_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    masks, launch = list[set[Any]](), Popen._launch
    monkeypatch.setattr(Popen, "_launch", lambda self, process: [masks.append(_blocked()), launch(self, process)])
    with Workers(lambda: ProcessPoolExecutor(1, initializer=workers.begin_worker, initargs=(os.getpid(),))) as pool:
        assert pool.submit(_ctrl_c_changes_nothing).result()
    assert signal.SIGINT in masks[0]
    assert signal.SIGINT not in _blocked()


def _blocked() -> set[Any]:
    return {*signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def _ctrl_c_changes_nothing() -> bool:
    os.kill(os.getpid(), signal.SIGINT)
    return signal.SIGINT not in _blocked()


def test_every_pool_of_processes_has_its_workers_watch_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "docmind_lab.experiments.batch.workers.get_reusable_executor", lambda **options: seen.append(options)
    )
    kept_warm(1)
    assert [(options["initializer"], options["initargs"]) for options in seen] == [
        (workers.begin_worker, (os.getpid(),))
    ]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOENT])
def test_without_shared_memory_the_remedy_is_named(number: int) -> None:
    def refused() -> Any:
        raise OSError(number, os.strerror(number))

    with pytest.raises(ConfigurationError, match=r"need shared memory.*make /dev/shm writable"):
        Workers(refused)


@dataclass(frozen=True)
class Spinning:
    """Computes for ever, which no virtual time can pass."""

    name: ClassVar[str] = "spinning"
    letter: ClassVar[str] = "?"
    propagates: ClassVar[bool] = False
    node_mode: ClassVar[SyncOrAsync] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Any, inputs: Any, deadline: Any, recorder: Any) -> Outcome:
        while True:
            pass


@pytest.mark.full
def test_a_stalled_run_is_named_its_worker_replaced_and_every_other_cell_computed() -> None:
    # The workers do not know this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    profile = LatencyProfile.named("typical")
    system = Simulated(Settings(), ServiceOptions(profile=profile), corpus="handbook")
    (order,) = Comparison(
        runs=1, alternatives=(Cooperative(),), profile=profile, documents=Documents("handbook")
    ).orders()
    cells = [
        Cell(f"{number:03}", (dataclasses.replace(order, alternative=Spinning()) if number == 1 else order,), system)
        for number in range(4)
    ]
    with kept_warm(2) as workers:
        results = {result.cell_id: result for result in compute_cells(cells, run_cell, workers)}
    assert set(results) == {"000", "001", "002", "003"}
    assert order.facts.run_id in str(results["001"].error)
    for cell_id in ("000", "002", "003"):
        assert [run.run.outcome for run in results[cell_id].measured] == ["answered"], cell_id
