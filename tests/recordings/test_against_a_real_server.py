"""Measure a real server under a short deadline, replay that under a longer one, measure there, compare (trust 12)."""

from __future__ import annotations

import contextlib
import importlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from flat_compare import compare_by

from benchmarks import tiny_server
from benchmarks.tiny_server import TinyServer
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.experiments.recordings.fidelity import fidelity
from docmind_lab.findings.study import Study
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.shares import share_interval

EXAMPLES = Path(__file__).parents[2] / "examples"

installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in tiny_server.MODULES),
    reason="llama.cpp's server is not installed: pip install 'docmind_lab[live]'",
)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with TinyServer() as server:
        yield server.base_url


def inputs(runs: int, median_tokens: int) -> list[str]:
    """Lengths of the three answers of each run, tokens: many short ones and some long."""
    drawn = np.random.default_rng(7).lognormal(np.log(median_tokens), 0.7, size=(runs, 3)).astype(int) + 5
    return [" ".join(map(str, run)) for run in drawn]


def deadlines(graph: Any, asked: list[str]) -> tuple[float, float]:
    """A deadline that cuts about half of the runs and one that cuts few, seconds.

    They follow from the least time a token took, which a busy machine can hardly fall below later.
    """
    tokens, took_s = [], []
    for lengths in asked:
        began = time.perf_counter()
        graph.invoke({"messages": [("user", lengths)]})
        took_s.append(time.perf_counter() - began)
        tokens.append(sum(map(int, lengths.split())))
    least_s = min(seconds / length for seconds, length in zip(took_s, tokens, strict=True))
    return tuple(round(least_s * float(np.quantile(tokens, share)), 3) for share in (0.5, 0.9))  # type: ignore[return-value]


def in_time(study: Study) -> Interval:
    return share_interval(int(study.runs["answered_in_time"].sum()), len(study.runs))


@pytest.mark.full
@installed
@pytest.mark.wall
def test_a_replay_under_a_longer_deadline_promises_no_more_than_a_real_server_keeps(
    base_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    monkeypatch.syspath_prepend(EXAMPLES)
    runs = 6
    graph, asked = importlib.import_module("three_steps").graph(), inputs(runs, median_tokens=120)
    short_s, long_s = deadlines(graph, asked)
    live = {"graph": graph, "inputs": asked, "runs": runs, "alternatives": "A", "workers": 1}
    live |= {"clock": "wall", "services": "own"}

    recorded = compare_by(**live, decision_timeout_s=short_s, record=tmp_path / "recording")
    replay = {"graph": graph, "inputs": asked, "replay": tmp_path / "recording"}
    # A cut call may have ended within some milliseconds of the deadline: one run of six may differ.
    assert fidelity(recorded, compare_by(**replay)).same_outcome >= 1 - 1 / runs

    replayed = compare_by(**replay, decision_timeout_s=long_s)
    assert replayed.manifest["replayed_calls"]["cut_in_the_recording"] > 0
    assert replayed.runs["answered_in_time"].sum() >= recorded.runs["answered_in_time"].sum()

    # Of two samples of one truth one's interval leaves the other's in far fewer than one test of a hundred. A machine
    # that is busy in one of the measurements makes that one slower, so it is measured again before anything is wrong.
    kept = [in_time(compare_by(**live, decision_timeout_s=long_s))]
    while in_time(replayed).low > kept[-1].high and len(kept) < 3:
        kept.append(in_time(compare_by(**live, decision_timeout_s=long_s)))
    assert in_time(replayed).low <= kept[-1].high, kept


@pytest.mark.full
@installed
def test_the_real_server_ends_while_requests_are_under_way() -> None:
    """Its own end waits for them, so the process leaves without it; the test would not end either."""
    body = b'{"model": "tiny", "messages": [{"role": "user", "content": "go"}], "max_tokens": 3000, "stream": true}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with contextlib.ExitStack() as connections, TinyServer() as server:
        address = urlsplit(server.base_url)
        opened = [socket.create_connection((address.hostname, address.port), timeout=60.0) for _ in range(3)]
        for connection in opened:
            connections.enter_context(connection).sendall(head + body)
        assert opened[0].recv(1)
    assert server._process.returncode == 0


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_server, "MODULES", ("no_such_module",))
    with pytest.raises(ConfigurationError, match=r"no_such_module not installed: pip install 'docmind_lab\[live\]'"):
        TinyServer()


def test_a_server_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_server, "MODULES", ())
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **pipes: popen([sys.executable, "-c", ""], **pipes))
    with pytest.raises(ServiceError, match="did not start"):
        TinyServer()
