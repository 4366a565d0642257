"""What both doors share: the services behind them, and which of them a request is for."""

from __future__ import annotations

from dataclasses import dataclass, field

from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.services.dialects import asks_a_model
from docmind_lab.services.endpoints import ENDPOINTS_PATH
from docmind_lab.services.hop_behaviour import HopBehaviour
from docmind_lab.services.hosts import Hosted
from docmind_lab.services.log import ServiceLog
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.peer_behaviour import PeerBehaviour
from docmind_lab.services.plan import Service, ServiceRequest
from docmind_lab.services.registry import HOSTS


@dataclass
class Door:
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

    def __post_init__(self) -> None:
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
