"""The rows of endpoints that there are: those that are always there, and each file of examples/endpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.services.dialects import is_answered
from docmind_lab.services.endpoints import (
    ENDPOINTS_PATH,
    READY,
    Endpoint,
    EndpointService,
    EndpointTable,
    read_endpoints,
)
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest

FILES = sorted((Path(__file__).parents[2] / "examples" / "endpoints").glob("*.toml"))
FAST = LatencyProfile.named("fast")


def a_request_of(row: Endpoint) -> tuple[str, str, str]:
    """Return a method, a host and a path that the patterns of a row fit."""
    host, path = (
        re.sub(r"\[!?(.)[^]]*\]", lambda match: "a" if "!" in match[0] else match[1], pattern)
        .replace("?", "x")
        .replace("*", "x")
        for pattern in (row.host, row.path)
    )
    return "GET" if row.method == "*" else row.method, host, path if path.startswith("/") else f"/{path}"


def answer(table: EndpointTable, method: str, host: str, path: str) -> tuple[int, str, str]:
    """Return the status, the kind and the text of an answer."""
    body = b"{}" if method == "POST" else b""
    plan = EndpointService(FAST, table=table).plan(ServiceRequest(method, f"{ENDPOINTS_PATH}{host}{path}", {}, body))
    (head,) = [step for step in plan.steps if isinstance(step, Headers)]
    data = b"".join(step.data for step in plan.steps if isinstance(step, Chunk))
    return head.status, dict(head.headers)["content-type"], data.decode()


def addresses_in(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [url for each in (value.values() if isinstance(value, dict) else value) for url in addresses_in(each)]
    return [value] if isinstance(value, str) and re.match("https?://", value) else []


@pytest.mark.parametrize("file", [None, *FILES], ids=lambda file: file.stem if file else "ready")
def test_every_row_answers_and_so_does_every_address_in_its_answer(file: Path | None) -> None:
    table = EndpointTable(str(file) if file else "")
    for row in read_endpoints(file) if file else READY:
        asked = a_request_of(row)
        assert table.row(*asked) is not None, asked
        status, kind, text = answer(table, *asked)
        assert status == row.status, (asked, text)
        if "xml" in kind and "svg" not in kind:
            ElementTree.fromstring(text)
        for url in addresses_in(json.loads(text)) if kind == "application/json" else ():
            assert table.row("GET", str(urlsplit(url).hostname), urlsplit(url).path or "/"), (asked, url)


@pytest.mark.parametrize("file", [None, *FILES], ids=lambda file: file.stem if file else "ready")
def test_no_row_stands_behind_another_that_answers_its_requests(file: Path | None) -> None:
    table = EndpointTable(str(file) if file else "")
    hidden = []
    for row in read_endpoints(file) if file else READY:
        method, *place = a_request_of(row)
        if all(table.row(each, *place) != row for each in (("GET", "POST") if row.method == "*" else (method,))):
            hidden.append((row.method, row.host, row.path))
    assert hidden == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_row_of_an_example_takes_a_request_from_a_model_or_from_a_ready_row(file: Path) -> None:
    table = EndpointTable(str(file))
    for url in (
        "https://api.openai.com/v1/chat/completions",
        "https://api.anthropic.com/v1/messages",
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
    ):
        parts = urlsplit(url)
        assert is_answered("POST", url)
        assert table.of_user("POST", str(parts.hostname), parts.path) is None
    for row in READY:
        assert table.of_user(*a_request_of(row)) is None, row
