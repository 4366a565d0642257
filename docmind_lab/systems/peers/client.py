"""A2A clients of the peers at one address, over one connection pool that goes through the network seam.

A client belongs to the event loop it was first used on; whoever makes `PeerClients` closes it there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_data_parts, new_data_message
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError

from docmind_lab.network import HttpClients

FAILURES = (A2AError, A2AClientError, httpx.HTTPError)
"""What a call to a peer fails with."""

_ENDED_WITHOUT_ANSWER = {
    TaskState.TASK_STATE_FAILED: "failed",
    TaskState.TASK_STATE_REJECTED: "rejected",
    TaskState.TASK_STATE_CANCELED: "canceled",
}

CancelAnswer = Literal["accepted", "already_terminal", "not_found"]


@dataclass(frozen=True)
class PeerNews:
    """One event of a peer's stream.

    kind: known (its server's id of the task), working, answer (with a payload), ended (without one; state says how).
    """

    kind: Literal["known", "working", "answer", "ended"]
    task_id: str = ""
    payload: Mapping[str, Any] | None = None
    state: str = ""


class PeerClients:
    """Clients for the peers below `url`, by name, with agent cards of our own. elsewhere: whole addresses."""

    def __init__(self, url: str, http: HttpClients, elsewhere: Mapping[str, str] | None = None) -> None:
        self._url, self._http, self._elsewhere = url, http.a2a(), dict(elsewhere or {})
        self._factory = ClientFactory(ClientConfig(httpx_client=self._http, streaming=True))
        self._clients: dict[str, Client] = {}

    async def send(self, peer: str, task: Mapping[str, Any], timeout_s: float) -> AsyncIterator[PeerNews]:
        """Send a task and yield the peer's news of it. timeout_s: told to the peer. Raises: one of `FAILURES`."""
        request = SendMessageRequest(message=new_data_message(dict(task), role=Role.ROLE_USER))
        request.metadata.update({"timeout_s": timeout_s})
        async for event in self._client(peer).send_message(request):
            news = _news(event)
            if news is not None:
                yield news

    async def cancel(self, peer: str, task_id: str) -> CancelAnswer:
        """Ask a peer to cancel a task, and return its answer. Raises: one of `FAILURES` for other errors."""
        try:
            await self._client(peer).cancel_task(CancelTaskRequest(id=task_id))
        except TaskNotCancelableError:
            return "already_terminal"
        except TaskNotFoundError:
            return "not_found"
        return "accepted"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _client(self, peer: str) -> Client:
        if peer not in self._clients:
            url = self._elsewhere.get(peer, f"{self._url}/{peer}")
            at = AgentInterface(protocol_binding="JSONRPC", url=url, protocol_version="1.0")
            card = AgentCard(
                name=peer, capabilities=AgentCapabilities(streaming=True), supported_interfaces=[at], version="1"
            )
            self._clients[peer] = self._factory.create(card)
        return self._clients[peer]


def _news(event: StreamResponse) -> PeerNews | None:
    if event.HasField("task"):
        return PeerNews("known", task_id=event.task.id)
    if event.HasField("artifact_update"):
        parts = get_data_parts(event.artifact_update.artifact.parts)
        return PeerNews("answer", payload=parts[0] if parts and isinstance(parts[0], Mapping) else {})
    if event.HasField("status_update"):
        state = event.status_update.status.state
        if state == TaskState.TASK_STATE_WORKING:
            return PeerNews("working")
        if state in _ENDED_WITHOUT_ANSWER:
            return PeerNews("ended", state=_ENDED_WITHOUT_ANSWER[state])
    return None
