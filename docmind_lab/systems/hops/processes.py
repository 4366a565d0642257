"""The hops over sockets: a process for each level, whose clocks are hours apart.

    with HopProcesses(ServiceOptions(adoption=0.5)) as hops:
        hops.addresses.hops_url        # of hop 1; its process knows where hop 2 is, and so on
        hops.log_client()              # reads the logs of all processes, by the machine's own clock

`python -m docmind_lab.systems.hops.processes` is one of them. It reads its options from standard input, as
`python -m docmind_lab.services` does.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from docmind_lab.services.__main__ import main
from docmind_lab.services.hosted_behaviour import LEVELS
from docmind_lab.services.plan import Plan, ServiceRequest, json_steps
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.services.wall_door import WallDoor

APART_S: Final = 3600.0
"""The clock of each level is ahead of the one above by so much: instants of one process mean nothing in another."""

Instant = TypeVar("Instant", int, float)


class _NothingElse:
    """Answers every request that is for no hop."""

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        return Plan(json_steps(404, {"error": f"{request.path} is not served here; /hops/<role> is"}), "peer")


@dataclass(frozen=True)
class HopServices(ServiceOptions):
    """Options of one process. below_url: empty at the last level. clock_ahead_s: of the machine's clock."""

    below_url: str = ""
    clock_ahead_s: float = 0.0

    def door(self) -> WallDoor:
        """The hops behind sockets."""
        return WallDoor(
            llm=_NothingElse(),
            vectors=_NothingElse(),
            behaviour=self.behaviour,
            hops=self.hop_behaviour(),
            below_url=self.below_url,
            clock_ahead_s=self.clock_ahead_s,
        )


@dataclass
class HopProcesses(ServiceProcess):
    """A process for each level of hops; a context manager that starts and stops them."""

    command: Sequence[str] = (sys.executable, "-m", "docmind_lab.systems.hops.processes")
    _log_urls: list[str] = field(default_factory=list, init=False, repr=False)
    _running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        below_url = ""
        with contextlib.ExitStack() as started:
            # The last level first: each is told where the next one is.
            for level in range(LEVELS, 0, -1):
                services = HopServices(**vars(self.options), below_url=below_url, clock_ahead_s=APART_S * level)
                process = started.enter_context(ServiceProcess(services, self.command))
                self.addresses, below_url = process.addresses, process.addresses.hops_url
                self._log_urls.insert(0, process.addresses.log_url)
            self._running = started.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._running.close()
        self._log_urls.clear()

    def log_client(self) -> LogClient:
        """Return a reader of the logs of all processes; the caller closes it."""
        first, *others = self._log_urls
        return LogClient(first, tuple(others))


def set_clocks_ahead(by_s: float) -> None:
    """Set the clocks that this process reads ahead of the machine's, in seconds."""
    by_ns = round(by_s * 1e9)
    time.monotonic, time.time = _ahead(time.monotonic, by_s), _ahead(time.time, by_s)
    time.monotonic_ns, time.time_ns = _ahead(time.monotonic_ns, by_ns), _ahead(time.time_ns, by_ns)


def _ahead(clock: Callable[[], Instant], by: Instant) -> Callable[[], Instant]:
    return lambda: clock() + by


def _read(text: str) -> HopServices:
    services = HopServices.from_json(text)
    set_clocks_ahead(services.clock_ahead_s)
    return services


if __name__ == "__main__":
    sys.exit(main(_read))
