"""Requests and tokens that a live study is expected to send, before it sends any: from runs in virtual time.

print(request_estimate(orders, system, runs=8))
about 590 requests and 410,000 tokens, at most … (from 21 runs of the simulated model; yours may say more or less)
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from docmind_lab.analysis.text import counted
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem

PILOT_QUESTIONS = 3
"""Runs of each alternative in the pilot: the system takes seconds to build, each run a tenth of one."""

# As `comparison.wall` does, on the same endpoint and for as much.
_WARM_UP_RUNS = 2


@dataclass(frozen=True)
class RequestEstimate:
    """What a live study is expected to send: model requests, and the tokens of both ways.

    requests, tokens: each alternative's median run, as often as it is run, and the warm-up. most_requests, most_tokens:
    the same with the worst run of the pilot; no bound, since another model may take other ways. pilot_runs: how many
    that was.
    """

    requests: int
    tokens: int
    most_requests: int
    most_tokens: int
    runs: int
    pilot_runs: int

    def __str__(self) -> str:
        return (
            f"{counted(self.runs, 'run')}: about {self.requests:,} requests and {self.tokens:,} tokens, "
            f"{self.most_requests:,} and {self.most_tokens:,} if every run were as the worst "
            f"(from {counted(self.pilot_runs, 'run')} of the simulated model in virtual time, by its own count of "
            "tokens; your model may say more, and take other ways)"
        )


def request_estimate(orders: Sequence[RunOrder], system: Simulated, runs: int) -> RequestEstimate:
    """The estimate. orders: of the pilot, in virtual time. system: simulated, whatever endpoint the study will ask.
    runs: of each alternative in the study. Raises: what a run in virtual time raises.
    """
    built = SimulatedSystem(
        system.settings, client_retries=system.client_retries, corpus=system.corpus, kind=system.workload
    )
    arms: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with contextlib.closing(built):
        for order in orders:
            measured = built.measure(order, system.options, node_colour=system.node_colour)
            arm = (order.facts.alternative, order.facts.alternative_options)
            arms.setdefault(arm, []).append(_sent(measured))
    return _estimate(list(arms.values()), runs)


def _sent(measured: MeasuredRun) -> tuple[int, int]:
    """Model requests of a run, and their tokens as the simulated service counts them."""
    model = [call for call in measured.calls if call.kind == "llm"]
    requests = sum(call.seen_from == "client" and call.outcome != "refused" for call in model)
    tokens = sum(call.input_tokens + call.output_tokens for call in model if call.seen_from == "server")
    return requests, int(tokens)


def _estimate(arms: Sequence[Sequence[tuple[int, int]]], runs: int) -> RequestEstimate:
    typical = [[statistics.median(run[which] for run in arm) for arm in arms] for which in (0, 1)]
    worst = [[max(run[which] for run in arm) for arm in arms] for which in (0, 1)]
    requests, tokens = (round(runs * sum(each) + _WARM_UP_RUNS * max(each)) for each in typical)
    most_requests, most_tokens = (round(runs * sum(each) + _WARM_UP_RUNS * max(each)) for each in worst)
    return RequestEstimate(requests, tokens, most_requests, most_tokens, runs * len(arms), sum(map(len, arms)))


def without_endpoints(system: Simulated) -> Simulated:
    """The system on simulated services: what a live study would ask, asked of them."""
    settings = system.settings.replaced(
        llm={"base_url": None, "model": "docmind-scripted"}, database={"qdrant_url": None, "qdrant_path": None}
    )
    return dataclasses.replace(system, settings=settings)
