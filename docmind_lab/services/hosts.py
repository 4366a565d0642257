"""Servers that systems add to the simulated services, the requests to them, and the roles that systems add.

    add_roles(__name__, {"You judge whether a source": "research_judge"}, {"research_judge": _judge})
    add_host(__name__, "/a2a/", _load_host)

A module adds its part when it is imported. Services in a process of their own import the same modules.

A task outlives the request that asked for it. So a row of kind "peer" ends with the work, not with the connection, and
what a peer does after a deadline is in the log, whether or not a client still listens.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.core.clock import Clock
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.services.asgi_messages import Message, Send
from docmind_lab.services.hosted_behaviour import HopBehaviour, PeerBehaviour
from docmind_lab.services.log import RequestRow, RowOutcome, ServiceLog
from docmind_lab.services.plan import Plan, ServiceRequest
from docmind_lab.services.scripted_model.conversation import Conversation, Reply
from docmind_lab.services.scripted_model.scripted_roles import REPLIES, ROLE_OF_PHRASE


@dataclass(eq=False)
class PeerExchange:
    """A request to a peer and its work. ended: called once, when both are over. cut: whether its run is over."""

    row: RequestRow
    key: DrawKey
    clock: Clock
    ended: Callable[[PeerExchange], None]
    is_replied: bool = False
    cut: bool = False
    task_id: str = ""
    work: asyncio.Task[object] | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    _outcome: RowOutcome | None = None

    def client_left(self) -> None:
        """Note that the client has left. The work goes on."""
        if self.row.outcome == "open" and not self.is_replied:
            self.row.client_gone_at = self.clock.now()
        self.gone.set()

    def sent(self, status: int | None, *, body: bool) -> None:
        """Note that bytes of the reply were sent: its headers if there is a status, or a part of its body."""
        now = self.clock.now()
        if status is not None:
            self.row.status, self.row.first_byte_at = status, now
        if body:
            self.row.last_byte_at = now

    def observe_send(self, send: Send) -> Send:
        """Return a `send` that also notes what was sent of the reply."""

        async def note_and_send(message: Message) -> None:
            self.sent(message.get("status"), body=bool(message.get("body")))
            await send(message)

        return note_and_send

    def replied(self) -> None:
        """Note that the reply is over, complete or not."""
        self.is_replied = True
        self._end_if_over()

    def begin_work(self, task_id: str) -> None:
        """Note that the current asyncio task works for this request from now on."""
        self.task_id, self.work = task_id, asyncio.current_task()

    def end_work(self, outcome: RowOutcome) -> None:
        """Note that the work is over."""
        self._outcome, self.work = "ended" if self.cut else outcome, None
        self._end_if_over()

    def stop_with_run(self) -> None:
        """Stop the work because its run is over, and treat the client as gone."""
        self.cut = True
        self.gone.set()
        if self.work is not None:
            self.work.cancel()

    def _end_if_over(self) -> None:
        if self.work is not None or not self.is_replied or self.row.outcome != "open":
            return
        self.row.outcome = self._outcome or self._outcome_of_reply()
        self.row.ended_at = self.clock.now()
        self.ended(self)

    def _outcome_of_reply(self) -> RowOutcome:
        if self.cut:
            return "ended"
        if self.row.client_gone_at is not None:
            return "client_gone"
        return "error" if self.row.status is None or self.row.status >= 400 else "ok"


Hosted = PeerBehaviour | HopBehaviour
"""How a server behaves. Its `path` is what all its requests begin with."""


@dataclass(frozen=True)
class DoorOfHost:
    """The door that a server stands behind.

    changed: called whenever a row of the log has ended. on_leave: what is done with a call whose client has left.
    below_url: where requests go that the server sends to servers of its kind.
    """

    log: ServiceLog
    clock: Clock
    changed: Callable[[], None]
    on_leave: ServerBehaviour
    below_url: str = ""


class ExchangeHost(abc.ABC):
    """A server whose requests may outlive their connections: the peers or the hops of a service, behind either door.

    behaviour: what it does. door: where it stands.
    """

    def __init__(self, behaviour: Hosted, door: DoorOfHost) -> None:
        self._door, self._log, self._clock = door, door.log, door.clock
        self._path, self._default_seed = behaviour.path, behaviour.default_seed
        # In order of arrival, so that whatever is done to all of them has one order.
        self._open: dict[PeerExchange, None] = {}

    def role_in(self, path: str) -> str:
        """Return the role that a path names."""
        return path.removeprefix(self._path).partition("/")[0]

    def received(self, request: ServiceRequest, received_at: float) -> PeerExchange:
        """Begin the log row of a request and return its exchange."""
        row = self._log.received(request, Plan((), "peer"), received_at)
        key = request.draw_key(self.role_in(request.path), "0", self._default_seed)
        exchange = PeerExchange(row, key, self._clock, self._note_end)
        self._open[exchange] = None
        return exchange

    def refusal_of(self, request: ServiceRequest) -> str:
        """Return why a request over a socket is answered by status 400; empty if it is served."""
        return ""

    @abc.abstractmethod
    async def serve(self, request: ServiceRequest, exchange: PeerExchange, send: Send) -> None:
        """Answer a request."""

    def end_run(self, run_id: str) -> None:
        """Stop everything that is still done for a run that is over."""
        for exchange in [exchange for exchange in self._open if exchange.row.run_id == run_id]:
            exchange.stop_with_run()

    async def forget(self, run_id: str) -> None:  # noqa: B027 - most keep nothing
        """Delete what is kept of a run that is over."""

    async def aclose(self) -> None:
        """Stop all work, for every run."""
        for exchange in list(self._open):
            exchange.stop_with_run()

    def _note_end(self, exchange: PeerExchange) -> None:
        self._open.pop(exchange, None)
        self._door.changed()


HostMaker = Callable[[Any, DoorOfHost], ExchangeHost]
"""(behaviour, door) → the server."""

HOSTS: dict[str, Callable[[], HostMaker]] = {}
"""Path → a function that loads the class of the server of all requests below it. It may take a second."""

_modules: dict[str, None] = {}


def add_roles(
    module: str, role_of_phrase: Mapping[str, str], replies: Mapping[str, Callable[[Conversation], Reply]]
) -> None:
    """Add roles of the scripted model.

    Args:
        module: The name of the module that adds them.
        role_of_phrase: A phrase of a role's system prompt, which stands in no other → the role.
        replies: Role → what it says.
    """
    _modules[module] = None
    ROLE_OF_PHRASE.update(role_of_phrase)
    REPLIES.update(replies)


def add_host(module: str, path: str, load: Callable[[], HostMaker]) -> None:
    """Add a server.

    Args:
        module: The name of the module that adds it.
        path: What the paths of its requests begin with.
        load: Returns the server's class, a subclass of `ExchangeHost`.
    """
    _modules[module] = None
    HOSTS[path] = load


def modules() -> tuple[str, ...]:
    """Return the modules that have added something, in order."""
    return tuple(_modules)
