"""The main job: the same questions under every alternative, measured."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.alternatives import ALTERNATIVES, Alternative, AsyncCancellation, Cooperative
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.deadlines import require_seconds
from docmind_lab.derive import RunFacts
from docmind_lab.endpoints import require_endpoints
from docmind_lab.errors import ConfigurationError
from docmind_lab.manifest import manifest_of
from docmind_lab.measurement import MeasuredRun, RunOrder, measure
from docmind_lab.randomness import keyed_uniform
from docmind_lab.retrieval import Question, load_questions
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.settings import Settings
from docmind_lab.study import Study, prepare_folder
from docmind_lab.workloads import SupervisorWorkload

DEFAULT_PROFILE = "typical/6"
HORIZON_FACTOR = 5.0
# Runs wait for servers nearly all the time; four side by side use about a third of one core, and a deadline still
# comes to within a few milliseconds. More would begin to measure each other.
SIDE_BY_SIDE = 4
# Long enough for the first use of every code path, short enough not to be noticed.
_WARM_UP_S = 3.0
_MOST_RUNS = 10_000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Comparison:
    """What to compare. Durations in seconds. Raises: ConfigurationError for a value that cannot be used, by name."""

    decision_timeout_s: float = 2.0
    runs: int = 8
    seed: int = 7
    alternatives: tuple[Alternative, ...] = field(
        default_factory=lambda: tuple(kind() for kind in ALTERNATIVES.values())
    )
    profile: LatencyProfile = field(default_factory=lambda: LatencyProfile.named(DEFAULT_PROFILE))
    faults: tuple[Fault, ...] = ()
    stops_on_disconnect: bool = True
    client_retries: int | None = None
    horizon_factor: float = HORIZON_FACTOR
    side_by_side: int = SIDE_BY_SIDE
    router_injection: bool = False

    def __post_init__(self) -> None:
        require_seconds("decision timeout", self.decision_timeout_s)
        if self.runs < 1 or self.runs > _MOST_RUNS:
            raise ConfigurationError(f"runs must be between 1 and {_MOST_RUNS}, not {self.runs}")
        if not self.alternatives:
            raise ConfigurationError(f"name at least one alternative of {', '.join(ALTERNATIVES)}")
        if not self.horizon_factor > 1:
            raise ConfigurationError(f"horizon_factor must be above 1, not {self.horizon_factor}")
        if self.side_by_side < 1:
            raise ConfigurationError(f"side_by_side must be 1 or more runs, not {self.side_by_side}")

    @property
    def fault(self) -> str:
        """The level of the `fault` factor."""
        return "+".join(str(fault) for fault in self.faults if fault.kind != "none") or "none"

    def design(self) -> dict[str, Any]:
        """What determines the runs, as JSON."""
        return {
            "decision_timeout_s": self.decision_timeout_s,
            "runs": self.runs,
            "seed": self.seed,
            "alternatives": [{"name": a.name, "options": json.loads(options_json(a))} for a in self.alternatives],
            "latency_profile": self.profile.to_dict(),
            "fault": self.fault,
            "stops_on_disconnect": self.stops_on_disconnect,
            "client_retries": self.client_retries,
            "horizon_factor": self.horizon_factor,
            "side_by_side": self.side_by_side,
            "router_injection": self.router_injection,
            "clock": "wall",
        }

    @property
    def study_id(self) -> str:
        """A name derived from the design: the same comparison has the same one."""
        digest = hashlib.blake2b(json.dumps(self.design(), sort_keys=True).encode(), digest_size=5)
        return f"compare-{digest.hexdigest()}"

    def questions(self) -> list[tuple[int, Question]]:
        """(run seed, question) of each repeat: seeds count up from the study's, the order of questions from it."""
        pool = sorted(load_questions(), key=lambda question: keyed_uniform(self.seed, "question", question.id))
        return [(self.seed + repeat, pool[repeat % len(pool)]) for repeat in range(self.runs)]

    def orders(self, workload: SupervisorWorkload, *, has_server_log: bool) -> list[RunOrder]:
        """Every run, in an order drawn from the seed, so that a drift of the machine strikes no alternative alone."""
        orders = [
            self._order(workload, alternative, seed, question, number, has_server_log)
            for number, alternative in enumerate(self.alternatives)
            for seed, question in self.questions()
        ]
        return sorted(orders, key=lambda order: keyed_uniform(self.seed, "order", order.facts.run_id))

    def _order(
        self,
        workload: SupervisorWorkload,
        alternative: Alternative,
        seed: int,
        question: Question,
        number: int,
        has_server_log: bool,
    ) -> RunOrder:
        facts = RunFacts(
            study_id=self.study_id,
            run_id=f"{self.study_id}-{number}-{alternative.name}-{seed}",
            workload=workload.name,
            alternative=alternative.name,
            alternative_options=options_json(alternative),
            seed=seed,
            question_id=question.id,
            decision_timeout_s=self.decision_timeout_s,
            horizon_s=self.horizon_factor * self.decision_timeout_s,
            deadline_propagation=alternative.propagates,
            router_injection=self.router_injection,
            retries=workload.retries(alternative),
            latency_profile=self.profile.name if has_server_log else "",
            fault=self.fault,
            stops_on_disconnect=self.stops_on_disconnect,
            node_colour=alternative.node_colour,
            clock="wall",
            gold_topics=question.gold_topics,
            has_server_log=has_server_log,
            alone=self.side_by_side == 1,
        )
        return RunOrder(facts, alternative, question)


def compare(
    decision_timeout_s: float = 2.0,
    runs: int = 8,
    seed: int = 7,
    *,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: str | LatencyProfile = DEFAULT_PROFILE,
    faults: Sequence[str | Fault] | str = (),
    stops_on_disconnect: bool = True,
    retries: int | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    router_injection: bool | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Study:
    """The same questions under every alternative, on the wall clock.

        study = dl.compare(decision_timeout_s=2, runs=8, seed=7)
        study                                   # a table, and what it says
        dl.compare(faults="hang", alternatives="A,B,C")

    decision_timeout_s: the budget of each run, seconds. runs: questions asked of each alternative. alternatives:
    levels, letters ("A"), variants ("A:per_read", "B:naive") or instances; None for all. profile: a latency profile
    or its name. faults: as `services.faults` writes them. retries: tries after the first, of whoever retries under
    an alternative; None leaves the openai client its own 2. side_by_side: runs under way at once; 1 measures
    coordination overhead too. router_injection: retrieval asks a router engine first, as ADR-056 has it; None for what
    the settings say. out: a folder for tables, plots and report. progress: called with (done, all).

    Interrupted, it raises KeyboardInterrupt after saving the finished runs to `out`, if there is one.
    Raises: ConfigurationError for a value that cannot be used; ServiceError if the services do not start.
    """
    settings = settings or Settings()
    fault_list = [faults] if isinstance(faults, str) else list(faults)
    comparison = Comparison(
        decision_timeout_s=decision_timeout_s,
        runs=runs,
        seed=seed,
        alternatives=parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries),
        profile=LatencyProfile.named(profile) if isinstance(profile, str) else profile,
        faults=tuple(Fault.parse(item) if isinstance(item, str) else item for item in fault_list),
        stops_on_disconnect=stops_on_disconnect,
        client_retries=retries,
        side_by_side=side_by_side,
        router_injection=settings.agents.enable_router_injection if router_injection is None else router_injection,
    )
    return run_comparison(comparison, settings, out=out, progress=progress)


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Study:
    """`compare`, for a comparison that has been checked."""
    _check_settings(comparison, settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    if out is not None:
        prepare_folder(out)
    require_endpoints(settings)
    measured: list[MeasuredRun] = []
    interrupted: KeyboardInterrupt | None = None
    try:
        with _laboratory(comparison, settings) as (workload, log, pool):
            has_server_log = settings.llm.base_url is None and settings.database.qdrant_url is None
            orders = comparison.orders(workload, has_server_log=has_server_log)
            _warm_up(orders[0], workload, log)
            for run in _measured(orders, workload, log, pool):
                measured.append(run)
                if progress is not None:
                    progress(len(measured), len(orders))
    except KeyboardInterrupt as error:
        interrupted = error
    study = Study.of(
        measured, manifest_of(comparison.design(), settings, study_id=comparison.study_id, complete=interrupted is None)
    )
    if out is not None and measured:
        # Function-level: drawing is slow to import and not needed to measure.
        from docmind_lab.report import save_study  # noqa: PLC0415

        save_study(study, out)
    if interrupted is not None:
        raise interrupted
    return study


def _check_settings(comparison: Comparison, settings: Settings) -> None:
    propagating = [alternative.name for alternative in comparison.alternatives if alternative.propagates]
    if propagating and not settings.agents.enable_deadline_propagation:
        raise ConfigurationError(
            f"agents.enable_deadline_propagation=false would make {', '.join(propagating)} another alternative; "
            "leave it on, or leave the alternative out"
        )
    if settings.database.qdrant_path:
        raise ConfigurationError(
            "database.qdrant_path: a local store has no network and knows no timeouts, so there is nothing to "
            "measure; use database.qdrant_url, or neither for the simulated store"
        )


@contextlib.contextmanager
def _laboratory(
    comparison: Comparison, settings: Settings
) -> Iterator[tuple[SupervisorWorkload, LogClient, ThreadPoolExecutor]]:
    """The system, the service's log, and a pool to run in; all gone afterwards.

    The services go first: what still runs then fails at once. A connection closed under a thread that reads from it
    would leave the thread waiting for ever.
    """
    options = ServiceOptions(
        profile=comparison.profile,
        faults=comparison.faults,
        stops_on_disconnect=comparison.stops_on_disconnect,
        seed=comparison.seed,
    )
    with contextlib.ExitStack() as after_the_services, ServiceProcess(options) as services:
        addresses = dataclasses.replace(
            services.addresses,
            openai_base_url=settings.llm.base_url or services.addresses.openai_base_url,
            qdrant_url=settings.database.qdrant_url or services.addresses.qdrant_url,
        )
        log = LogClient(services.addresses.log_url)
        after_the_services.callback(log.close)
        workload = SupervisorWorkload(addresses, settings, client_retries=comparison.client_retries)
        after_the_services.callback(workload.close)
        pool = ThreadPoolExecutor(comparison.side_by_side, thread_name_prefix="docmind-run")
        after_the_services.callback(pool.shutdown, wait=True, cancel_futures=True)
        try:
            yield workload, log, pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _warm_up(order: RunOrder, workload: SupervisorWorkload, log: LogClient) -> None:
    """Run once sync and once async, unrecorded: the first use of a code path costs what no later one does."""
    with ThreadPoolExecutor(2) as pool:
        for alternative in (Cooperative(), AsyncCancellation()):
            facts = dataclasses.replace(
                order.facts,
                run_id=f"warm-up-{alternative.name}",
                decision_timeout_s=_WARM_UP_S,
                horizon_s=_WARM_UP_S + 1.0,
            )
            pool.submit(measure, RunOrder(facts, alternative, order.question), workload, log)


def _measured(
    orders: Sequence[RunOrder], workload: SupervisorWorkload, log: LogClient, pool: ThreadPoolExecutor
) -> Iterator[MeasuredRun]:
    """The runs as they end. Raises what a run raises.

    Ends are handed over in a queue: `concurrent.futures.wait` takes the locks of all futures at each call, and a
    Ctrl-C in the middle of that would leave some of them taken for ever.
    """
    ended: queue.SimpleQueue[Future[MeasuredRun]] = queue.SimpleQueue()
    for order in orders:
        pool.submit(measure, order, workload, log).add_done_callback(ended.put)
    for _ in orders:
        yield _next_end(ended).result()


def _next_end(ended: queue.SimpleQueue[Future[MeasuredRun]]) -> Future[MeasuredRun]:
    while True:
        # A finite wait, so that Ctrl-C is noticed at once on every platform.
        with contextlib.suppress(queue.Empty):
            return ended.get(timeout=0.5)
