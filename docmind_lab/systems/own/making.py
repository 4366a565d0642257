"""What answers a user's code while it makes its graph, before any run.

Many modules embed their documents, ask a model or search as they are imported. Without a word about services nothing
real is asked, so simulated services answer then too, from a process that the first such request starts.
"""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import NotSimulated
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.clients.installing import LabAdapters
from docmind_lab.network.clients.watching import Passage, add_finder
from docmind_lab.services.endpoints import EndpointTable
from docmind_lab.services.server import ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.own.own_requests import SimulatedDestinations
from docmind_lab.systems.own.tokenizer import provide_vocabularies


@contextlib.contextmanager
def simulated_while_made(endpoints: str = "") -> Iterator[None]:
    """Answer requests to models, vector stores and endpoints inside the block; others go where they go.

    endpoints: file with the user's endpoints of other services, beside the ready ones; empty for none.
    """
    with contextlib.ExitStack() as stack:
        observer = _Observer(stack, endpoints)
        hooks = LabAdapters()
        hooks.install()
        hooks.at_removal(add_finder(observer.for_host))
        provide_vocabularies(hooks, lambda: True)
        hooks.replace(builtins, "input", lambda _: _nobody_answers)
        try:
            yield
        finally:
            hooks.remove()
            hooks.close_idle()


def _nobody_answers(prompt: object = "") -> str:
    raise EOFError(f"nobody answers input({prompt!r}) while a graph is made")


class _Observer:
    """Sends each request that simulated services answer to them. stack: ends them. endpoints: the user's file."""

    records = is_simulated = True

    def __init__(self, stack: contextlib.ExitStack, endpoints: str) -> None:
        self.anywhere = SimulatedDestinations("http://simulated/v1", "http://simulated", EndpointTable(endpoints))
        self._stack, self._lock = stack, threading.Lock()
        self._to: SimulatedDestinations | None = None

    def for_host(self, host: str) -> _Observer | None:
        """Return the observer for a request of httpx, or for one of another library to a host that has endpoints."""
        return self if not host or self.anywhere.endpoints.has_host(host) else None

    def passage(self, method: str, url: str, is_retry: bool = False) -> Passage:
        """Return where a request goes; a request that nothing simulates keeps its address."""
        try:
            self.anywhere.of(method, url)
        except NotSimulated:
            return Passage(None)
        return Passage(None, to=self._services().of(method, url))

    def _services(self) -> SimulatedDestinations:
        with self._lock:
            if self._to is None:
                table = self.anywhere.endpoints
                options = ServiceOptions(LatencyProfile.named("fast"), endpoints=table.file)
                addresses = self._stack.enter_context(ServiceProcess(options)).addresses
                self._to = SimulatedDestinations.at(addresses, table)
            return self._to

    def cut(self, attempt: Attempt | None, deadline: Deadline | None) -> BaseException:
        """Return the error for a cut request; nothing cuts one before a run."""
        return TimeoutError("a request was cut before any run")

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function: work in threads belongs to no run."""
        return function
