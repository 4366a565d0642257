"""Laboratories shared by the tests of the alternatives, on either clock: each is started when first asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from laboratories import Laboratory, laboratory
from virtual_runs import VirtualRuns


@pytest.fixture(scope="session")
def ordinary() -> Iterator[Laboratory]:
    """A run takes about 0.9 s: 0.6 s of latency, the rest is Python's own."""
    with laboratory("typical/20", own_process=False) as made:
        yield made


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
    made = VirtualRuns.over_the_handbook()
    yield made
    made.system.close()
