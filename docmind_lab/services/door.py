"""What both doors share: the services behind them, which of them a request is for, and the slots of the model server.

With `slots`, the model server works on so many requests at once and the others wait, first come first served. The wait
counts from the receipt; a plan's own waits count from the instant its slot is had. A client that leaves the queue is
forgotten at once under `STOPS`; under `GOES_ON` its request keeps its place, and takes a slot for an answer that nobody
reads. A hang keeps its slot until its client leaves, or under `GOES_ON` until its run is over.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field

from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.services.dialects import asks_a_model
from docmind_lab.services.endpoints import ENDPOINTS_PATH
from docmind_lab.services.hosted_behaviour import HopBehaviour, PeerBehaviour
from docmind_lab.services.hosts import HOSTS, Hosted
from docmind_lab.services.log import ServiceLog
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, Service, ServiceRequest
from docmind_lab.services.plan_player import Connection, LoopClock, PlanPlayer
from docmind_lab.services.slots import SlotQueue, Turn
from docmind_lab.virtual_time import VirtualClock


@dataclass
class Door(abc.ABC):
    """The services behind a door.

    Args:
        llm: The model server.
        vectors: The vector store.
        slots: Model calls worked on at once; None for no limit.
        peers: How the peer agents behave; left out, by the habits that are assumed and as fast as the model is.
        hops: How the hops behave; left out, there are none.
        endpoints: Of other services; left out, there are none.
        behaviour: What is done with a call whose client has left.
        log: What the services did.
    """

    llm: Service
    vectors: Service
    slots: int | None = None
    peers: PeerBehaviour | None = None
    hops: HopBehaviour | None = None
    endpoints: Service | None = None
    behaviour: ServerBehaviour = STOPS
    log: ServiceLog = field(default_factory=ServiceLog)
    # In order of arrival, so that whatever is done to all of them has one order.
    _playing: dict[PlanPlayer, None] = field(default_factory=dict, init=False, repr=False)
    _queues: dict[str, SlotQueue[PlanPlayer]] = field(default_factory=dict, init=False, repr=False)
    _first_request_at: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._queue_of("")  # refuses a limit that is none
        if self.peers is None and isinstance(self.llm, OpenAIService):
            self.peers = PeerBehaviour(self.llm.profile, default_seed=self.llm.default_seed)

    def hosted_at(self, path: str) -> Hosted | None:
        """Return how the server below a path behaves; None if there is none, or its system is not imported."""
        hosted = (each for each in (self.peers, self.hops) if each and each.path in HOSTS)
        return next((each for each in hosted if path.startswith(each.path)), None)

    def service_of(self, request: ServiceRequest) -> Service:
        """Return the service that plans the answer to a request."""
        if self.endpoints is not None and request.path.startswith(ENDPOINTS_PATH):
            return self.endpoints
        return self.llm if asks_a_model(request.path) else self.vectors

    # ---- requests under way

    def _key_of(self, run_id: str) -> str:
        """Return who shares slots and time with a run: all runs have the empty key."""
        return ""

    def _queue_of(self, run_id: str) -> SlotQueue[PlanPlayer]:
        key = self._key_of(run_id)
        if key not in self._queues:
            self._queues[key] = SlotQueue(self.slots)
        return self._queues[key]

    def _receive(
        self,
        request: ServiceRequest,
        plan: Plan,
        received_at: float,
        connection: Connection,
        clock: VirtualClock | LoopClock,
    ) -> PlanPlayer:
        """Begin the log row of a request, and return what plays its plan."""
        row = self.log.received(request, plan, received_at)
        player = PlanPlayer(plan, row, connection, clock, self.behaviour, self._ended)
        self._playing[player] = None
        self._first_request_at.setdefault(self._key_of(row.run_id), received_at)
        return player

    def _start(self, player: PlanPlayer) -> None:
        """Play a plan from its receipt, or from the instant at which it has a slot."""
        if player.plan.takes_slot:
            self._let_start(self._queue_of(player.row.run_id).arrive(player, player.row.received_at))
        else:
            player.begin(player.row.received_at)

    def _let_start(self, turns: Iterable[Turn[PlanPlayer]]) -> None:
        for turn in turns:
            row = turn.request.row
            row.queue_wait_s = turn.starts_at - row.received_at
            since_s = turn.starts_at - self._first_request_at[self._key_of(row.run_id)]
            turn.request.begin(turn.starts_at, others=len(self._queue_of(row.run_id).served) - 1, since_s=since_s)

    def _ended(self, player: PlanPlayer) -> None:
        row, queue = player.row, self._queue_of(player.row.run_id)
        assert row.ended_at is not None, "it has ended"
        if player in queue.waiting:
            # A request that never had a slot has waited until its end, to the last digit.
            row.queue_wait_s = row.ended_at - row.received_at
        del self._playing[player]
        self._let_start(queue.leave(player, row.ended_at))
        self._tell_changed()

    @abc.abstractmethod
    def _tell_changed(self) -> None:
        """Tell whoever waits for it that a row of the log has ended."""

    def _note_queue_waits(self, run_id: str, now: float) -> None:
        """Note what the requests in the queue have waited so far."""
        for player in self._queue_of(run_id).waiting:
            player.row.queue_wait_s = now - player.row.received_at

    def _cut(self, run_id: str) -> None:
        """End what is played for a run that is over."""
        for player in list(self._playing):
            if player.row.run_id == run_id:
                player.cut()
