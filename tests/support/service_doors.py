"""Doors of a test's own, and what is asked of them through the official clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
from held_graphs import wait_until
from served_here import Here as Here

from docmind_lab.services.faults import Fault
from docmind_lab.services.log import RequestRow
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.virtual_time import VirtualClock

MODEL = "docmind-scripted"
QUESTION: Any = [{"role": "user", "content": "When does the quoll hunt in the forest?"}]


def always(seconds: float) -> QuantileTable:
    return QuantileTable.constant(seconds)


# The scripted model has nine tokens to say when it has no documents: 0.05 + 9 × 0.1 = 0.95 s.
SLOW = LatencyProfile("slow", "Nine tokens in 0.95 s.", "a test", always(0.05), always(0.1), always(0.05))
TOKENS, DURATION_S = 9, 0.95
# A service notices in milliseconds that its client has gone; shared cores pause for tens of them.
NOTICED_S = 0.25


def new_run() -> str:
    return uuid.uuid4().hex


def tags(run_id: str, call_id: str = "llm/router/1.0.1", role: str = "router") -> dict[str, str]:
    values = {"run-id": run_id, "call-id": call_id, "attempt": "1", "role": role, "step": "1.0.1", "seed": "7"}
    return {f"x-docmind-{name}": value for name, value in values.items()}


@contextlib.contextmanager
def openai_at(addresses: ServiceAddresses, **options: Any) -> Iterator[openai.OpenAI]:
    options = {"api_key": "unused", "max_retries": 0} | options
    with openai.OpenAI(base_url=addresses.openai_base_url, **options) as client:
        yield client


def streamed_text(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


HERE = ServiceAddresses.at_port(PORT)
"""Where a virtual door's services are."""


@dataclass
class Virtual:
    """A virtual door and runs before it. took_s: of the latest run."""

    door: VirtualDoor
    took_s: float = 0.0
    rows: list[RequestRow] = field(default_factory=list)

    @classmethod
    def of(cls, *faults: str, profile: LatencyProfile = SLOW, **options: Any) -> Virtual:
        """A door whose services have these faults. options: of the door."""
        parsed = tuple(Fault.parse(fault) for fault in faults)
        vectors = VectorService(profile, faults=parsed)
        return cls(VirtualDoor(OpenAIService(profile, parsed), vectors, **{"slots": profile.slots, **options}))

    def run(self, function: Callable[..., Any], *args: Any, run_id: str = "r", rests_s: float = 0.0) -> Any:
        """Run a function in virtual time. rests_s: how long the services go on after it."""
        clock = VirtualClock(on_entry=[self.door.open], horizon_s=1000.0)

        def timed() -> Any:
            try:
                return function(*args)
            finally:
                self.took_s = time.monotonic()
                time.sleep(rests_s)

        try:
            return clock.run(timed)
        finally:
            self.rows = self.door.rows(run_id)
            self.door.forget(run_id)

    @property
    def row(self) -> RequestRow:
        """The only row of the latest run."""
        (row,) = self.rows
        return row


def ask(
    stream: bool = False, headers: dict[str, str] | None = None, at: ServiceAddresses = HERE, **options: Any
) -> str:
    """What the model says, or the kind of error that its client raises."""
    with openai_at(at, **options) as client:
        try:
            reply = client.chat.completions.create(
                model=MODEL, messages=QUESTION, stream=stream, extra_headers=headers or tags("r")
            )
            return streamed_text(reply) if stream else str(reply.choices[0].message.content)
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            return type(error).__name__


async def leave(addresses: ServiceAddresses, after_s: float, run_id: str = "r", *, stream: bool = False) -> None:
    """Ask, and go away after so many seconds."""
    async with openai.AsyncOpenAI(base_url=addresses.openai_base_url, api_key="unused", max_retries=0) as client:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(after_s):
                reply: Any = await client.chat.completions.create(
                    model=MODEL, messages=QUESTION, stream=stream, extra_headers=tags(run_id)
                )
                async for _ in reply if stream else ():
                    pass


@dataclass
class Crowd:
    """Clients of one run over sockets, each in a thread of its own, that come in a known order.

    errors: what ended the calls that were not answered.
    """

    here: Here
    run_id: str = field(default_factory=new_run)
    threads: list[threading.Thread] = field(default_factory=list)
    errors: list[openai.OpenAIError] = field(default_factory=list)

    def comes(self, name: str, role: str = "router") -> None:
        """A client asks; returns when the service knows of it."""

        def ask() -> None:
            with openai_at(self.here.addresses, max_retries=2, timeout=20.0) as client:
                try:
                    client.chat.completions.create(
                        model=MODEL, messages=QUESTION, extra_headers=tags(self.run_id, name, role)
                    )
                except openai.OpenAIError as error:  # one that hangs is cut with its run
                    self.errors.append(error)

        self.threads.append(threading.Thread(target=ask, daemon=True))
        self.threads[-1].start()
        wait_until(lambda: name in {row.call_id for row in self.here.log.rows(self.run_id)}, 10.0)

    def rows(self, wait_quiet_s: float = 10.0) -> dict[str, RequestRow]:
        return {row.call_id: row for row in self.here.log.rows(self.run_id, wait_quiet_s=wait_quiet_s)}

    def gone(self) -> None:
        for thread in self.threads:
            thread.join(10)
            assert not thread.is_alive()
