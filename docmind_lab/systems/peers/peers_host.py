"""The A2A SDK's server for all peers of a service: `/a2a/<peer>` over JSON-RPC, streams included.

It is used by a door, which reads a request, says when the client leaves, and sends what comes back. Each peer has its
own card at `/a2a/<peer>/.well-known/agent-card.json`; all of them work alike and differ by what their keys draw.
"""

from __future__ import annotations

import asyncio

from a2a.server.agent_execution import SimpleRequestContextBuilder
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from docmind_lab.services.asgi_messages import Message, Send
from docmind_lab.services.hosted_behaviour import PEERS_PATH, PeerBehaviour
from docmind_lab.services.hosts import DoorOfHost, ExchangeHost, PeerExchange
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.systems.peers.executor import EXCHANGE, PeerExecutor


def agent_card(peer: str, url: str) -> AgentCard:
    """Return the A2A agent card of a peer, with its name and address."""
    skill = AgentSkill(id="read", name="Read passages", description="Says what answers a question.", tags=["reading"])
    return AgentCard(
        name=peer,
        description="Reads the passages that it is sent, and says what in them answers a question.",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", url=url, protocol_version="1.0")],
        default_input_modes=["application/json"],
        default_output_modes=["application/json"],
        skills=[skill],
    )


class PeerHost(ExchangeHost):
    """The server of all peers of one service."""

    def __init__(self, behaviour: PeerBehaviour, door: DoorOfHost) -> None:
        super().__init__(behaviour, door)
        self._behaviour = behaviour
        self._executor = PeerExecutor(behaviour)
        self._store = InMemoryTaskStore()
        self._apps: dict[str, Starlette] = {}
        self._handlers: list[DefaultRequestHandler] = []
        self._tasks_of_runs: dict[str, list[str]] = {}

    def refusal_of(self, request: ServiceRequest) -> str:
        """Refuse a body that is not JSON; the A2A SDK answers some of these by 500."""
        if request.method == "POST":
            try:
                request.json()
            except ValueError as error:
                return f"the body is not JSON: {error}"
        return ""

    async def serve(self, request: ServiceRequest, exchange: PeerExchange, send: Send) -> None:
        """Answer a request, until the reply is over or the client has left."""
        try:
            if _is_cancel(request) and self._behaviour.loses_cancel(exchange.key):
                await exchange.gone.wait()
            else:
                await self._reply(request, exchange, send)
        finally:
            exchange.replied()

    async def _reply(self, request: ServiceRequest, exchange: PeerExchange, send: Send) -> None:
        body = [{"type": "http.request", "body": request.body, "more_body": False}]

        async def receive() -> Message:
            if body:
                return body.pop()
            await exchange.gone.wait()
            return {"type": "http.disconnect"}

        note_and_send = exchange.observe_send(send)

        async def send_while_there(message: Message) -> None:
            if not exchange.gone.is_set():
                await note_and_send(message)

        serve = self._app(self.role_in(request.path))
        app = asyncio.ensure_future(serve(_scope(request, exchange), receive, send_while_there))
        gone = asyncio.ensure_future(exchange.gone.wait())
        try:
            await asyncio.wait((app, gone), return_when=asyncio.FIRST_COMPLETED)
            if app.done():
                app.result()
        finally:
            # Waiting for a reply that no client reads any more is not work.
            for task in (app, gone):
                task.cancel()
            await asyncio.wait((app, gone))

    async def forget(self, run_id: str) -> None:
        """Delete the tasks of a run."""
        for task_id in self._tasks_of_runs.pop(run_id, ()):
            await self._store.delete(task_id, ServerCallContext())

    async def aclose(self) -> None:
        """Stop all work of the peers, for every run."""
        await super().aclose()
        for handler in self._handlers:
            await handler.aclose()

    def _note_end(self, exchange: PeerExchange) -> None:
        if exchange.task_id:
            self._tasks_of_runs.setdefault(exchange.row.run_id, []).append(exchange.task_id)
        super()._note_end(exchange)

    def _app(self, peer: str) -> Starlette:
        if peer not in self._apps:
            self._apps[peer] = self._build_app(peer)
        return self._apps[peer]

    def _build_app(self, peer: str) -> Starlette:
        # Clients keep to the address that they were given, whatever is said here of where this is.
        card = agent_card(peer, f"{PEERS_PATH}{peer}")
        handler = DefaultRequestHandler(
            agent_executor=self._executor,
            task_store=self._store,
            agent_card=card,
            request_context_builder=SimpleRequestContextBuilder(),
        )
        self._handlers.append(handler)
        routes = create_jsonrpc_routes(handler, "/", context_builder=_ContextOfExchange()) + create_agent_card_routes(
            card
        )
        return Starlette(routes=[Mount(f"{PEERS_PATH}{peer}", routes=routes)])


def _is_cancel(request: ServiceRequest) -> bool:
    try:
        payload = request.json()
    except ValueError:
        return False
    return isinstance(payload, dict) and payload.get("method") == "CancelTask"


class _ContextOfExchange(DefaultServerCallContextBuilder):
    """Hands the exchange of a request on to its executor."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[EXCHANGE] = request.scope[EXCHANGE]
        return context


def _scope(request: ServiceRequest, exchange: PeerExchange) -> Message:
    # The trailing slash, since a mount's own root has one.
    path = request.path if request.path.count("/") > 2 else f"{request.path}/"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": request.query.encode("latin-1"),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in request.headers.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        EXCHANGE: exchange,
    }
