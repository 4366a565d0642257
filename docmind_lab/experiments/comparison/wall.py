"""A comparison on the wall clock: services in a process of their own, runs side by side in threads."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from docmind_lab.alternatives import AsyncCancellation, Cooperative
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison import Comparison, simulated
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.experiments.measurement.simulation import frozen_garbage, live_endpoint_of
from docmind_lab.experiments.recordings.caps import CapReached
from docmind_lab.network.live_endpoints import require_endpoints
from docmind_lab.network.taps import Tap, attach_taps
from docmind_lab.services.server import LogClient
from docmind_lab.systems.base.workload_kind import Surroundings, Workload
from docmind_lab.tables.manifest import MachineUse

# Long enough for the first use of every code path, short enough not to be noticed.
_WARM_UP_S = 3.0
# A run whose services have gone ends within moments, unless its own code blocks.
_LEAVING_S = 0.5


def runs_on_the_wall_clock(
    comparison: Comparison,
    settings: Settings,
    orders: Sequence[RunOrder] | None = None,
    *,
    taps: Iterable[Tap] = (),
    use: MachineUse | None = None,
) -> Generator[MeasuredRun]:
    """Yield the runs as they end.

    orders: of runs that need the comparison's services; None for all of its own. taps: told of every request; what one
    of them keeps back ends its run and begins no other. use: begins to count when the first run does.
    Raises: as `wall_laboratory`; what a run raises.
    """
    if orders is None:
        orders = comparison.orders(has_server_log=not asks_live_endpoints(comparison, settings))
    with wall_laboratory(comparison, settings) as laboratory, attach_taps(*taps):
        yield from laboratory.measure_all(orders, use)


def asks_live_endpoints(comparison: Comparison, settings: Settings) -> bool:
    """Whether some requests go to servers that are not the lab's own: they may cost something, and show no log."""
    has_server_log = comparison.kind.has_server_log and not live_endpoint_of(settings)
    return comparison.clock == "wall" and not has_server_log


@dataclass
class WallLaboratory:
    """A system over sockets, the service's log, and a pool to run in."""

    workload: Workload
    log: LogClient
    pool: ThreadPoolExecutor
    comparison: Comparison

    def measure_all(self, orders: Sequence[RunOrder], use: MachineUse | None = None) -> Generator[MeasuredRun]:
        """The runs as they end, side by side; `use` counts from their begin. Raises: what a run raises.

        Ends are handed over in a queue: `concurrent.futures.wait` takes the locks of all futures at each call, and a
        Ctrl-C in the middle of that would leave some of them taken for ever.
        """
        self._warm_up(orders[0])
        ended: queue.SimpleQueue[Future[MeasuredRun]] = queue.SimpleQueue()
        with frozen_garbage():
            if use is not None:
                use.runs_begin()
            futures = [self.pool.submit(measure, order, self.workload, self.log) for order in orders]
            for future in futures:
                future.add_done_callback(ended.put)
            for _ in orders:
                while True:
                    # A finite wait, so that Ctrl-C is noticed at once on every platform.
                    with contextlib.suppress(queue.Empty):
                        future = ended.get(timeout=0.5)
                        break
                if future.cancelled():
                    continue
                try:
                    yield future.result()
                except CapReached:
                    # Its run is no measurement, and no other begins; those under way may still come to their end.
                    for waiting in futures:
                        waiting.cancel()

    def _warm_up(self, order: RunOrder) -> None:
        """Run once sync and once async, unrecorded: the first use of a code path costs what no later one does."""
        with ThreadPoolExecutor(2) as pool:
            for alternative in (Cooperative(), AsyncCancellation()):
                facts = dataclasses.replace(
                    order.facts,
                    run_id=f"warm-up-{alternative.name}",
                    decision_timeout_s=_WARM_UP_S,
                    horizon_s=_WARM_UP_S + 1.0,
                )
                in_form = RunOrder(facts, self.comparison.runs_by(alternative), order.question)
                pool.submit(measure, in_form, self.workload, self.log)


@contextlib.contextmanager
def _closed_after() -> Iterator[contextlib.ExitStack]:
    """Close a stack after the block; after an interrupt in a thread, which is waited for only so long."""
    with contextlib.ExitStack() as stack:
        try:
            yield stack
        except (KeyboardInterrupt, GeneratorExit):
            leaving = threading.Thread(target=stack.pop_all().close, name="docmind-leaving", daemon=True)
            leaving.start()
            leaving.join(_LEAVING_S)
            raise


@contextlib.contextmanager
def wall_laboratory(comparison: Comparison, settings: Settings) -> Iterator[WallLaboratory]:
    """The laboratory of a comparison's services; all of it gone afterwards.

    The services go first: what still runs then fails at once. A connection closed under a thread that reads from it
    would leave the thread waiting for ever. A run that blocks cannot be ended: after an interrupt what it needs goes
    when it is over, and nobody waits for that longer than `_LEAVING_S`.
    Raises: ServiceError if an endpoint or a service is not there.
    """
    require_endpoints(settings)
    options = dataclasses.replace(simulated(comparison, settings).options, slots_of_run=True)
    with _closed_after() as after_the_services, comparison.kind.serve(options) as services:
        addresses = dataclasses.replace(
            services.addresses,
            openai_base_url=settings.llm.base_url or services.addresses.openai_base_url,
            qdrant_url=settings.database.qdrant_url or services.addresses.qdrant_url,
        )
        log = services.log_client()
        after_the_services.callback(log.close)
        workload = comparison.kind.build(
            Surroundings(
                addresses,
                settings,
                client_retries=comparison.client_retries,
                corpus=comparison.documents.corpus,
                node_mode=comparison.node_mode,
            )
        )
        after_the_services.callback(workload.close)
        # Over nodes that block their event loop one run would hold up every other.
        threads = 1 if comparison.node_mode == "blocking" else comparison.side_by_side
        pool = ThreadPoolExecutor(threads, thread_name_prefix="docmind-run")
        after_the_services.callback(pool.shutdown, wait=True, cancel_futures=True)
        try:
            yield WallLaboratory(workload, log, pool, comparison)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
