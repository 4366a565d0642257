"""What simulated services have no answer for is answered provisionally, and every report says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from own_runs import ASKED, State, graph_of, measured_on_the_wall, services, simulated
from qdrant_client import QdrantClient

import docmind_lab as dl
from docmind_lab.analysis.summary import summarise
from docmind_lab.core.errors import GraphError, NotSimulated
from docmind_lab.experiments.crash_test import crash_test
from docmind_lab.experiments.lint import lint_graph
from docmind_lab.experiments.testing import assert_keeps_deadline
from docmind_lab.interfaces.cli import main
from docmind_lab.services.endpoints import read_endpoints
from docmind_lab.services.unanswered import Unanswered, rows_to_fill_in


def compared(graph: Any) -> dl.Study:
    return dl.compare(graph=graph, inputs=[ASKED], runs=2, alternatives="A")


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
        lint_graph(graph_of(grade=reads), [ASKED], alternatives="A")


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
    for place in ("quotes", "news", "rates", "moods", "filings"):
        builder.add_node(place, ask(place, get))
        builder.add_edge(last, place)
        last = place
    return builder.compile()


graph, strict = team("may"), team("must")
"""
PLACES = ("quotes", "news", "rates", "moods", "filings")


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"calls_five_hosts_{abs(hash(request.node.name))}"
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
    assert "With made-up answers to 5 requests" in out.out
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
        crash_test(TWO, [ASKED], alternatives="A")


@pytest.mark.wall
def test_on_the_wall_clock_the_same_requests_are_named() -> None:
    with services() as here, pytest.raises(NotSimulated, match="no simulated service answers 2 requests"):
        measured_on_the_wall(here, TWO, "A", 5.0)


def test_an_assertion_on_the_deadline_fails_where_answers_were_made_up() -> None:
    with pytest.raises(AssertionError, match="With made-up answers to 2 requests"):
        assert_keeps_deadline(TWO, [ASKED], decision_timeout_s=20.0, alternatives="A")
    report = lint_graph(TWO, [ASKED], alternatives="A")
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
