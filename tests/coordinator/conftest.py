"""Services shared by the coordinator's tests, reached by settings alone, as a user's own would be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served_here import Here

from docmind_lab.core.settings import Settings
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

QUESTION = "What does a hard timeout leave running?"


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[..., ServiceAddresses]]:
    """Addresses of services with some faults; each set of them is started once."""
    with contextlib.ExitStack() as stack:
        started: dict[tuple[str, ...], ServiceAddresses] = {}

        def addresses(*faults: str) -> ServiceAddresses:
            if faults not in started:
                started[faults] = stack.enter_context(contextlib.closing(Here.of(*faults))).addresses
            return started[faults]

        yield addresses


@pytest.fixture
def coordinator(served: Callable[..., ServiceAddresses]) -> Iterator[Callable[..., MultiAgentCoordinator]]:
    """Makes coordinators on services with these faults, and closes them."""
    with contextlib.ExitStack() as stack:

        def made(*faults: str, timeout_s: float = 20.0, agents: dict[str, Any] | None = None, **options: Any) -> Any:
            at = served(*faults)
            settings = Settings(
                agents={"decision_timeout": timeout_s, **(agents or {})},
                llm={"base_url": at.openai_base_url},
                database={"qdrant_url": at.qdrant_url},
            )
            return stack.enter_context(MultiAgentCoordinator(settings, **options))

        yield made
