"""Whole runs in virtual time: the supervisor under every alternative, measured on the real stack."""

from __future__ import annotations

import math
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from docmind_lab.alternatives import ALTERNATIVES, Alternative, AsyncCancellation, Cooperative, HardTimeout, StopFlag
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.errors import ConfigurationError, SimulationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem, simulate
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.virtual_time import VirtualClock
from docmind_lab.virtual_time.kernel import Kernel

EVERYONE = tuple(kind() for kind in ALTERNATIVES.values())
# Question and seed of the first run: it takes 10.1 s when nothing goes wrong, and its last call is under way at 10.
TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings())
    yield made
    made.close()


def options(*faults: str, behaviour: ServerBehaviour = STOPS, profile: str = "typical") -> ServiceOptions:
    parsed = tuple(Fault.parse(fault) for fault in faults)
    return ServiceOptions(LatencyProfile.named(profile), parsed, behaviour)


def orders(
    services: ServiceOptions,
    alternatives: Sequence[Alternative] = EVERYONE,
    *,
    runs: int = 1,
    timeout_s: float = TIMEOUT_S,
) -> list[RunOrder]:
    comparison = Comparison(
        decision_timeout_s=timeout_s,
        runs=runs,
        alternatives=tuple(alternatives),
        profile=services.profile,
        faults=services.faults,
        server_behaviour=services.behaviour,
    )
    return sorted(comparison.orders(), key=lambda order: order.facts.run_id)


def measured(
    system: SimulatedSystem,
    services: ServiceOptions,
    alternatives: Sequence[Alternative] = EVERYONE,
    **how: float,
) -> dict[str, MeasuredRun]:
    """The runs by their alternative's letter."""
    made = orders(services, alternatives, **how)  # type: ignore[arg-type]
    return {letter_of(order.alternative.name): system.measure(order, services) for order in made}


def tables(run: MeasuredRun) -> str:
    """All values of the three tables, floats to the last bit."""
    return repr((run.run, run.calls, run.events))


# ---- what a run says


def test_each_alternative_returns_when_it_says_it_does_and_what_it_leaves_is_observed_to_its_end(system):
    runs = {letter: item.run for letter, item in measured(system, options()).items()}
    unguarded = runs.pop("control")
    assert unguarded.outcome == "answered"
    assert TIMEOUT_S < unguarded.returned_at_s == unguarded.quiescent_at_s < TIMEOUT_S + 1
    assert {run.clock for run in runs.values()} == {"virtual"}
    for letter in "ABCEF":
        assert runs[letter].returned_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter
    # B's orphan and D's step go on as long as the unguarded run does; the others have left nothing.
    assert runs["D"].returned_at_s == runs["D"].quiescent_at_s == unguarded.returned_at_s
    assert runs["B"].quiescent_at_s == unguarded.returned_at_s
    assert runs["B"].tokens_after_deadline == unguarded.tokens_after_deadline > 0
    assert runs["B"].late_checkpoints > 0
    for letter in "ACEF":
        assert runs[letter].quiescent_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter
        assert (runs[letter].outcome, runs[letter].tokens_after_deadline) == ("partial", 0.0), letter
    assert not any(run.work_censored or run.threads_left for run in runs.values())
    assert all(math.isnan(run.coordination_overhead_s) for run in runs.values())


def test_a_hang_censors_the_work_of_those_that_do_not_cut_it(system):
    runs = {letter: item.run for letter, item in measured(system, options("hang")).items()}
    horizon_s = 5 * TIMEOUT_S
    for letter in ("control", "B", "D"):
        run = runs.pop(letter)
        assert (run.work_censored, run.quiescent_at_s, run.threads_left) == (True, horizon_s, 1), letter
        assert run.busy_after_deadline_s == horizon_s - TIMEOUT_S
        assert run.outcome == ("timed_out" if letter == "B" else "unfinished")
    for letter, run in runs.items():
        assert (run.work_censored, run.threads_left) == (False, 0), letter
        assert run.returned_at_s == run.quiescent_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter


def test_a_service_that_does_not_stop_hangs_on_whoever_left(system):
    services = options("hang", behaviour=GOES_ON)
    for letter, item in measured(system, services, [Cooperative(), AsyncCancellation()]).items():
        run = item.run
        assert run.returned_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter
        assert (run.work_censored, run.busy_after_deadline_s) == (True, 4 * TIMEOUT_S), letter


def test_both_sides_see_the_same_instants(system):
    (item,) = measured(system, options(), [Cooperative()]).values()
    client = {(call.call_id, call.attempt): call for call in item.calls if call.seen_from == "client"}
    server = {(call.call_id, call.attempt): call for call in item.calls if call.seen_from == "server"}
    assert client.keys() == server.keys()
    for key, call in client.items():
        assert call.started_at_s == server[key].started_at_s, key
        assert call.ended_at_s == server[key].ended_at_s, key


# ---- equal tables


HARD = ("http_500@1:*:0.4", "trickle:planner:0.5", "retrieval_slow:*:0.5", "hang:*:0.05")


def test_the_same_order_gives_the_same_tables_whatever_was_measured_before(system):
    for services in (options(), options(*HARD), options(*HARD, behaviour=GOES_ON)):
        made = orders(services, runs=1)
        first = {order.facts.run_id: tables(system.measure(order, services)) for order in made}
        random.Random(1).shuffle(made)
        again = {order.facts.run_id: tables(system.measure(order, services)) for order in made}
        assert again == first


def test_a_run_draws_from_its_own_seed_and_leaves_the_global_generator_as_it_was(system):
    (order,) = orders(options("http_500@1:*"), [StopFlag()])
    random.seed(5)
    state = random.getstate()
    first = tables(system.measure(order, options("http_500@1:*")))
    assert random.getstate() == state
    random.seed(6)
    assert tables(system.measure(order, options("http_500@1:*"))) == first
    other = replace(order, facts=replace(order.facts, seed=order.facts.seed + 1))
    assert tables(system.measure(other, options("http_500@1:*"))) != first


# ---- what a run costs and leaves


def test_a_budget_of_two_hours_takes_the_steps_of_one_of_20_seconds(system, monkeypatch):
    steps: Counter[float] = Counter()
    park = Kernel.park

    def counted(*given: Any, **more: Any) -> bool:
        steps[timeout_s] += 1
        return park(*given, **more)

    monkeypatch.setattr(Kernel, "park", counted)
    services = options("hang", behaviour=GOES_ON)
    for timeout_s in (20.0, 7200.0):
        (order,) = orders(services, [HardTimeout()], timeout_s=timeout_s)
        run = system.measure(order, services).run
    assert (run.returned_at_s, run.quiescent_at_s, run.work_censored) == (7200.0, 36_000.0, True)
    # What waits ten hours by looking now and then would take many times more.
    assert 0 < steps[7200.0] <= steps[20.0] + 10


def test_the_shared_loop_is_one_in_a_run_and_ends_with_it():
    outside = shared_loop()
    clock = VirtualClock()

    async def when() -> float:
        return time.monotonic()

    def twice() -> list[object]:
        assert shared_loop() is shared_loop() is not outside
        first = shared_loop().run(when())
        time.sleep(3.0)
        return [shared_loop(), shared_loop().run(when()) - first]

    loop, passed_s = clock.run(twice)
    assert passed_s == 3.0
    assert not loop.is_alive  # type: ignore[attr-defined]
    assert clock.run(twice)[0] is not loop
    assert shared_loop() is outside
    assert outside.is_alive


def test_settings_that_name_an_endpoint_are_refused():
    with pytest.raises(ConfigurationError, match="llm"):
        SimulatedSystem(Settings(llm={"base_url": "http://127.0.0.1:8000/v1"}))
    with pytest.raises(ConfigurationError, match="database"):
        SimulatedSystem(Settings(database={"qdrant_url": "http://127.0.0.1:6333"}))


def test_a_run_is_not_measured_inside_another(system):
    (order,) = orders(options(), [Cooperative()])
    with pytest.raises(SimulationError):
        VirtualClock().run(lambda: simulate(order, system.workload, system.door(options())))


def test_a_run_that_was_interrupted_anywhere_is_repeated_from_its_begin(
    system: SimulatedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = options()
    (order,) = orders(services, [Cooperative()])
    event, noted, interrupt_at = Recorder.event, 0, 0

    def noting(self: Recorder, *arguments: Any, **named: Any) -> Any:
        nonlocal noted
        noted += 1
        if noted == interrupt_at:
            signal.raise_signal(signal.SIGINT)
        return event(self, *arguments, **named)

    monkeypatch.setattr(Recorder, "event", noting)
    whole = system.measure(order, services)
    for at in range(1, noted, max(1, noted // 6)):
        noted, interrupt_at = 0, at
        with pytest.raises(KeyboardInterrupt):
            system.measure(order, services)
        interrupt_at = 0
        assert tables(system.measure(order, services)) == tables(whole), at
