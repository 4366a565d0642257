"""Runs in virtual time: the system on virtual services, built once and measured any number of times.

    system = SimulatedSystem(Settings())
    measured = system.measure(order, ServiceOptions(profile=..., faults=...))

A run of minutes costs the CPU time of its Python code. The same order and options give the same three tables, bit for
bit, whatever was measured before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.experiments.recordings.replay import ReplayOptions
from docmind_lab.network.openai_parameters import plain_parameters
from docmind_lab.services.plan import Plan, ServiceRequest
from docmind_lab.services.server import ServiceAddresses, ServiceOptions
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.documents import Library, LibraryPlace
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.workload_kind import Surroundings, Workload
from docmind_lab.systems.workload_by_name import workload_kind
from docmind_lab.virtual_time import VirtualClock

if TYPE_CHECKING:
    from docmind_lab.services.vector_service import VectorService

# Beyond a run's own horizon: for what was cut there to unwind, and for a thread that sleeps to be left.
_AFTER_HORIZON_S = 60.0
# Encoding and storing a corpus is one long computation, which waits for nothing in virtual time.
_BUILD_STALL_AFTER_S = 600.0


def simulate(order: RunOrder, workload: Workload, door: VirtualDoor, *, schedule: int | None = None) -> MeasuredRun:
    """Measure the run on a virtual clock of its own, from instant 0; its `clock` column says "virtual".

    workload: one whose clients reach the addresses of the door. schedule: draws another order of threads and tasks
    that are ready at one instant; None for first come, first served.

    Raises: what `measure` raises; SimulationStalled, after which this process cannot be trusted with further runs.
    """
    facts = dataclasses.replace(order.facts, clock="virtual")
    clock = VirtualClock(
        seed=schedule,
        horizon_s=facts.horizon_s + _AFTER_HORIZON_S,
        on_entry=[lambda _: fixed_randomness(facts.seed), lambda _: plain_parameters(), door.open],
    )
    try:
        return clock.run(measure, dataclasses.replace(order, facts=facts), workload, door, clock)
    except BaseException:
        # A run that was interrupted may have had no chance to; what is kept of it would be the begin of its repeat.
        workload.forget(facts.run_id)
        raise


@contextlib.contextmanager
def fixed_randomness(seed: int) -> Iterator[None]:
    """Make the global random generator and garbage collection behave the same in every repeat of a run.

    The openai client draws the jitter of its retries from there. An object that closes a connection when it is
    collected would do so at some instant or other, as the collector's count happens to stand.
    """
    state, collected = random.getstate(), gc.isenabled()
    random.seed(seed)
    gc.disable()
    try:
        yield
    finally:
        random.setstate(state)
        if collected:
            gc.enable()


@contextlib.contextmanager
def frozen_garbage() -> Iterator[None]:
    """Leave what is there already out of collections of garbage.

    A full one goes through the whole imported stack, and stops every run in this process for a third of a second. What
    the caller has frozen stays so.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass
class SimulatedSystem(ShownAsCode):
    """A workload and its simulated services in this process, for runs in virtual time, one thread at a time.

    client_retries: of the openai client, for alternatives that leave retries to it; None for its default. corpus: what
    is searched, by name, by place or itself. kind: of the workload, as `workload_kind` takes it. The index is built in
    virtual time when this is made, which takes seconds.

    Raises: ConfigurationError for settings that name a live endpoint or a local store, which no virtual time reaches.
    """

    settings: Settings
    client_retries: int | None = None
    corpus: str | LibraryPlace | Library = HANDBOOK
    kind: str = "supervisor"
    workload: Workload = field(init=False)
    _plans: tuple[ServiceOptions | None, dict[tuple[object, ...], Plan]] = field(
        default_factory=lambda: (None, {}), init=False, repr=False
    )

    def __post_init__(self) -> None:
        require_simulated(self.settings)
        build = workload_kind(self.kind).build
        if "qdrant_client" in sys.modules:
            # Who searches in it has imported its client by now, and it is better made before the clock.
            assert self.store
        clock = VirtualClock(on_entry=[self.door(ServiceOptions()).open], stall_after_s=_BUILD_STALL_AFTER_S)
        around = Surroundings(
            ServiceAddresses.at_port(PORT),
            self.settings,
            client_retries=self.client_retries,
            corpus=self.corpus,
        )
        self.workload = clock.run(build, around)
        # One graph for each node mode, made at its first use, over the one system.
        self._in_node_mode = functools.cache(self.workload.in_node_mode)

    def __repr__(self) -> str:
        retries = "its default" if self.client_retries is None else self.client_retries
        return f"SimulatedSystem: the {self.kind} on simulated services in virtual time, client retries: {retries}"

    @functools.cached_property
    def store(self) -> VectorService:
        """The store that holds the index."""
        from docmind_lab.services.vector_service import VectorService  # noqa: PLC0415 - slow, and many graphs ask none

        return VectorService(LatencyProfile.named("typical"))

    def door(self, options: ServiceOptions) -> VirtualDoor:
        """Return the services with these options, over the store that holds the index."""
        return VirtualDoor(
            llm=options.model_service(self._plans_known(options)),
            vectors=_VectorsWhenAsked(self, options),
            slots=options.profile.slots,
            peers=options.peer_behaviour(),
            hops=options.hop_behaviour(),
            cpu_charge=options.cpu_charge,
            behaviour=options.behaviour,
            endpoints=options.endpoint_service(),
        )

    def _plans_known(self, options: ServiceOptions) -> dict[tuple[object, ...], Plan]:
        """Return the plans that are known under these options; they are forgotten when others come."""
        if options != self._plans[0]:
            self._plans = (options, {})
        return self._plans[1]

    def measure(
        self,
        order: RunOrder,
        options: ServiceOptions,
        *,
        schedule: int | None = None,
        node_mode: NodeMode = "own",
    ) -> MeasuredRun:
        """Measure the run with these service options, over nodes of this mode; see `simulate`."""
        door = self.door(options)
        if isinstance(options, ReplayOptions):
            door = options.replaying(door, order.facts)
        return simulate(order, self._in_node_mode(node_mode), door, schedule=schedule)

    def close(self) -> None:
        """Close the clients and the vector store."""
        self.workload.close()
        if "store" in vars(self):
            self.store.engine.close()


@dataclass
class _VectorsWhenAsked:
    """The vector store of a system under some options, which is made when it is first asked."""

    system: SimulatedSystem
    options: ServiceOptions

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request."""
        return self._service.plan(request)

    @functools.cached_property
    def _service(self) -> VectorService:
        options = self.options
        return dataclasses.replace(
            self.system.store, profile=options.profile, default_seed=options.seed, faults=options.faults
        )


def require_simulated(settings: Settings) -> None:
    """Return if the settings name no live endpoint. Raises: ConfigurationError naming the one they do."""
    if name := live_endpoint_of(settings):
        raise ConfigurationError(
            f"{name}: a live endpoint answers in real time, which a simulation cannot wait for; use the wall clock "
            "(--clock wall), or leave the setting out"
        )


def live_endpoint_of(settings: Settings) -> str:
    """Return the name of the setting that names a live endpoint, which answers in real time; empty if none does."""
    endpoints = {"llm.base_url": settings.llm.base_url, "database.qdrant_url": settings.database.qdrant_url}
    return next((name for name, value in endpoints.items() if value is not None), "")
