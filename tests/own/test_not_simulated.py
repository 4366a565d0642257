"""What virtual time has no part for is named, with the node that asked and the remedy; nothing hangs on it."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import requests
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from own_runs import State, graph_of, simulated

from docmind_lab.core.errors import NotSimulated
from docmind_lab.experiments.lint import lint_graph


def run(node: Any, alternative: str = "A") -> Any:
    return simulated(graph_of(fetch=node), alternatives=alternative, decision_timeout_s=5.0)


def other_provider(state: State) -> State:
    httpx.post("https://user:secret@api.example.net/v2/chat?key=secret", json={}, timeout=30.0)
    return {}


def tried_again(state: State) -> State:
    for _ in range(3):
        try:
            openai.OpenAI(api_key="k").moderations.create(input="a")
        except Exception:  # noqa: BLE001 - as people write it
            time.sleep(1.0)
    return {}


def by_requests(state: State) -> State:
    requests.get("https://api.example.org/weather", timeout=5.0)
    return {}


def in_a_thread_of_its_own(state: State) -> State:
    thread = threading.Thread(target=by_requests_quietly)
    thread.start()
    thread.join()
    return {}


def by_requests_quietly() -> None:
    try:
        by_requests({})
    except BaseException:  # noqa: BLE001 - as people write it, and worse
        return


def by_subprocess(state: State) -> State:
    subprocess.run(["sleep", "3"], check=True)
    return {}


def by_shell(state: State) -> State:
    os.system("sleep 3")
    return {}


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (
            other_provider,
            r"POST https://api\.example\.net/v2/chat: no simulated service answers this \(in node fetch",
        ),
        (tried_again, r"POST https://api\.openai\.com/v1/moderations: no simulated service"),
        (by_requests, r"GET https://api\.example\.org/weather: no simulated service answers this \(in node fetch\)"),
        (
            in_a_thread_of_its_own,
            r"GET https://api\.example\.org/weather: no simulated service answers this \(outside every node\)",
        ),
    ],
)
def test_what_has_no_counterpart_is_named_whatever_the_code_around_it_catches(node: Any, said: str) -> None:
    begun_at = time.monotonic()
    with pytest.raises(NotSimulated, match=said) as raised:
        run(node)
    assert 'clock="wall", services="own"' in str(raised.value)
    assert "secret" not in str(raised.value)
    # It is raised at once, in real time too; to build a system and to import takes most of this on a busy machine.
    assert time.monotonic() - begun_at < 9.0


def downloads_weights(state: State) -> State:
    requests.get("https://models.example.org/mini-lm/onnx.tar.gz", timeout=5.0)
    return {}


def test_for_a_file_of_a_model_the_remedy_is_to_have_it_on_the_machine() -> None:
    with pytest.raises(NotSimulated) as raised:
        run(downloads_weights)
    said = str(raised.value)
    assert said.startswith("GET https://models.example.org/mini-lm/onnx.tar.gz: no simulated service answers this")
    assert said.endswith("run the program once without the lab, so that it keeps the file on this machine")


def test_a_driver_that_connects_in_c_is_refused_by_its_name(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg", exc_type=ImportError)
    generators = importlib.import_module("psycopg.generators")
    before = generators.connect, generators.execute

    def query(state: State) -> State:
        with contextlib.suppress(Exception):
            psycopg.connect(f"host={tmp_path} dbname=harbour")
        return {}

    with pytest.raises(NotSimulated) as raised:
        run(query)
    assert str(raised.value) == (
        "psycopg: a database driver has no virtual time (in node fetch); "
        'use the wall clock, on which it runs for real: clock="wall" (--clock wall)'
    )
    assert (generators.connect, generators.execute) == before, "the functions are put back"


@pytest.mark.parametrize("node", [by_subprocess, by_shell])
def test_a_subprocess_is_refused_by_its_name_with_the_clock_on_which_it_runs(node: Callable[[State], State]) -> None:
    with pytest.raises(NotSimulated) as raised:
        run(node)
    said = str(raised.value)
    assert said.startswith(
        "sleep: a subprocess runs in real time, not in virtual time (in node fetch); use the wall clock"
    )
    assert said.endswith('clock="wall" (--clock wall)')
    assert "MCP" not in said


def test_a_database_is_named_and_not_the_program_that_its_driver_asks_for_the_system() -> None:
    def connect(state: State) -> State:
        with contextlib.suppress(FileNotFoundError):
            subprocess.check_output(["lsb_release", "-a"])
        socket.create_connection(("127.0.0.1", 3306))
        return {}

    with pytest.raises(NotSimulated, match=r"^127\.0\.0\.1.* \(a database driver"):
        run(connect)


def test_the_lint_names_the_wall_clock_and_no_services_of_ones_own_for_a_subprocess() -> None:
    with pytest.raises(NotSimulated) as raised:
        lint_graph(graph_of(fetch=by_subprocess), inputs=[{"question": "a"}], decision_timeout_s=2.0)
    assert str(raised.value).endswith("measure this graph with docmind-lab compare --clock wall")
    assert "(in node fetch); the deadline lint runs in virtual time only" in str(raised.value)


def test_a_module_that_starts_a_subprocess_as_it_is_imported_may_be_imported_in_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asks_its_machine.py").write_text(
        "import subprocess\nsaid = subprocess.check_output(['echo', 'here'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def late(state: State) -> State:
        seen.append(importlib.import_module("asks_its_machine").said)
        return {}

    run(late)
    assert seen == [b"here\n"]


def test_a_queue_of_multiprocessing_carries_a_value_within_a_run() -> None:
    seen = []

    def by_queue(state: State) -> State:
        queue: Any = multiprocessing.Queue()
        threading.Thread(target=queue.put, args=("there",)).start()
        seen.append(queue.get())
        queue.close()
        queue.join_thread()
        return {}

    run(by_queue)
    assert seen == ["there"]
    assert type(multiprocessing.Queue()).__module__ == "multiprocessing.queues"


def test_a_subprocess_that_an_mcp_client_starts_is_refused_with_the_other_way_to_reach_its_server() -> None:
    async def by_mcp(state: State) -> State:
        server = StdioServerParameters(command="a-server", args=["--key", "secret"])
        async with stdio_client(server):
            return {}

    with pytest.raises(NotSimulated, match=r"^a-server: a subprocess .* over its SDK's memory transport") as raised:
        run(by_mcp)
    assert "secret" not in str(raised.value)


def test_a_run_that_its_caller_has_left_is_told_of_too() -> None:
    def late(state: State) -> State:
        time.sleep(8.0)
        return other_provider(state)

    with pytest.raises(NotSimulated, match=r"api\.example\.net"):
        run(late, "B")
