"""Laboratories shared by the tests of the alternatives, on either clock: each is started when first asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from laboratories import Laboratory, laboratory
from virtual_runs import VirtualRuns


@pytest.fixture(scope="session")
def hanging() -> Iterator[Laboratory]:
    """Synthesis never answers."""
    with laboratory("typical/40", "hang", own_process=False) as made:
        yield made


@pytest.fixture(scope="session")
def trickling() -> Iterator[Laboratory]:
    """Synthesis sends its body in pieces 0.3 s apart, 3.6 s in all."""
    with laboratory("typical/40", "trickle", own_process=False) as made:
        yield made


@pytest.fixture(scope="session")
def virtual_runs() -> Iterator[VirtualRuns]:
    """Whole runs in virtual time, over one system."""
    with VirtualRuns.of("supervisor") as made:
        yield made
