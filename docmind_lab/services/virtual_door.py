"""The virtual door: plays the same plans as the wall door, in virtual time, to clients in the same process.

    door = VirtualDoor(llm=..., vectors=...)
    clock = VirtualClock(on_entry=[door.open])
    clock.run(measure, order, workload, door, clock)        # a door is also the log of what it did

Requests come over a network without sockets (network/virtual_network.py), so clients, pools, timeouts and retries are
the real ones. A request's plan is written at the instant it is received, and takes no virtual time; its steps are
played without a thread. Requests for a peer agent go to the A2A SDK's own server instead, and those for a hop to the
server of the hops; each runs on an event loop of the run (`virtual_host.py`). A client that leaves is noticed at once.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from docmind_lab.core.errors import SimulationError
from docmind_lab.network.virtual_network import Address, virtual_network
from docmind_lab.network.virtual_wire import Wire
from docmind_lab.services.door import Door
from docmind_lab.services.hosts import HOSTS, DoorOfHost, Hosted
from docmind_lab.services.log import RequestRow
from docmind_lab.services.plan import RUN_IS_OVER, Chunk, Headers, ServiceRequest
from docmind_lab.services.virtual_host import HttpConnection, VirtualHost, fail_run
from docmind_lab.virtual_time import VirtualClock

# Loopback, so that requests carry the tags of their call. Nothing listens at port 1 of any ordinary machine: a client
# that is used outside a run is refused, and reaches no stranger.
HOST, PORT = "127.0.0.1", 1


@dataclass
class VirtualDoor(Door):
    """The services, for runs of virtual clocks, one run at a time; otherwise as `Door`.

    Args:
        addresses: Host and port pairs at which the services are.
        connect_s: Virtual seconds until a connection is made; inf for a server that never takes one in.
        cpu_charge: See `ServiceOptions`.
        on_send: Told of each head of a reply, and each part of its body, as it is sent.
    """

    addresses: Sequence[tuple[str, int]] = ((HOST, PORT),)
    connect_s: float = 0.0
    cpu_charge: float = 0.0
    on_send: Callable[[Headers | Chunk], object] | None = None
    _clock: VirtualClock | None = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _over: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._changed = threading.Condition()
        # By the path of their requests, each from its first request on.
        self._hosts: dict[str, VirtualHost] = {}

    # ---- a run

    @contextlib.contextmanager
    def open(self, clock: VirtualClock) -> Iterator[None]:
        """Serve the actors of the clock's run during a block: for `VirtualClock(on_entry=[door.open])`.

        Raises: SimulationError while another run is served; the services are used from one thread at a time.
        """
        with self._lock:
            if self._clock is not None:
                raise SimulationError(
                    "this door serves another run; give each clock that runs at once its own services"
                )
            self._clock = clock
        self._changed = threading.Condition()
        address = Address(self._accepted, self.connect_s)
        try:
            with virtual_network(clock, dict.fromkeys(self.addresses, address)):
                yield
        finally:
            for of_run in (self._playing, self._queues, self._first_request_at, self._over, self._hosts):
                of_run.clear()
            self._clock = None

    def _accepted(self, wire: Wire) -> HttpConnection:
        return HttpConnection(wire, self._serve, self.on_send)

    def _serve(self, request: ServiceRequest, connection: HttpConnection) -> None:
        clock = self._clock
        assert clock is not None, "there is a network only while there is a run"
        if request.tag("run-id") in self._over:
            connection.reply(RUN_IS_OVER)
            return
        if self.cpu_charge:
            # The clock moves on by what the client computed for its request.
            clock.charge(self.cpu_charge)
        if (hosted := self.hosted_at(request.path)) is not None:
            self._host_of(hosted, clock).serve(request, connection)
            return
        service = self.service_of(request)
        try:
            # In no context of the client's: what is in force around its call is no business of a server's.
            plan = contextvars.Context().run(service.plan, request)
        except Exception as error:  # noqa: BLE001 - whatever a service raises
            connection.drop()
            fail_run(clock, error)
            return
        player = self._receive(request, plan, clock.now(), connection, clock)
        connection.attend(player.client_left)
        self._start(player)

    def _host_of(self, hosted: Hosted, clock: VirtualClock) -> VirtualHost:
        """Return the server that behaves so, made at its first request."""
        path = hosted.path
        if path not in self._hosts:
            host, port = self.addresses[0]
            door = DoorOfHost(self.log, clock, self._tell_changed, self.behaviour, f"http://{host}:{port}{path}")
            self._hosts[path] = VirtualHost(HOSTS[path]()(hosted, door), clock, f"docmind-{path.strip('/')}")
        return self._hosts[path]

    def _tell_changed(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # ---- the log, as `measurement.RequestLog`

    def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[RequestRow]:
        """The rows of a run as they stand, after waiting up to `wait_quiet_s` for the services to be done with it."""
        clock = self._clock
        if clock is not None:
            with self._changed:
                self._changed.wait_for(lambda: self.log.open_rows(run_id) == 0, wait_quiet_s)
            self._note_queue_waits(run_id, clock.now())
        return [replace(row, token_spans=list(row.token_spans)) for row in self.log.rows(run_id)]

    def forget(self, run_id: str) -> None:
        """The run is over: cut what is open, forget its rows, refuse its orphans."""
        if self._clock is not None:
            self._over.add(run_id)
            self._cut(run_id)
            for host in self._hosts.values():
                host.end_run(run_id)
        self.log.forget(run_id)
