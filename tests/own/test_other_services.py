"""Other services that a graph calls: a table of endpoints, with search APIs ready, on both clocks and under faults."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
import pytest
import requests
from flat_compare import compare_by
from own_runs import ASKED, State, graph_of, simulated
from stub_server import StubConnection, StubRequest, StubServer
from tavily import TavilyClient

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.services.dialects import is_answered
from docmind_lab.services.endpoint_shape import Endpoint, EndpointRequest, filled
from docmind_lab.services.endpoints import ENDPOINTS_PATH, EndpointService, EndpointTable, read_endpoints
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest, Wait
from docmind_lab.services.search_apis import READY
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile

TABLE = """
[[endpoint]]
host = "api.example.org"
path = "/weather/*"
method = "GET"
json = { city = "{query.city}", of = "{path}", degrees = 21 }
latency = 1.5

[[endpoint]]
host = "*.example.net"
status = 201
function = "ticket_answers:ticket"
latency = "retrieval_s"
headers = { x-made-by = "a function" }
"""
FUNCTION = "def ticket(request):\n    return {'id': 7, 'title': request.json['title']}\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "ticket_answers.py").write_text(FUNCTION)
    file = tmp_path / "endpoints.toml"
    file.write_text(TABLE)
    return file


def weather(state: State) -> State:
    return {"answer": requests.get("https://api.example.org/weather/today", params={"city": "Rome"}, timeout=9).json()}


def ticket(state: State) -> State:
    response = httpx.post("https://desk.example.net/tickets", json={"title": "Broken"})
    assert (response.status_code, response.headers["x-made-by"]) == (201, "a function")
    return {"answer": response.json()}


def tavily(state: State) -> State:
    found = TavilyClient(api_key="tvly-any").search("what is yield", max_results=2)["results"]
    assert [sorted(each) for each in found] == [["content", "raw_content", "score", "title", "url"]] * 2
    return {"answer": found[0]["content"]}


def run(node: Any, endpoints: Path | None, faults: str = "none") -> Any:
    options = {"decision_timeout_s": 5.0, "faults": faults, "profile": "fast", "endpoints": endpoints}
    (measured,) = simulated(graph_of(search=node), **options)
    return measured


def test_a_row_of_the_file_answers_with_values_of_the_request_after_its_latency(table: Path) -> None:
    measured = run(weather, table)
    assert measured.run.outcome == "answered"
    assert measured.run.returned_at_s == pytest.approx(1.5, abs=0.001)
    assert {(call.kind, call.role, call.outcome) for call in measured.calls} == {("tool", "search", "ok")}


@pytest.mark.parametrize(
    "clock", ["virtual", pytest.param("wall", marks=[pytest.mark.full, pytest.mark.wall])], ids=["virtual", "wall"]
)
def test_a_function_of_the_file_answers_on_both_clocks(clock: Any, table: Path) -> None:
    options: dict[str, Any] = {"alternatives": "A", "latencies": "fast", "clock": clock}
    study = compare_by(
        **options, decision_timeout_s=20, runs=1, graph=graph_of(search=ticket), inputs=[ASKED], endpoints=table
    )
    assert list(study.runs["outcome"].astype("str")) == ["answered"]


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [("none", "answered"), ("hang:search", "timed_out"), ("http_500:search", "failed"), ("stall=2:search", "answered")],
)
def test_tavily_is_answered_without_a_file_and_struck_by_the_node_that_asks(fault: str, outcome: str) -> None:
    assert run(tavily, None, faults=fault).run.outcome == outcome


def test_a_template_keeps_the_type_of_a_value_and_leaves_out_what_is_not_there() -> None:
    request = EndpointRequest(
        "POST", "a.org", "/x", {"q": "sun"}, {"accept": "text/plain"}, b'{"user": {"ids": [4, 5]}, "on": true}'
    )
    template = {"id": "{json.user.ids.1}", "on": "{json.on}", "text": "{query.q} by {method}, {json.no}{header.accept}"}
    assert filled(template, request) == {"id": 5, "on": True, "text": "sun by POST, text/plain"}
    asked = EndpointRequest("GET", "tickets.example.com", "/v1/tickets/17")
    assert filled("ticket {path.3} of {path}, {path.4}{path.0}{path.x}", asked) == "ticket 17 of /v1/tickets/17, "


ENDPOINTS = {
    "tavily": (
        ServiceRequest("POST", "/endpoints/api.tavily.com/search", body=b'{"query": "cats"}'),
        lambda answer: answer["results"][0]["title"],
        "Overview: cats",
    ),
    "tavily's extract": (
        ServiceRequest("POST", "/endpoints/api.tavily.com/extract", body=b'{"urls": ["https://a.org/cats"]}'),
        lambda answer: answer["results"][0]["url"],
        "https://a.org/cats",
    ),
    "serper": (
        ServiceRequest("POST", "/endpoints/google.serper.dev/search", body=b'{"q": "cats"}'),
        lambda answer: answer["organic"][0]["title"],
        "Overview: cats",
    ),
    "brave": (
        ServiceRequest("GET", "/endpoints/api.search.brave.com/res/v1/web/search", query="q=cats"),
        lambda answer: answer["web"]["results"][0]["title"],
        "Overview: cats",
    ),
    "wikipedia": (
        ServiceRequest("GET", "/endpoints/en.wikipedia.org/w/api.php", query="titles=Cats&prop=info|pageprops"),
        lambda answer: answer["query"]["pages"]["1"]["title"],
        "Cats",
    ),
}


@pytest.mark.parametrize(("request_", "place", "quoted"), ENDPOINTS.values(), ids=ENDPOINTS)
def test_searches_quote_what_was_asked(request_: ServiceRequest, place: Callable[[Any], str], quoted: str) -> None:
    wait, _, chunk = EndpointService(LatencyProfile.named("fast")).plan(request_).steps
    assert isinstance(wait, Wait)
    assert wait.seconds > 0
    assert isinstance(chunk, Chunk)
    assert place(json.loads(chunk.data)) == quoted


def test_a_function_that_fails_is_an_error_of_the_endpoint_and_not_of_the_run(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text('[[endpoint]]\nhost = "a.org"\nfunction = "json:loads"\n')
    service = EndpointService(LatencyProfile.named("fast"), table=EndpointTable(str(file)))
    plan = service.plan(ServiceRequest("GET", "/endpoints/a.org/"))
    assert isinstance(plan.steps[0], Headers)
    assert plan.steps[0].status == 500


def test_a_file_may_have_no_rows_yet_and_another_key_is_refused_with_how_a_row_begins(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text("# My services.\n")
    assert read_endpoints(file) == ()
    file.write_text('host = "a"\n')
    with pytest.raises(ConfigurationError, match=r"rows and nothing else; a row begins with \[\[endpoint\]\]"):
        read_endpoints(file)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('host = "a"', "row 1: give one of json, text and function"),
        ('host = "a"\ntext = "b"\nstatus = 99', "row 1: status must be a whole number from 200 to 599"),
        ('host = "a"\ntext = "b"\nlatency = "slow"', "row 1: latency must be seconds, or one of retrieval_s"),
        ('host = "a"\ntext = "b"\nlatencies = 1', "row 1: unknown 'latencies'"),
        ('text = "b"', "row 1: host must be a pattern"),
        ('host = "a"\nfunction = "no_such_module:f"', "row 1: function 'no_such_module:f' cannot be imported"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_with_its_field(row: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    file.write_text(f"[[endpoint]]\n{row}\n")
    with pytest.raises(ConfigurationError, match=said):
        read_endpoints(file)


def test_a_table_is_for_simulated_services() -> None:
    with pytest.raises(ConfigurationError, match="services='own' leave them out"):
        dl.compare(dl.graph(graph_of(search=tavily), [ASKED]), world=dl.Live(endpoints="x.toml"))


def test_the_options_of_the_services_carry_the_file_to_their_process() -> None:
    options = ServiceOptions(endpoints="/a/endpoints.toml", faults=(Fault.parse("hang:*"),))
    assert ServiceOptions.from_json(options.as_json()).endpoints == "/a/endpoints.toml"


EXAMPLES = Path(__file__).parents[2] / "examples" / "graphs"


def mcp_study(monkeypatch: pytest.MonkeyPatch, place: str) -> dl.Study:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("MCP_SERVER", place)
    names = {"graph": "langgraph.json:mcp_tools", "inputs": "mcp_tools.jsonl"}
    return compare_by(**names, decision_timeout_s=30, runs=1, alternatives="C", latencies="fast", workers=None)


def test_an_mcp_server_in_this_process_is_reached_in_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    study = mcp_study(monkeypatch, "")
    assert list(study.runs["outcome"].astype("str")) == ["answered"]
    assert list(study.calls.loc[study.calls["kind"] == "tool", "outcome"].astype("str")) == ["ok"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "stdio",
            r"a subprocess runs.* an MCP server can be in this process.* \(in node tools\)",
        ),
        ("http://127.0.0.1:8765/mcp", r"POST http://127\.0\.0\.1:8765/mcp: no simulated service .* \(in node tools\)"),
    ],
)
def test_an_mcp_server_elsewhere_is_refused_by_name_in_virtual_time(
    place: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotSimulated, match=said):
        mcp_study(monkeypatch, place)


@pytest.mark.wall
def test_a_replay_answers_a_service_with_the_recorded_text_after_the_recorded_time(
    stub: Callable[..., StubServer], tmp_path: Path
) -> None:
    def recorded(request: StubRequest, connection: StubConnection) -> None:
        connection.pause(0.4)
        body = b'{"results": [{"content": "recorded"}]}'
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.send(head.encode() + body)

    hosts, answers = [f"http://127.0.0.1:{stub(recorded).port}"], list[str]()

    def search(state: State) -> State:
        found = requests.post(f"{hosts[-1]}/search", json={"query": state["question"]}, timeout=9).json()
        answers.append(found["results"][0]["content"])
        return {}

    options: dict[str, Any] = {"graph": graph_of(search), "inputs": [ASKED]}
    recording = {"record": tmp_path / "recording", "record_text": True}
    compare_by(**options, **recording, runs=1, alternatives="A", decision_timeout_s=5, services="own", clock="wall")
    hosts.append("https://api.tavily.com")
    answers.clear()
    study = compare_by(**options, replay=tmp_path / "recording", alternatives="unguarded")
    assert answers == ["recorded"]
    # What the stub waits, and what a request over loopback takes on a busy machine.
    assert 0.4 <= study.runs["returned_at_s"].iloc[0] < 0.7


# ---- the rows that are always there, and each file of examples/endpoints


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
