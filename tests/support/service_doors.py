"""Doors of a test's own, and what is asked of them through the official clients."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import openai
from served_here import Here as Here

from docmind_lab.network import Attempt
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable

MODEL = "docmind-scripted"
QUESTION: Any = [{"role": "user", "content": "When does the quoll hunt in the forest?"}]


def always(seconds: float) -> QuantileTable:
    return QuantileTable.constant(seconds)


# The scripted model has nine tokens to say when it has no documents: 0.05 + 9 × 0.1 = 0.95 s.
SLOW = LatencyProfile("slow", "Nine tokens in 0.95 s.", "a test", always(0.05), always(0.1), always(0.05))
TOKENS, DURATION_S, LEAVES_AFTER_S = 9, 0.95, 0.4
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


class Untold:
    """An observer of attempts that keeps nothing."""

    def attempt_started(self, attempt: Attempt) -> None: ...

    def attempt_ended(self, attempt: Attempt) -> None: ...
