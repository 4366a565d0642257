"""A store in memory, a clock by hand and a recorder, for the retrieval tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from manual_clock import ManualClock
from qdrant_client import QdrantClient

from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder, recording


@pytest.fixture(scope="module")
def local() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture(scope="module")
def client(local: QdrantClient) -> QdrantClient:
    return local


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(100.0)


@pytest.fixture
def noted(clock: ManualClock) -> Iterator[Recorder]:
    with recording(Recorder("run", 1, Deadline.after(60, clock), clock)) as recorder:
        yield recorder


@pytest.fixture(params=["sync", "async"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)
