"""Estimate the requests and tokens of a live comparison before it sends anything."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from docmind_lab.core.errors import DocmindLabError
from docmind_lab.core.settings import Settings
from docmind_lab.core.text import count_of
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.comparison.comparison import Comparison, simulated
from docmind_lab.experiments.comparison.replays import simulated_name
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.services.faults import Fault

PILOT_QUESTIONS = 3
"""Runs of each alternative in the pilot: the system takes seconds to build, each run a tenth of one."""

# As `comparison.wall` does, on the same endpoint and for as much.
_WARM_UP_RUNS = 2


@dataclass(frozen=True)
class RequestEstimate:
    """Estimated model requests of a live study, and their tokens in both directions.

    requests, tokens: each alternative's median run, as often as it is run, and the warm-up. most_requests, most_tokens:
    the same with the worst run of the pilot; no bound, since another model may take other ways. pilot_runs: how many
    that was. tries: requests that one call makes when each fails, as its client and the graph try again.
    """

    requests: int
    tokens: int
    most_requests: int
    most_tokens: int
    runs: int
    pilot_runs: int
    tries: int = 1

    @property
    def safe_cap(self) -> int:
        """Requests of a study whose runs are all as the worst of the pilot, and whose calls take all their tries."""
        return self.most_requests * self.tries

    def __str__(self) -> str:
        again = (
            f"; calls that fail are tried up to {self.tries} times, which makes it {self.safe_cap:,}"
            if self.tries > 1
            else ""
        )
        return (
            f"{count_of(self.runs, 'run')}: about {self.requests:,} requests and {self.tokens:,} tokens, "
            f"{self.most_requests:,} and {self.most_tokens:,} if every run were as the worst "
            f"(from {count_of(self.pilot_runs, 'run')} of the simulated model in virtual time, by its own count of "
            f"tokens; your model may say more, and take other ways){again}. None of this is a limit: "
            f"--max-requests {self.safe_cap} is"
        )


def request_estimate(orders: Sequence[RunOrder], system: Simulated, runs: int) -> RequestEstimate:
    """Estimate the requests of a study with so many runs of each alternative, from a pilot's orders.

    Raises: what a run in virtual time raises.
    """
    arms: dict[tuple[str, str], list[tuple[int, int]]] = {}
    options = dataclasses.replace(system.options, faults=(Fault("http_500", role="*"),))
    failing = dataclasses.replace(system, options=options)
    tries = 1
    with contextlib.closing(system.build()) as built:
        for order in orders:
            arm = (order.facts.alternative, order.facts.alternative_options)
            if arm not in arms:
                tries = max(tries, _tries_of(failing.measure(built, order)))
            arms.setdefault(arm, []).append(_traffic_of(system.measure(built, order)))
    totals: list[int] = []
    for statistic in (statistics.median, max):
        for which in (0, 1):
            of_arms = [statistic([run[which] for run in arm]) for arm in arms.values()]
            totals.append(round(runs * sum(of_arms) + _WARM_UP_RUNS * max(of_arms)))
    requests, tokens, most_requests, most_tokens = totals
    pilot_runs = sum(map(len, arms.values()))
    return RequestEstimate(requests, tokens, most_requests, most_tokens, runs * len(arms), pilot_runs, tries)


def _tries_of(measured: MeasuredRun) -> int:
    """Return the most requests that one step of a run made whose model always fails."""
    model = [call for call in measured.calls if call.kind == "llm" and call.seen_from == "client"]
    # Whoever tries again above the client makes a call of its own, in the same step and with the next ordinal.
    steps = Counter((call.role, call.step.rpartition(".")[0]) for call in model if call.outcome != "refused")
    return max(steps.values(), default=1)


def _traffic_of(measured: MeasuredRun) -> tuple[int, int]:
    """Return a run's number of model requests, and their tokens as the simulated service counts them."""
    model = [call for call in measured.calls if call.kind == "llm"]
    requests = sum(call.seen_from == "client" and call.outcome != "refused" for call in model)
    tokens = sum(call.input_tokens + call.output_tokens for call in model if call.seen_from == "server")
    return requests, int(tokens)


def expected_to_send(comparison: Comparison, settings: Settings) -> str:
    """Return a sentence with the requests and tokens of a comparison, from a few of its runs in virtual time.

    Takes some seconds, and sends nothing. A graph that simulated services cannot answer has no pilot; the sentence says
    why.
    """
    pilot = dataclasses.replace(
        comparison,
        clock="virtual",
        runs=min(PILOT_QUESTIONS, comparison.runs),
        workload=simulated_name(comparison.workload),
    )
    simulating = settings.replaced(llm={"base_url": None, "model": "docmind-scripted"}, database={"qdrant_url": None})
    try:
        return str(request_estimate(pilot.orders(), simulated(pilot, simulating), comparison.runs))
    except DocmindLabError as error:
        return f"{comparison.total_runs} runs; how many requests is not known, since no pilot can be run: {error}"
