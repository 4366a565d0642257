"""The services behind sockets, served by a thread of the tests' own process."""

from __future__ import annotations

import asyncio
import threading

import uvicorn

from docmind_lab.services.faults import Fault
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions, bind
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile


class Here:
    """A door served by a thread of this process: quicker to start than a process of its own."""

    def __init__(self, door: WallDoor) -> None:
        self.door, listener = door, bind(0)
        self.port = listener.getsockname()[1]
        self.addresses = ServiceAddresses.at_port(self.port)
        config = uvicorn.Config(door, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[listener])), daemon=True)
        self.thread.start()
        self.log = LogClient(self.addresses.log_url)

    @classmethod
    def of(cls, *faults: str, profile: str = "typical/40") -> Here:
        """The services with these latencies and faults."""
        return cls(ServiceOptions(LatencyProfile.named(profile), tuple(map(Fault.parse, faults))).door())

    def row(self, run_id: str, wait_quiet_s: float = 5.0) -> RequestRow:
        (row,) = self.log.rows(run_id, wait_quiet_s=wait_quiet_s)
        return row

    def close(self) -> None:
        self.log.close()
        self.server.should_exit = True
        self.thread.join(10)
        self.door._planner.shutdown(wait=False)
