"""Real laboratories for tests: the services in their process, the workload in ours, and runs measured side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from served_here import Here

from docmind_lab.alternatives import Alternative
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.docmind.docmind_system import SupervisorWorkload


@dataclass
class Laboratory:
    """A workload against simulated services with one profile and one fault."""

    workload: SupervisorWorkload
    log: LogClient
    options: ServiceOptions
    started_runs: int = 0

    def orders(
        self, alternative: Alternative, runs: int, decision_timeout_s: float, horizon_factor: float = 5.0
    ) -> list[RunOrder]:
        """Orders with run ids that no earlier run of this laboratory has had."""
        comparison = Comparison(
            decision_timeout_s=decision_timeout_s,
            runs=runs,
            alternatives=(alternative,),
            profile=self.options.profile,
            faults=self.options.faults,
            horizon_factor=horizon_factor,
        )
        orders = comparison.orders()
        self.started_runs += 1
        prefix = f"{self.started_runs}-"
        return [
            replace(order, facts=replace(order.facts, run_id=prefix + order.facts.run_id, alone=False))
            for order in orders
        ]

    def measure(
        self,
        alternatives: Sequence[Alternative],
        *,
        runs: int = 1,
        decision_timeout_s: float,
        horizon_factor: float = 5.0,
        side_by_side: int = 4,
    ) -> dict[Alternative, list[MeasuredRun]]:
        """Measured runs of each alternative, all of them side by side."""
        with ThreadPoolExecutor(side_by_side) as pool:
            futures = {
                alternative: [
                    pool.submit(measure, order, self.workload, self.log)
                    for order in self.orders(alternative, runs, decision_timeout_s, horizon_factor)
                ]
                for alternative in alternatives
            }
            return {alternative: [f.result() for f in started] for alternative, started in futures.items()}


@contextlib.contextmanager
def laboratory(
    profile: str,
    *faults: str,
    own_process: bool = True,
    **surroundings: Any,
) -> Iterator[Laboratory]:
    """A laboratory of its own, warmed up; gone afterwards.

    own_process: of the services; else a thread of this one serves, over sockets too, which takes no seconds to start
    and shares the interpreter with what is measured. surroundings: fields of `Surroundings`.
    """
    options = ServiceOptions(
        profile=LatencyProfile.named(profile),
        faults=tuple(Fault.parse(fault) for fault in faults),
    )
    with ServiceProcess(options) if own_process else contextlib.closing(Here(options.door())) as services:
        log = LogClient(services.addresses.log_url)
        workload = SupervisorWorkload(Surroundings(services.addresses, Settings(), **surroundings))
        try:
            yield Laboratory(workload, log, options)
        finally:
            workload.close()
            log.close()
