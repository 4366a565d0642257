"""Whether virtual time tells the truth: the same 40 seeds under every alternative on both clocks.

Budget and latencies are the defaults of `compare`, and garbage is collected as in real use. Runs on the wall clock
wait nearly all the time, so dozens are under way at once. What they have and virtual time has not is the CPU time of
Python, theirs and that of whatever else the machine does: on a machine with other work the wall clock is late, and
what is found says how busy the others were. `python -m benchmarks.agreement SEED FOLDER PROFILE` repeats the runs of
a seed, and keeps both studies and the figure; with `local_gpu` as the profile, over one slot for each run.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.figures import Figure, sampled, table
from docmind_lab.alternatives import AsyncCancellation, Cooperative
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import workers_for
from docmind_lab.experiments.batch.cells import without_state
from docmind_lab.experiments.comparison import Comparison, run_comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.findings.agreement import MEAN_ERROR, MISSES_WITHIN_S, SAME_OUTCOME, Agreement, agreement
from docmind_lab.findings.study import Study
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.docmind.docmind_system import SupervisorWorkload
from docmind_lab.tables.manifest import manifest_of

SEEDS = 40
TIMEOUT_S, PROFILE = 20.0, "heavy_tail/3"
# Started together, all runs would compute at the same instant and wait for each other; alone, a run takes 0.15 s of
# CPU. At this pace 280 starts take 80 s, and an interpreter that half of them share is idle most of the time.
START_EVERY_S = 0.28
_INTERPRETERS = 2
_WARM_UP_S = 6.0


@dataclass(frozen=True)
class Part:
    """Some of the runs, measured in one process. cpu_s: of the runs; beside_cpu_s: of set-up and of the services."""

    measured: tuple[MeasuredRun, ...]
    cpu_s: float
    beside_cpu_s: float


def run(
    seeds: int = SEEDS, seed: int | None = None, out: Path | None = None, profile: str = PROFILE
) -> Iterator[Figure]:
    """Mean completion error, other outcomes and the worst miss, and what the wall clock's runs cost beside waiting.

    seed: of the first run; None for one that nobody has seen. out: a folder for both studies and the figure.
    profile: of latencies, by its name.
    """
    first_seed = random.SystemRandom().randrange(1_000, 1_000_000) if seed is None else seed
    asked = Comparison(TIMEOUT_S, seeds, first_seed, profile=LatencyProfile.named(profile))
    virtual = run_comparison(asked, Settings())
    on_the_wall = replace(asked, clock="wall", side_by_side=asked.total_runs)
    busy_s, began_s = _machine_busy_s(), time.monotonic()
    parts = wall_parts(on_the_wall)
    busy_s, passed_s = _machine_busy_s() - busy_s, time.monotonic() - began_s
    manifest = manifest_of(on_the_wall.design(), Settings(), study_id=on_the_wall.study_id, complete=True)
    wall = Study.of((item for part in parts for item in part.measured), manifest)
    found = agreement(virtual, wall)
    if out is not None:
        _keep(out, virtual, wall, found)
    yield Figure(f"pairs (seeds {first_seed} to {first_seed + seeds - 1})", len(found.pairs), "runs")
    yield from _figures(found)
    cpu_s = sum(part.cpu_s for part in parts)
    others_s = busy_s - cpu_s - sum(part.beside_cpu_s for part in parts)
    yield Figure("CPU of a run on the wall clock, its services left out", 1000 * cpu_s / asked.total_runs, "ms")
    yield Figure(f"kept busy by other programs, of {os.cpu_count()} cores", others_s / passed_s, "cores")


def wall_parts(comparison: Comparison) -> list[Part]:
    """The comparison's runs on the wall clock, one started every `START_EVERY_S`, whatever is still under way.

    They share out among processes that each have services of their own, so that fewer wait for one interpreter.
    """
    orders = comparison.orders()
    with workers_for(comparison.total_runs, _INTERPRETERS) as crew:
        shares = [orders[first::_INTERPRETERS] for first in range(_INTERPRETERS)]
        return [future.result() for future in [crew.submit(_part, comparison, share) for share in shares]]


def _part(comparison: Comparison, orders: list[RunOrder]) -> Part:
    options = ServiceOptions(
        comparison.profile, comparison.faults, comparison.server_behaviour, comparison.seed, slots_of_run=True
    )
    began = os.times()
    with contextlib.ExitStack() as stack:
        services = stack.enter_context(ServiceProcess(options))
        log = LogClient(services.addresses.log_url)
        stack.callback(log.close)
        # No run waits for another's connection, as none does in virtual time.
        workload = SupervisorWorkload(Surroundings(services.addresses, Settings(), max_connections=2 * len(orders)))
        stack.callback(workload.close)
        pool = stack.enter_context(ThreadPoolExecutor(len(orders)))
        _warm_up(orders[0], workload, log, pool)
        cpu_s = time.process_time()
        measured = tuple(_started_apart(orders, workload, log, pool))
        cpu_s = time.process_time() - cpu_s
    # The first four are seconds of CPU, of this process and of its children that have ended.
    all_cpu_s = sum(os.times()[:4]) - sum(began[:4])
    return Part(tuple(without_state(item) for item in measured), cpu_s, all_cpu_s - cpu_s)


def _started_apart(
    orders: list[RunOrder], workload: SupervisorWorkload, log: LogClient, pool: ThreadPoolExecutor
) -> Iterator[MeasuredRun]:
    began_s, futures = time.monotonic(), []
    for number, order in enumerate(orders):
        time.sleep(max(0.0, began_s + number * _INTERPRETERS * START_EVERY_S - time.monotonic()))
        futures.append(pool.submit(measure, order, workload, log))
    for future in futures:
        yield future.result()


def _warm_up(order: RunOrder, workload: SupervisorWorkload, log: LogClient, pool: ThreadPoolExecutor) -> None:
    """Run once sync and once async, unrecorded: the first use of a code path costs what no later one does."""
    futures = []
    for alternative in (Cooperative(), AsyncCancellation()):
        run_id = f"warm-up-{alternative.name}"
        facts = replace(order.facts, run_id=run_id, decision_timeout_s=_WARM_UP_S, horizon_s=_WARM_UP_S + 1.0)
        futures.append(pool.submit(measure, RunOrder(facts, alternative, order.question), workload, log))
    for future in futures:
        future.result()


def _figures(found: Agreement) -> Iterator[Figure]:
    errors_percent = [100 * error for error in found.pairs["error"].dropna()]
    others_percent = [100.0 * other for other in ~found.pairs["same_outcome"]]
    yield sampled("mean completion error", errors_percent, statistics.fmean, unit="%", at_most=100 * MEAN_ERROR)
    yield sampled("other outcome", others_percent, statistics.fmean, unit="%", at_most=100 * (1 - SAME_OUTCOME))
    yield Figure("farthest miss from the deadline", 1000 * found.farthest_miss_s, "ms", at_most=1000 * MISSES_WITHIN_S)
    yield sampled("later on the wall clock, median", list(1000 * found.pairs["later_s"].dropna()), unit="ms")


def _machine_busy_s() -> float:
    """Seconds of CPU that the whole machine has spent since it began."""
    spent = psutil.cpu_times()
    # What a guest of this machine used is part of its users' time already.
    idle = ("idle", "iowait", "guest", "guest_nice")
    return sum(spent) - sum(getattr(spent, name, 0.0) for name in idle)


def _keep(out: Path, virtual: Study, wall: Study, found: Agreement) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from docmind_lab.views import plots

    virtual.save(out / "virtual")
    wall.save(out / "wall")
    plots.agreement(found).figure.savefig(out / "agreement.png", dpi=150)


if __name__ == "__main__":
    print(
        table(
            list(
                run(
                    seed=int(sys.argv[1]),
                    out=Path(sys.argv[2]) if sys.argv[2:] else None,
                    profile=sys.argv[3] if sys.argv[3:] else PROFILE,
                )
            )
        )
    )
