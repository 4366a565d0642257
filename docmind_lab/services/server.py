"""The simulated services as a process of their own, on loopback.

`serve` runs them in the foreground (`docmind-lab serve`). `ServiceProcess` starts and stops them for a study, as
`python -m docmind_lab.services`, which reads its options from standard input and ends when that closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self

import httpx
import typer
import uvicorn

from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.services.endpoints import EndpointService, EndpointTable
from docmind_lab.services.faults import Fault
from docmind_lab.services.hosted_behaviour import DEFAULT_HABITS, HOPS_PATH, HopBehaviour, PeerBehaviour, PeerHabits
from docmind_lab.services.hosts import modules
from docmind_lab.services.log import RequestRow, rows_from_json
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, Service, ServiceRequest, json_steps
from docmind_lab.services.scripted_model.variation import DEFAULT_UNDER_PRESSURE, UnderPressure
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

HOST = "127.0.0.1"
# Importing the vector engine and uvicorn takes 2-3 s on a slow shared core; ten times that means it will not start.
_START_LIMIT_S = 60.0


class ServedOptions(Protocol):
    """Options of services that can be served from a process of their own."""

    def door(self) -> WallDoor:
        """The services behind sockets."""
        ...

    def as_json(self) -> str:
        """The options as one line of JSON, for the process."""
        ...


@dataclass(frozen=True, kw_only=True)
class ServiceConditions:
    """What `World`, systems and a `Comparison` tell the services, by the same names.

    cpu_charge: CPU seconds that each request costs its client in virtual time; over sockets CPU takes the time it
    takes. model_variation: share of the model's decisions that go another way. model_under_pressure: what it does when
    its prompt says that little time is left, as `UnderPressure.parse` reads it. adoption: share of hops that hold to a
    deadline that comes with a request.
    """

    cpu_charge: float = 0.0
    model_variation: float = 0.0
    model_under_pressure: str = DEFAULT_UNDER_PRESSURE
    adoption: float = 0.0

    @classmethod
    def of(cls, source: object) -> dict[str, Any]:
        """Return the values of these names that an object has."""
        return {name: getattr(source, name) for name in cls.__dataclass_fields__ if hasattr(source, name)}


class _NoVectorStore:
    """In place of the vector store where qdrant-client is not installed."""

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        error = f"{request.path}: the simulated Qdrant needs qdrant-client: pip install 'docmind_lab[systems]'"
        return Plan(json_steps(501, {"status": {"error": error}}), "retrieval")


@dataclass(frozen=True)
class ServiceOptions(ServiceConditions):
    """What the services do.

    seed: for clients that do not say which run they belong to. peers: what peer agents do. slots_of_run: each run has
    the profile's slots to itself; off, all clients of a wall door share them. behaviour: what is done with a call whose
    client has left. endpoints: file with endpoints of other services; empty for the ready ones alone.
    """

    profile: LatencyProfile = field(default_factory=lambda: LatencyProfile.named("typical"))
    faults: tuple[Fault, ...] = ()
    behaviour: ServerBehaviour = STOPS
    seed: int = 0
    peers: PeerHabits = DEFAULT_HABITS
    slots_of_run: bool = False
    endpoints: str = ""

    def _vector_store(self) -> Service:
        try:
            # Function-level: qdrant-client takes seconds to import, and services for agents have no vector store.
            from docmind_lab.services.vector_service import VectorService  # noqa: PLC0415
        except ModuleNotFoundError:
            return _NoVectorStore()
        return VectorService(self.profile, self.seed, faults=self.faults)

    def door(self) -> WallDoor:
        """The services behind sockets."""
        return WallDoor(
            llm=self.model_service(),
            vectors=self._vector_store(),
            slots=self.profile.slots,
            slots_of_run=self.slots_of_run,
            peers=self.peer_behaviour(),
            behaviour=self.behaviour,
            endpoints=self.endpoint_service(),
        )

    def model_service(self, known: dict[tuple[object, ...], Plan] | None = None) -> OpenAIService:
        """The model server, for a door. known: plans that were made before, and those that it makes."""
        return OpenAIService(
            self.profile,
            self.faults,
            self.seed,
            variation=self.model_variation,
            under_pressure=UnderPressure.parse(self.model_under_pressure),
            known={} if known is None else known,
        )

    def endpoint_service(self) -> EndpointService:
        """The endpoints of other services, for a door."""
        return EndpointService(self.profile, self.faults, self.seed, EndpointTable(self.endpoints))

    def peer_behaviour(self) -> PeerBehaviour:
        """How the peer agents behave, for a door."""
        return PeerBehaviour(self.profile, self.peers, self.seed)

    def hop_behaviour(self) -> HopBehaviour:
        """How the hops behave, for a door."""
        return HopBehaviour(self.profile, self.adoption, self.seed)

    def as_json(self) -> str:
        """The options as one line of JSON, for another process; `from_json` reads it back equal."""
        values = {
            "profile": self.profile.to_dict(),
            "faults": [str(fault) for fault in self.faults],
            "peers": asdict(self.peers),
            "behaviour": self.behaviour.model_dump(mode="json"),
        }
        return json.dumps(vars(self) | values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The options that `as_json` wrote. Raises: ConfigurationError naming what does not fit."""
        readers: Mapping[str, Callable[[Any], Any]] = {
            "profile": LatencyProfile.from_dict,
            "faults": lambda written: tuple(Fault.parse(fault) for fault in written),
            "peers": lambda written: PeerHabits(**written),
            "behaviour": lambda written: ServerBehaviour.of(written, "of the service options"),
        }
        try:
            data = json.loads(text)
            return cls(**{name: readers.get(name, lambda value: value)(value) for name, value in data.items()})
        except ConfigurationError:
            raise
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"service options must be one JSON object of them: {error}") from error


@dataclass(frozen=True)
class ServiceAddresses:
    """Where the services are."""

    openai_base_url: str
    qdrant_url: str
    log_url: str

    def __repr__(self) -> str:
        parts = (f"{name}={redact_url(url)!r}" for name, url in vars(self).items())
        return f"ServiceAddresses({', '.join(parts)})"

    @classmethod
    def at_port(cls, port: int) -> ServiceAddresses:
        """The addresses on loopback at a port."""
        root = f"http://{HOST}:{port}"
        return cls(openai_base_url=f"{root}/v1", qdrant_url=root, log_url=f"{root}/log")

    @property
    def peers_url(self) -> str:
        """Where the peer agents are: each at its name below this."""
        return f"{self.log_url.removesuffix('/log')}/a2a"

    @property
    def hops_url(self) -> str:
        """Where the hops are: each at its role behind this."""
        return f"{self.log_url.removesuffix('/log')}{HOPS_PATH}"

    def as_json(self) -> str:
        """The one line that `docmind-lab serve` prints when it is ready."""
        return json.dumps(vars(self))


def bind(port: int) -> socket.socket:
    """A listening socket on loopback. port: 0 for a free one. Raises: ConfigurationError when the port is taken."""
    # With the protocol named, asyncio turns Nagle's algorithm off; otherwise a body can lag its headers by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(512)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigurationError(
            f"port {port} on {HOST} cannot be used ({error}); choose another with --port, or --port 0 for a free one"
        ) from error
    return listener


def serve(options: ServedOptions, port: int = 0) -> None:
    """Serve until interrupted, after printing the addresses as one JSON line. Raises: ConfigurationError (port)."""
    listener = bind(port)
    addresses = ServiceAddresses.at_port(listener.getsockname()[1])

    async def run() -> None:
        config = uvicorn.Config(
            options.door(),
            log_level="critical",
            lifespan="off",
            access_log=False,
            timeout_graceful_shutdown=1,
            backlog=512,
        )
        server = uvicorn.Server(config)
        typer.echo(addresses.as_json())
        sys.stdout.flush()
        await server.serve(sockets=[listener])

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


@dataclass
class ServiceProcess:
    """The simulated services in a child process; a context manager that starts and stops it.

    command: its further arguments are the modules that have added to the services here, which it imports. It reads the
    options from its first line of standard input, prints the addresses as one line of JSON when it is ready, and ends
    when its standard input closes.
    """

    options: ServedOptions = field(default_factory=ServiceOptions)
    command: Sequence[str] = (sys.executable, "-m", "docmind_lab.services")
    addresses: ServiceAddresses = field(init=False)
    _process: subprocess.Popen[str] | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> Self:
        # The child dies with us if we are killed: it watches its standard input for the end of file.
        self._process = subprocess.Popen(
            [*self.command, *modules()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # A Ctrl-C is for us, and we end it.
            process_group=0,
        )
        assert self._process.stdin is not None
        # One that ended at once reads nothing; what it said, or its exit code, tells why.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(self.options.as_json() + "\n")
            self._process.stdin.flush()
        try:
            self.addresses = self._read_addresses(self._process)
        except KeyboardInterrupt:
            # What it imports yet, it would import to the end.
            self._process.kill()
            self.__exit__()
            raise
        return self

    def _read_addresses(self, process: subprocess.Popen[str]) -> ServiceAddresses:
        assert process.stdout is not None
        limit_at = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < limit_at:
            readable, _, _ = select.select([process.stdout], [], [], 0.2)
            if readable:
                line = process.stdout.readline()
                if line:
                    return self._parse_addresses(line)
            if process.poll() is not None:
                break
        self.__exit__()
        raise ServiceError(
            f"the simulated services did not start (exit code {process.returncode}); see the lines above"
        )

    def _parse_addresses(self, line: str) -> ServiceAddresses:
        try:
            return ServiceAddresses(**json.loads(line))
        except (ValueError, TypeError) as error:
            self.__exit__()
            raise ServiceError(f"the simulated services said {line.strip()!r} instead of their addresses") from error

    def log_client(self) -> LogClient:
        """Return a reader of the services' log; the caller closes it."""
        return LogClient(self.addresses.log_url)

    def __exit__(self, *exc_info: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@dataclass
class LogClient:
    """Reads the log of services past the seam, so that looking changes nothing. others: logs of other processes."""

    log_url: str
    others: tuple[str, ...] = ()
    _client: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._client = httpx.Client(trust_env=False, timeout=httpx.Timeout(30.0, read=None))

    def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[RequestRow]:
        """The rows of a run, after waiting up to `wait_quiet_s` for the services to be done with it."""
        until, rows = time.monotonic() + wait_quiet_s, list[RequestRow]()
        for url in (self.log_url, *self.others):
            answer = self._get("GET", url, run_id, wait_quiet_s=max(0.0, until - time.monotonic()))
            rows += rows_from_json(answer["rows"])
        return rows

    def forget(self, run_id: str) -> None:
        """Have the services cut what they still do for a run, and drop its rows."""
        for url in (self.log_url, *self.others):
            self._get("DELETE", url, run_id)

    def _get(self, method: str, url: str, run_id: str, **query: Any) -> Any:
        try:
            response = self._client.request(method, url, params={"run_id": run_id, **query})
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise ServiceError(f"the service's log at {url} cannot be read: {error}") from error
        return response.json()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
