"""What virtual time costs over the code it runs, and how much faster than real time it is.

Ratios are of CPU, in pairs that ask the same questions and get the same answers with the same requests. The floor is
the bare graph of `instrumentation`, without latencies and without a kernel: what LangGraph and the clients themselves
compute. What the simulated services compute is no part of it: their replies are remembered, unless a line says else.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.state import CompiledStateGraph

from benchmarks.figures import Figure, sampled
from benchmarks.in_process import ADDRESSES, InProcessServices, in_process
from benchmarks.instrumentation import _bare, _bare_graph
from benchmarks.pairs import Work, built_for_good, pair_ratios
from docmind_lab.alternatives import Cooperative
from docmind_lab.core.alternative_catalogue import label_of, rank_of
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement import simulation
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem, simulate
from docmind_lab.services.faults import Fault
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, Service, ServiceRequest
from docmind_lab.services.server import ServiceOptions
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.virtual_time import VirtualClock

KERNEL_TARGET, WHOLE_TARGET = 1.15, 1.3
SPEED_UP_TARGET = 300.0
"""Virtual seconds for one of CPU, at a budget of `TIMEOUT_S`."""
LONG_RUN_TARGET_S = 1.0
PLAIN_TARGET = 0.9

QUESTIONS, REPEATS, RUNS = 4, 5, 5
# Under heavy_tail about half of the questions are answered in a minute: runs take most of it.
TIMEOUT_S, PROFILE = 60.0, "heavy_tail"
LONG_TIMEOUT_S = 7_200.0
# No run of the pairs comes near it.
_AMPLE_TIMEOUT_S = 600.0
_SEED = 7
# An index is built without a virtual wait.
_BUILD_STALL_AFTER_S = 600.0
_numbers = itertools.count(1)

Graph = CompiledStateGraph[Any, Any, Any, Any]
Timed = tuple[MeasuredRun, float, float]
"""A run, the seconds of CPU it took, and the real seconds."""


def run(questions: int = QUESTIONS, repeats: int = REPEATS, runs: int = RUNS) -> Iterator[Figure]:
    """Ratios to the floor; the speed-up, all in all and for each alternative; a run of two hours; where CPU goes.

    questions, repeats: of each ratio. runs: of each alternative, for the speed-up.
    """
    with closing(SimulatedSystem(Settings())) as system:
        arms = _Floor(), _UnderTheKernel(), _Measured(system)
        with built_for_good():
            yield from _ratios(*arms, load_questions()[:questions], repeats)
            yield from _speed_ups(system, runs)
            yield from _long_runs(system)
            yield from _with_and_without_plain_parameters(system, runs)
            yield from _shares(system, questions)


# ---- ratios to the floor


def _ratios(
    floor: _Floor, kernel: _UnderTheKernel, whole: _Measured, questions: Sequence[Question], repeats: int
) -> Iterator[Figure]:
    def ratio(
        what: str, arm: _UnderTheKernel | _Measured, works_out: tuple[bool, bool], at_most: float | None = None
    ) -> Figure:
        in_arm, in_floor = works_out
        pairs = [(arm.work(question, in_arm), floor.work(question, in_floor)) for question in questions]
        return sampled(what, pair_ratios(pairs, repeats), at_most=at_most)

    yield ratio("bare graph in virtual time / without a kernel", kernel, (False, False), KERNEL_TARGET)
    yield ratio("instrumented in virtual time / bare without a kernel", whole, (False, False), WHOLE_TARGET)
    yield ratio("  with the services' own work in both", whole, (True, True), WHOLE_TARGET)
    # Not equal work, so without a target: what a run costs all in all beside what nobody can take from it.
    yield ratio("  with the services' own work in the first only", whole, (True, False))


class _Services(InProcessServices):
    """Services in this process that remember their replies, or work out each one."""

    remembers = True

    def reply(self, method: str, path: str, body: bytes) -> bytes:
        """The whole response to a request."""
        if not self.remembers:
            self._replies.clear()
        return super().reply(method, path, body)


class _Floor:
    """The bare graph over services without latency, without a kernel."""

    def __init__(self) -> None:
        self.services = _Services()
        with in_process(self.services):
            self.graph = _bare_graph()

    def work(self, question: Question, works_out: bool) -> Work:
        """A run; returns answer, documents and requests. works_out: whether the services do, rather than remember."""
        run_once = _bare(self.graph, question, self.services)

        def work() -> Any:
            self.services.remembers = not works_out
            return run_once()

        return work


@dataclass
class Remembered:
    """A service that works out its plan for a request once, and counts the requests.

    What sets up the store is not remembered, as in `in_process`. remembers: False to work out each one.
    """

    service: Service
    kind: str
    requests: Counter[str]
    remembers: bool = True
    _plans: dict[tuple[Any, ...], Plan] = field(default_factory=dict)

    def plan(self, request: ServiceRequest) -> Plan:
        """The plan for the request."""
        self.requests[self.kind] += 1
        if not self.remembers or not (request.path.startswith("/v1/") or "/points/query" in request.path):
            return self.service.plan(request)
        # Latencies are drawn by the key, so it is part of what the plan depends on.
        key = request.method, request.path, request.body, request.draw_key("", "", 0)
        if key not in self._plans:
            self._plans[key] = self.service.plan(request)
        return self._plans[key]


def _remembering(door: VirtualDoor) -> tuple[VirtualDoor, Counter[str]]:
    """The door with its services remembered, and the counter of their requests."""
    requests: Counter[str] = Counter()
    door.llm = Remembered(door.llm, "llm", requests)
    door.vectors = Remembered(door.vectors, "retrieval", requests)
    return door, requests


class _UnderTheKernel:
    """The bare graph over the virtual door, with latencies."""

    def __init__(self) -> None:
        profile = LatencyProfile.named("typical")
        door = VirtualDoor(OpenAIService(profile), VectorService(profile), addresses=(_host_and_port(),))
        self.door, self.requests = _remembering(door)
        self.graph: Graph = VirtualClock(on_entry=[self.door.open], stall_after_s=_BUILD_STALL_AFTER_S).run(_bare_graph)

    def work(self, question: Question, works_out: bool) -> Work:
        """A run; returns answer, documents and requests. works_out: whether the services do, rather than remember."""
        assert not works_out, "there is no arm that works out each reply of a bare graph"
        saver = self.graph.checkpointer
        assert isinstance(saver, InMemorySaver)

        def work() -> tuple[Any, ...]:
            self.requests.clear()
            thread = f"virtual-{next(_numbers)}"
            clock = VirtualClock(on_entry=[self.door.open])
            inputs = {"messages": [HumanMessage(question.text, id="question")]}
            state = clock.run(self.graph.invoke, inputs, {"configurable": {"thread_id": thread}})
            assert clock.now() > 0, "no virtual time has passed: the latencies were not there"
            saver.delete_thread(thread)
            # A bare client says nothing of the run it belongs to.
            self.door.log.forget("")
            return (
                state["messages"][-1].text,
                [document["id"] for document in state["documents"]],
                dict(self.requests),
            )

        return work


def _host_and_port() -> tuple[str, int]:
    """Where the bare graph's clients look for the services."""
    host, _, port = ADDRESSES.qdrant_url.removeprefix("http://").partition(":")
    return host, int(port)


class _Measured:
    """A whole measured run under alternative A: set-up, observation up to the quiet, and the three tables."""

    def __init__(self, system: SimulatedSystem) -> None:
        self.system = system
        self.door, self.requests = _remembering(
            system.door(ServiceOptions(profile=LatencyProfile.named("typical"), seed=_SEED))
        )

    def work(self, question: Question, works_out: bool) -> Work:
        """A run; returns answer, documents and requests. works_out: whether the services do, rather than remember."""
        order = _order_for(question)

        def work() -> tuple[Any, ...]:
            self.requests.clear()
            for service in (self.door.llm, self.door.vectors):
                assert isinstance(service, Remembered)
                service.remembers = not works_out
            measured = simulate(order, self.system.workload, self.door)
            assert measured.run.outcome == "answered", f"the run was not answered: {measured.run.outcome}"
            assert len(measured.calls) == 2 * self.requests.total(), "each request is a row of either side"
            outcome = measured.outcome
            return outcome.answer, [document["id"] for document in outcome.documents], dict(self.requests)

        return work


def _order_for(question: Question) -> RunOrder:
    """A run of the question under A, within an ample budget."""
    comparison = Comparison(_AMPLE_TIMEOUT_S, len(load_questions()), _SEED, (Cooperative(),))
    return next(order for order in comparison.orders() if order.question == question)


# ---- how fast


def _timed(system: SimulatedSystem, comparison: Comparison) -> list[Timed]:
    """The comparison's runs, one after the other in this thread."""
    options = ServiceOptions(comparison.profile, comparison.faults, comparison.server_behaviour, seed=comparison.seed)
    timed = []
    for order in comparison.orders():
        real_s, cpu_s = time.perf_counter(), time.process_time()
        measured = system.measure(order, options)
        timed.append((measured, time.process_time() - cpu_s, time.perf_counter() - real_s))
    return timed


def _speed_ups(system: SimulatedSystem, runs: int) -> Iterator[Figure]:
    comparison = Comparison(TIMEOUT_S, runs, _SEED, profile=LatencyProfile.named(PROFILE))
    # One of each alternative beforehand: the first use of a code path costs what no later one does.
    _timed(system, Comparison(TIMEOUT_S, 1, _SEED))
    timed = _timed(system, comparison)
    yield _per_virtual_minute(timed)
    yield _speed_up(f"virtual seconds for one of CPU, {TIMEOUT_S:g} s budget, {PROFILE}", timed)
    by_name = itertools.groupby(
        sorted(timed, key=lambda item: rank_of(item[0].run.alternative)), lambda item: item[0].run.alternative
    )
    for name, some in by_name:
        yield _speed_up(f"  {label_of(name)}", list(some))
    real_s = sum(item[2] for item in timed)
    yield Figure(
        "virtual seconds for a real one, whatever else the machine did", sum(map(_virtual_s, timed)) / real_s, "×"
    )


def _with_and_without_plain_parameters(system: SimulatedSystem, runs: int) -> Iterator[Figure]:
    """What a run costs beside one for which openai walks through its parameters: the same runs, in turn."""
    comparison = Comparison(TIMEOUT_S, runs, _SEED, profile=LatencyProfile.named(PROFILE))

    def cpu_s() -> tuple[float, list[Any]]:
        timed = _timed(system, comparison)
        return sum(item[1] for item in timed), [repr(item[0].run) for item in timed]

    ratios = []
    for _ in range(3):
        plain_s, plain = cpu_s()
        with patch.object(simulation, "plain_parameters", nullcontext):
            walked_s, walked = cpu_s()
        assert plain == walked, "the runs differ"
        ratios.append(plain_s / walked_s)
    yield sampled("CPU of a run / with openai's own walk through parameters", ratios, at_most=PLAIN_TARGET)


def _virtual_s(timed: Timed) -> float:
    """How long the run took in virtual time: until nothing of it was under way."""
    return timed[0].run.quiescent_at_s


def _per_virtual_minute(timed: Sequence[Timed]) -> Figure:
    """CPU for 60 virtual seconds, which is the speed-up in a form that has an upper limit."""

    def cpu_ms(chosen: Sequence[float]) -> float:
        return 60_000 / _ratio_of_sums(timed, chosen)

    limit_ms = 60_000 / SPEED_UP_TARGET
    return sampled("CPU for a virtual minute", range(len(timed)), cpu_ms, unit="ms", at_most=limit_ms)


def _speed_up(what: str, timed: Sequence[Timed]) -> Figure:
    return sampled(what, range(len(timed)), lambda chosen: _ratio_of_sums(timed, chosen), unit="×")


def _ratio_of_sums(timed: Sequence[Timed], chosen: Sequence[float]) -> float:
    """Virtual seconds over seconds of CPU, of the runs with these numbers. Not a mean of ratios: long runs count."""
    some = [timed[int(number)] for number in chosen]
    return sum(map(_virtual_s, some)) / sum(item[1] for item in some)


def _long_runs(system: SimulatedSystem) -> Iterator[Figure]:
    hang = Comparison(LONG_TIMEOUT_S, 1, _SEED, profile=LatencyProfile.named(PROFILE), faults=(Fault.parse("hang"),))
    # Those that cap a single request give up long before such a budget ends, and prove nothing.
    lasting = [item for item in _timed(system, hang) if _virtual_s(item) >= LONG_TIMEOUT_S]
    slowest = max(lasting, key=lambda item: item[2])
    minutes = f"{LONG_TIMEOUT_S / 60:g} min"
    yield Figure(f"runs that a hang keeps for {minutes} or longer", len(lasting), "runs")
    yield Figure("  real time of the slowest", slowest[2] * 1000, "ms", at_most=LONG_RUN_TARGET_S * 1000)
    yield Figure("  its CPU", slowest[1] * 1000, "ms")


# ---- where the CPU goes

_PARTS: dict[str, list[tuple[Any, str]]] = {
    "vector store (qdrant's local engine)": [(VectorService, "plan")],
    "scripted model": [(OpenAIService, "plan")],
    "serialising checkpoints": [(JsonPlusSerializer, "dumps_typed"), (JsonPlusSerializer, "loads_typed")],
}


def _shares(system: SimulatedSystem, runs: int) -> Iterator[Figure]:
    """Parts of the CPU of a run under A, at the latencies of the speed-up."""
    comparison = Comparison(TIMEOUT_S, runs, _SEED, (Cooperative(),), profile=LatencyProfile.named(PROFILE))
    spent_s = dict.fromkeys(_PARTS, 0.0)
    with ExitStack() as stack:
        for what, functions in _PARTS.items():
            for owner, name in functions:
                stack.enter_context(_counted(owner, name, what, spent_s))
        whole_s = sum(item[1] for item in _timed(system, comparison))
    for what in _PARTS:
        assert spent_s[what] > 0, f"{what} was not called"
        yield Figure(f"share of the CPU of a run under A: {what}", 100 * spent_s[what] / whole_s, "%")


@contextmanager
def _counted(owner: Any, name: str, what: str, spent_s: dict[str, float]) -> Iterator[None]:
    """Add the CPU of each call of `owner.name` to `spent_s[what]` during a block."""
    real = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        # Of this thread; the kernel does not replace this clock.
        begun_s = time.thread_time()
        try:
            return real(*args, **kwargs)
        finally:
            spent_s[what] += time.thread_time() - begun_s

    with patch.object(owner, name, call):
        yield
