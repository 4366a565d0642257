"""Ctrl-C while a run is measured in this process: the run is lost, nothing is made up, and the command ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from held_graphs import wait_until
from job_program import INTERRUPTED, PATIENCE_S, ROOT, JobProgram, job_program
from often import often

from docmind_lab.core.errors import SimulationError
from docmind_lab.findings.study import Study
from docmind_lab.virtual_time import VirtualClock, ending

RUNS = 9


@pytest.fixture(scope="module")
def commands() -> Iterator[JobProgram]:
    with job_program("study_program.py") as program:
        yield program


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def returned(study: Study) -> dict[str, float]:
    return {str(run_id): float(at) for run_id, at in study.runs.set_index("run_id")["returned_at_s"].items()}


@pytest.fixture(scope="module")
def whole(commands: JobProgram, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, float]]:
    """Run id → when the caller was back, of a command that nobody interrupts."""

    @functools.cache
    def of(command: str) -> dict[str, float]:
        out = tmp_path_factory.mktemp("whole") / command
        assert commands.ended(commands.start(command=command, out=str(out))) == 0, Path(f"{out}.said").read_text()
        return returned(Study.load(out))

    return of


@pytest.mark.parametrize(
    ("command", "kind", "seed"),
    often(product(["compare", "sweep"], [signal.SIGINT, signal.SIGTERM], range(1, 4)), ("compare", signal.SIGINT, 1)),
)
def test_an_interrupted_study_holds_no_run_that_was_not_measured(
    command: str,
    kind: signal.Signals,
    seed: int,
    commands: JobProgram,
    whole: Callable[[str], dict[str, float]],
    tmp_path: Path,
) -> None:
    draw = random.Random(seed)
    out, begun = tmp_path / "out", tmp_path / "out.begun"
    pid = commands.start(command=command, out=str(out))
    after = draw.randrange(1, RUNS)
    wait_until(lambda: lines_in(begun) >= after, PATIENCE_S)
    # Some time in the run that began, which takes about a tenth of a second.
    time.sleep(draw.uniform(0.0, 0.15))
    os.kill(pid, kind)
    code = commands.ended(pid)
    said = (tmp_path / "out.said").read_text(encoding="utf-8")
    assert code == INTERRUPTED, said
    assert "interrupted" in said
    assert "Traceback" not in said
    began = begun.read_text(encoding="utf-8").splitlines()
    assert len(began) == len(set(began)), "a run that was interrupted was measured again"
    if not (out / "manifest.json").exists() and not list((out / "cells").glob("*.parquet")):
        return
    part = Study.load(out)
    assert not part.manifest["complete"]
    assert len(part.runs) < RUNS
    for run_id, at in returned(part).items():
        assert at == whole(command)[run_id], run_id
    assert set(part.events["run_id"]) <= set(part.runs["run_id"])


def test_an_interrupt_that_comes_in_the_last_moment_is_raised_after_the_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        VirtualClock().run(signal.raise_signal, signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_ends_a_run_that_computes_and_its_thread() -> None:
    threads = set(threading.enumerate())

    def spin() -> None:
        signal.raise_signal(signal.SIGINT)
        while True:
            pass

    began_at = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        VirtualClock(stall_after_s=600.0).run(spin)
    # 3 s to unwind, and some for a busy machine.
    assert time.monotonic() - began_at < 30.0
    assert set(threading.enumerate()) == threads


def test_an_interrupt_within_a_running_loop_as_in_a_notebooks_cell_is_raised_and_a_second_run_is_whole() -> None:
    async def cell() -> str:
        with pytest.raises(KeyboardInterrupt):
            VirtualClock().run(lambda: (signal.raise_signal(signal.SIGINT), time.sleep(1.0)))
        return VirtualClock().run(lambda: time.sleep(1.0) or "whole")

    # As a kernel's, and unlike that of `asyncio.run`, this one leaves the handler of Ctrl-C as it is.
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        assert loop.run_until_complete(cell()) == "whole"


@pytest.mark.wall
def test_an_interrupt_leaves_an_import_to_its_end_which_would_keep_its_lock(
    write_modules: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It computes for longer than anybody waits for a run to unwind, here a tenth of a second."""
    monkeypatch.setattr(ending, "_INTERRUPTED_S", 0.05)
    monkeypatch.setattr(ending, "_KILLING_S", 0.05)
    lines = [
        "import signal",
        "signal.raise_signal(signal.SIGINT)",
        "for _ in range(10_000_000): pass",
        "is_whole = True",
    ]
    write_modules(slow_to_import="\n".join(lines))
    with pytest.raises(KeyboardInterrupt):
        VirtualClock(stall_after_s=600.0).run(importlib.import_module, "slow_to_import")
    assert importlib.import_module("slow_to_import").is_whole


def test_an_interrupt_is_not_swallowed_by_code_that_catches_it() -> None:
    def main() -> None:
        signal.raise_signal(signal.SIGINT)
        while True:
            try:
                time.sleep(1.0)
            except BaseException:  # noqa: BLE001 - the program under test
                return

    with pytest.raises(KeyboardInterrupt):
        VirtualClock().run(main)


def test_a_handler_that_raises_no_interrupt_ends_no_run() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        assert VirtualClock().run(lambda: (signal.raise_signal(signal.SIGINT), time.sleep(1), "done")[-1]) == "done"
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_a_run_without_result_and_error_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from docmind_lab.virtual_time import virtual_clock as clock

    def gone(self: Any) -> None:
        self.has_ended = True

    monkeypatch.setattr(ending.MainThread, "_run", gone)
    monkeypatch.setattr(clock, "watch", lambda kernel, main, *_: gone(main))
    with pytest.raises(SimulationError, match="without a result or an error"):
        VirtualClock().run(int)


# Says that its first runs are done, so that an interrupt comes among the others and not after the last.
COUNTED = """
study = dl.compare(
    runs=3, alternatives="unguarded,A,B", workers=None, world=dl.World(clock={clock!r}),
    progress=lambda done, total: print("runs", done, flush=True),
)
"""


SERVICES = """
import psutil
left = [each for each in psutil.Process().children(recursive=True) if "docmind_lab.services" in each.cmdline()]
assert not left, left
"""


# Builds a system in a kernel: about 15 s on two cores.
@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_a_kernel_that_is_interrupted_is_back_within_seconds_with_the_finished_runs_and_the_next_is_whole(
    clock: str,
) -> None:
    counted = COUNTED.format(clock=clock)
    same = "study.runs.equals(whole)" if clock == "virtual" else "len(study.runs) == len(whole)"
    manager = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed")
    kernel, client = manager.start_new_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)})

    def reply(code: str) -> dict[str, Any]:
        answer: dict[str, Any] = client.execute(code, reply=True, timeout=patience_s)["content"]
        return answer

    def wait_for_runs_of(message_id: str) -> None:
        """Wait until the first runs of this cell are done."""
        while True:
            message = client.get_iopub_msg(timeout=patience_s)
            is_of_it = message["parent_header"].get("msg_id") == message_id
            if is_of_it and "runs" in message["content"].get("text", ""):
                return

    patience_s = PATIENCE_S
    try:
        began_at = time.monotonic()
        whole = reply(f"import docmind_lab as dl\n{counted}\nwhole = study.runs")
        assert whole["status"] == "ok", whole
        # Ten times what the machine takes for a whole study when it does what it does now.
        patience_s = max(PATIENCE_S, 10 * (time.monotonic() - began_at))
        # On the wall clock each study takes some ten seconds more.
        for delay_s in (0.0,) if clock == "wall" else (0.0, 0.05, 0.1):
            # Else the kernel throws away what is sent to it soon after the error.
            interrupted = client.execute(counted, stop_on_error=False)
            wait_for_runs_of(interrupted)
            time.sleep(delay_s)
            kernel.interrupt_kernel()
            interrupted_at = time.monotonic()
            answer = client.get_shell_msg(timeout=patience_s)
            assert answer["parent_header"]["msg_id"] == interrupted
            content = answer["content"]
            # Two seconds, and as many again on a machine whose cores others use.
            assert time.monotonic() - interrupted_at < 4.0
            assert content["status"] == "ok", content
            part = reply(f"assert study is dl.last_study() and 0 < len(study.runs) <= len(whole)\n{SERVICES}")
            assert part["status"] == "ok", part
            again = reply(f"{counted}\nassert not study.interrupted and {same}")
            assert again["status"] == "ok", again
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
