"""The hops over sockets: a process for each level, whose clocks are hours apart.

    with HopProcesses(ServiceOptions(adoption=0.5)) as hops:
        hops.addresses.hops_url        # of hop 1; its process knows where hop 2 is, and so on
        hops.log_client()              # reads the logs of all processes, by the machine's own clock

`python -m docmind_lab.systems.hops.processes` is one of them. It reads its options from standard input, as
`python -m docmind_lab.services` does.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.__main__ import main
from docmind_lab.services.hop_behaviour import LEVELS
from docmind_lab.services.plan import Plan, ServiceRequest, json_steps
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions, ServiceProcess
from docmind_lab.services.wall_door import WallDoor

COMMAND: Final = (sys.executable, "-m", "docmind_lab.systems.hops.processes")

APART_S: Final = 3600.0
"""The clock of each level is ahead of the one above by so much: instants of one process mean nothing in another."""

Instant = TypeVar("Instant", int, float)


class _NothingElse:
    """Answers every request that is for no hop."""

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        return Plan(json_steps(404, {"error": f"{request.path} is not served here; /hops/<role> is"}), "peer")


@dataclass(frozen=True)
class HopServices:
    """Options of one process. below_url: empty at the last level. clock_ahead_s: of the machine's clock."""

    options: ServiceOptions
    below_url: str = ""
    clock_ahead_s: float = 0.0

    def door(self) -> WallDoor:
        """The hops behind sockets."""
        return WallDoor(
            llm=_NothingElse(),
            vectors=_NothingElse(),
            behaviour=self.options.behaviour,
            hops=self.options.hop_behaviour(),
            below_url=self.below_url,
            clock_ahead_s=self.clock_ahead_s,
        )

    def as_json(self) -> str:
        """The options as one line of JSON, which `from_json` reads back equal."""
        options = json.loads(self.options.as_json())
        return json.dumps({"options": options, "below_url": self.below_url, "clock_ahead_s": self.clock_ahead_s})

    @classmethod
    def from_json(cls, text: str) -> HopServices:
        """The options that `as_json` wrote. Raises: ConfigurationError naming what does not fit."""
        try:
            data = json.loads(text)
            options = ServiceOptions.from_json(json.dumps(data["options"]))
            return cls(options, str(data["below_url"]), float(data["clock_ahead_s"]))
        except (ValueError, TypeError, LookupError) as error:
            raise ConfigurationError(f"options of the hops: {error}") from error


@dataclass
class HopProcesses:
    """A process for each level of hops; a context manager that starts and stops them."""

    options: ServiceOptions = field(default_factory=ServiceOptions)
    addresses: ServiceAddresses = field(init=False)
    _log_urls: list[str] = field(default_factory=list, init=False, repr=False)
    _running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        below_url = ""
        with contextlib.ExitStack() as started:
            # The last level first: each is told where the next one is.
            for level in range(LEVELS, 0, -1):
                services = HopServices(self.options, below_url, APART_S * level)
                process = started.enter_context(ServiceProcess(services, COMMAND))
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
