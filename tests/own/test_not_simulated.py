"""What virtual time has no part for is named, with the node that asked and the remedy; nothing hangs on it."""

from __future__ import annotations

import contextlib
import importlib
import json
import multiprocessing
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import requests
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from own_runs import ASKED, State, graph_of, measured_on_the_wall, services, simulated
from qdrant_client import QdrantClient

import docmind_lab as dl
from docmind_lab.core.errors import GraphError, NotSimulated
from docmind_lab.experiments.assertions import assert_keeps_deadline
from docmind_lab.experiments.crash_test import crash_test
from docmind_lab.findings.summary import summarise
from docmind_lab.services.endpoint_shape import Unanswered, rows_to_fill_in
from docmind_lab.services.endpoints import read_endpoints
from docmind_lab.views.cli import main


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


@pytest.mark.wall
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
    assert "world=dl.Live() (--services own)" in str(raised.value)
    assert "secret" not in str(raised.value)
    # It is raised at once, in real time too; to build a system and to import takes most of this on a busy machine.
    assert time.monotonic() - begun_at < 9.0


def downloads_weights(state: State) -> State:
    requests.get("https://models.example.org/mini-lm/onnx.tar.gz", timeout=5.0)
    return {}


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
        "use the wall clock, on which it runs for real: World(clock='wall') (--clock wall)"
    )
    assert (generators.connect, generators.execute) == before, "the functions are put back"


def by_queue(state: State) -> State:
    return {"answer": str(multiprocessing.Queue())}


async def by_mcp(state: State) -> State:
    async with stdio_client(StdioServerParameters(command="a-server", args=["--key", "secret"])):
        return {}


def by_database(state: State) -> State:
    """As the driver of MySQL connects, which asks a program for the name of the system."""
    with contextlib.suppress(FileNotFoundError):
        subprocess.check_output(["lsb_release", "-a"])
    socket.create_connection(("127.0.0.1", 3306))
    return {}


SUBPROCESS = (
    r"^sleep: a subprocess runs in real time, not in virtual time \(in node fetch\); "
    r"use the wall clock, on which it runs for real: World\(clock='wall'\) \(--clock wall\)$"
)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (by_subprocess, SUBPROCESS),
        (by_shell, SUBPROCESS),
        (by_queue, r"^a queue of multiprocessing waits in real time, .* a queue\.Queue"),
        (by_mcp, r"^a-server: a subprocess .* over its SDK's memory transport"),
        (by_database, r"^127\.0\.0\.1.* \(a database driver"),
        (
            downloads_weights,
            r"^GET https://models\.example\.org/mini-lm/onnx\.tar\.gz: no .* it keeps the file on this machine$",
        ),
    ],
)
def test_what_runs_in_real_time_is_refused_by_its_name_with_a_remedy_of_its_own(node: Any, said: str) -> None:
    with pytest.raises(NotSimulated, match=said) as raised:
        run(node)
    assert "secret" not in str(raised.value)
    assert type(multiprocessing.Queue()).__module__ == "multiprocessing.queues", "it is put back"


def test_the_lint_names_the_wall_clock_and_no_services_of_ones_own_for_a_subprocess() -> None:
    with pytest.raises(NotSimulated) as raised:
        dl.doctor(dl.graph(graph_of(fetch=by_subprocess), [{"question": "a"}]), decision_timeout_s=2.0)
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


def test_a_run_that_its_caller_has_left_is_told_of_too() -> None:
    def late(state: State) -> State:
        time.sleep(8.0)
        return other_provider(state)

    with pytest.raises(NotSimulated, match=r"api\.example\.net"):
        run(late, "B")


# ---- what simulated services have no answer for is answered provisionally, and every report says so


def compared(graph: Any) -> dl.Study:
    return dl.compare(dl.graph(graph, [ASKED]), alternatives="A", runs=2)


def advises(study: dl.Study, words: str) -> bool:
    return any(words in line for line in summarise(study.runs, study.manifest).advice)


# ---- collections that users have


def retrieves(state: State) -> State:
    client = QdrantClient(url="http://qdrant.example.org:6333", timeout=60, check_compatibility=False)
    try:
        return {"found": str(client.query_points("berths", query=[0.1, 0.2, 0.3], limit=3).points)}
    except Exception as error:  # noqa: BLE001 - as people write it
        return {"found": f"nothing: {error}"}


def test_a_search_in_a_collection_of_the_users_own_takes_its_time_and_hangs_under_the_fault() -> None:
    graph = graph_of(retrieve=retrieves)
    (plain,) = simulated(graph, decision_timeout_s=5.0)
    assert (plain.run.outcome, plain.run.faulted_calls) == ("answered", 0)
    assert plain.run.returned_at_s > 0
    (hung,) = simulated(graph, decision_timeout_s=5.0, faults="retrieval_hang:*")
    assert (hung.run.outcome, hung.run.faulted_calls) == ("timed_out", 1)


def test_the_summary_says_of_which_collection_the_answers_are_made_up() -> None:
    study = compared(graph_of(retrieve=retrieves))
    assert study.manifest["made_up_answers"] == {"collection berths": 2}
    assert advises(study, "In 2 runs the graph asked for the collection berths")


def grades(state: State) -> State:
    messages = [{"role": "user", "content": "Grade it. Reply in JSON."}]
    reply = httpx.post("https://api.openai.com/v1/chat/completions", json={"messages": messages})
    return {"found": reply.json()["choices"][0]["message"]["content"]}


def test_the_summary_says_where_the_model_guessed_the_shape_of_its_answer() -> None:
    study = compared(graph_of(grade=grades))
    assert study.manifest["made_up_answers"] == {"shape grade": 2}
    assert advises(study, "In 2 runs the simulated model guessed in which shape grade wants the answer")


def test_the_doctor_names_a_guess_before_which_a_graph_failed() -> None:
    def reads(state: State) -> State:
        return {"found": json.loads(grades(state)["found"])["score"]}

    with pytest.raises(GraphError, match=r"KeyError: 'score' in node grade .*; the simulated model guessed in which"):
        dl.doctor(dl.graph(graph_of(grade=reads), [ASKED]), alternatives="A")


def refused(state: State) -> State:
    reply = httpx.post("https://api.openai.com/v1/chat/completions", json={"messages": "none"})
    return {"found": str(reply.status_code)}


def test_the_summary_has_the_share_of_requests_that_failed_where_any_did() -> None:
    study = compared(graph_of(first=retrieves, second=refused))
    assert study.manifest["failed_calls"] == {"requests": 4, "failed": 2, "node": "second"}
    assert advises(study, "2 of 4 requests failed (50.0%, most of them in second)")
    assert "failed_calls" not in compared(graph_of(first=retrieves)).manifest


# ---- hosts that nothing answers

MODULE = """
from typing import TypedDict

import httpx
from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    question: str
    found: str


def ask(place, get):
    def agent(state: State) -> State:
        reply = httpx.get(f"https://{place}.made-up.test/v1/{place}?key=secret", timeout=5.0).json()
        return {"found": str(reply["value"] if get == "must" else reply.get("value"))}

    return agent


def team(get):
    builder = StateGraph(State)
    last = START
    for place in ("quotes", "news", "rates"):
        builder.add_node(place, ask(place, get))
        builder.add_edge(last, place)
        last = place
    return builder.compile()


graph, strict = team("may"), team("must")
"""
PLACES = ("quotes", "news", "rates")


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"calls_three_hosts_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "inputs.jsonl").write_text('{"question": "a"}\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def ended(*words: str) -> int:
    with pytest.raises(SystemExit) as raised:
        main(list(words))
    return int(raised.value.code or 0)


def test_the_doctor_names_every_host_in_one_pass_and_runs_clean_with_the_rows_that_it_wrote(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["doctor", "--graph", f"{module}:graph", "--inputs", "inputs.jsonl", "--alternatives", "A"]
    assert ended(*words, "--write-endpoints", "rows.toml") == 1
    out = capsys.readouterr()
    for place in PLACES:
        assert f"GET https://{place}.made-up.test/v1/{place} (in node {place})" in out.out
    assert "secret" not in out.out + out.err + Path("rows.toml").read_text(encoding="utf-8")
    (verdict,) = [line for line in out.out.splitlines() if line.startswith("A  ")]
    assert verdict.endswith("answers were made up")
    assert "With made-up answers to 3 requests" in out.out
    assert [row.host for row in read_endpoints("rows.toml")] == [f"{place}.made-up.test" for place in PLACES]

    assert ended(*words, "--endpoints", "rows.toml") == 0
    assert "made up" not in capsys.readouterr().out


def test_the_doctor_says_which_answer_was_made_up_before_a_graph_failed(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["doctor", "--graph", f"{module}:strict", "--inputs", "inputs.jsonl", "--alternatives", "A"]
    assert ended(*words, "--write-endpoints", "rows.toml") == 1
    said = capsys.readouterr().err
    assert "got a made-up {}: GET https://quotes.made-up.test/v1/quotes (in node quotes)" in said
    assert "KeyError: 'value' in node quotes" in said
    assert [row.host for row in read_endpoints("rows.toml")] == ["quotes.made-up.test"]
    # What is there already stays.
    Path("rows.toml").write_text(Path("rows.toml").read_text(encoding="utf-8").replace("{}", "{ value = 1 }", 2))
    assert ended(*words, "--endpoints", "rows.toml", "--write-endpoints", "rows.toml") == 1
    rows = read_endpoints("rows.toml")
    assert [(row.host, row.json) for row in rows] == [
        ("quotes.made-up.test", {"value": 1}),
        ("news.made-up.test", {}),
    ]


def asks(*urls: str) -> Any:
    def node(state: State) -> State:
        for url in urls:
            httpx.get(url, timeout=5.0)
        return {}

    return node


TWO = graph_of(first=asks("https://a.made-up.test/x"), second=asks("https://b.made-up.test/x"))


def test_a_comparison_names_every_request_that_nothing_answers_and_gives_no_numbers() -> None:
    with pytest.raises(NotSimulated) as raised:
        compared(TWO)
    said = str(raised.value)
    assert said.startswith(
        "no simulated service answers 2 requests: GET https://a.made-up.test/x (in node first), "
        "GET https://b.made-up.test/x (in node second); a table of endpoints can, --endpoints FILE"
    )
    assert [request.where for request in raised.value.requests] == ["in node first", "in node second"]


def test_a_crash_test_does_not_rest_on_made_up_answers() -> None:
    with pytest.raises(NotSimulated, match="no simulated service answers 2 requests"):
        crash_test(dl.graph(TWO, [ASKED]), alternatives="A,kill")


@pytest.mark.wall
def test_on_the_wall_clock_the_same_requests_are_named() -> None:
    with services() as here, pytest.raises(NotSimulated, match="no simulated service answers 2 requests"):
        measured_on_the_wall(here, TWO, "A", 5.0)


def test_an_assertion_on_the_deadline_fails_where_answers_were_made_up() -> None:
    with pytest.raises(AssertionError, match="With made-up answers to 2 requests"):
        assert_keeps_deadline(dl.graph(TWO, [ASKED]), decision_timeout_s=20.0, alternatives="A")
    report = dl.doctor(dl.graph(TWO, [ASKED]), alternatives="A")
    assert report.keeps
    assert not report.is_clean
    assert report.rows_to_fill_in.count("[[endpoint]]") == 2


@pytest.mark.full
def test_a_loop_that_waits_for_an_answer_which_never_comes_is_ended() -> None:
    def polls(state: State) -> State:
        while httpx.get("https://jobs.made-up.test/1", timeout=5.0).json().get("status") != "done":
            pass
        return {}

    with pytest.raises(NotSimulated, match=r"jobs\.made-up\.test/1: no simulated service"):
        simulated(graph_of(poll=polls), alternatives="unguarded", decision_timeout_s=1e6)


def test_a_row_to_fill_in_fits_every_path_that_was_asked_at_its_host(tmp_path: Path) -> None:
    urls = ["https://h.test:8443/v1/[a]/1", "https://h.test:8443/v1/[a]/22", "https://one.test/", "https://two.test"]
    text = rows_to_fill_in(Unanswered("GET", url, "in node n") for url in urls)
    file = tmp_path / "rows.toml"
    file.write_text(text, encoding="utf-8")
    rows = read_endpoints(file)
    assert len(rows) == 3
    asked = [("h.test", "/v1/[a]/1"), ("h.test", "/v1/[a]/22"), ("one.test", "/"), ("two.test", "/")]
    assert all(any(row.answers("GET", host, path) for row in rows) for host, path in asked)
    assert not any(row.answers("GET", "h.test", "/v2") for row in rows)


def test_a_row_to_fill_in_takes_a_last_part_with_a_number_for_an_id() -> None:
    # The next input may ask for another one.
    paths = {"/policy/P-1042": "/policy/*", "/[a]/7": "/[[]a]/*", "/api/v2": "/api/v2", "/quote": "/quote", "/": "/"}
    for path, pattern in paths.items():
        text = rows_to_fill_in([Unanswered("GET", f"https://h.test{path}", "in node n")])
        assert f'path = "{pattern}"' in text
