"""A comparison on the wall clock: services in a process of their own, runs side by side in threads."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import queue
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from docmind_lab.alternatives import AsyncCancellation, Cooperative
from docmind_lab.comparison.design import Comparison
from docmind_lab.endpoints import require_endpoints
from docmind_lab.measurement import MeasuredRun, RunOrder, measure
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.settings import Settings
from docmind_lab.system import named_corpus
from docmind_lab.workloads import SupervisorWorkload

# Long enough for the first use of every code path, short enough not to be noticed.
_WARM_UP_S = 3.0


def runs_on_the_wall_clock(comparison: Comparison, settings: Settings) -> Generator[MeasuredRun]:
    """The runs as they end. Raises: ServiceError if an endpoint or a service is not there; what a run raises."""
    require_endpoints(settings)
    with _laboratory(comparison, settings) as (workload, log, pool):
        has_server_log = settings.llm.base_url is None and settings.database.qdrant_url is None
        orders = comparison.orders(has_server_log=has_server_log)
        _warm_up(orders[0], workload, log)
        # A full collection goes through the whole imported stack and stops every run for a third of a second.
        gc.collect()
        gc.freeze()
        try:
            yield from _measured(orders, workload, log, pool)
        finally:
            gc.unfreeze()


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
        corpus = named_corpus(comparison.corpus)
        workload = SupervisorWorkload(addresses, settings, client_retries=comparison.client_retries, corpus=corpus)
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
