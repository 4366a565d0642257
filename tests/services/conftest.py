"""Fixtures of the services' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from service_doors import SLOW, Here

from docmind_lab.services.server import ServiceOptions


@pytest.fixture
def serve_here() -> Iterator[Callable[..., Here]]:
    opened: list[Here] = []

    def start(**options: Any) -> Here:
        opened.append(Here(ServiceOptions(**({"profile": SLOW} | options)).door()))
        return opened[-1]

    yield start
    for here in opened:
        here.close()
