"""Services that graphs call without a key, ready to answer: searches in pages, weather, places, packages, pages."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
import pytest
from bs4 import BeautifulSoup
from langgraph.graph import START, StateGraph
from own_runs import simulated
from typing_extensions import TypedDict

from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.errors import NotSimulated
from docmind_lab.services.endpoint_request import EndpointRequest
from docmind_lab.services.endpoints import (
    ENDPOINTS_PATH,
    Endpoint,
    EndpointService,
    EndpointTable,
    filled,
    ready_rows,
)
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest
from docmind_lab.services.search_pages import is_page
from docmind_lab.workloads.own import own_graph


class State(TypedDict, total=False):
    question: str
    answer: Any


def graph_of(node: Any) -> Any:
    return StateGraph(State).add_node("look", node).add_edge(START, "look").compile()


def run(node: Any, alternatives: str = "A") -> Any:
    (measured,) = simulated(
        graph_of(node), alternatives=alternatives, decision_timeout_s=5.0, given={"question": "a"}, profile="fast"
    )
    return measured


def answer(
    url: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Return the status, the kind and the text of what the ready endpoints answer."""
    parts = urlsplit(url)
    path = f"{ENDPOINTS_PATH}{parts.hostname}{parts.path}"
    plan = EndpointService(LatencyProfile.named("fast")).plan(
        ServiceRequest(method, path, headers or {}, body, query=parts.query)
    )
    (head,) = [step for step in plan.steps if isinstance(step, Headers)]
    data = b"".join(step.data for step in plan.steps if isinstance(step, Chunk))
    return head.status, dict(head.headers)["content-type"], data.decode(errors="replace")


ENGINES = [
    ("https://html.duckduckgo.com/html/", "h2 a.result__a"),
    ("https://lite.duckduckgo.com/lite/?q=tide+tables", "a.result-link"),
    ("https://www.bing.com/search?q=tide+tables", "li.b_algo h2 a"),
    ("https://news.search.yahoo.com/search?p=tide+tables", "#web li h4 a"),
    ("https://search.brave.com/search?q=tide+tables", "div[data-type=web] > a"),
    ("https://www.mojeek.com/search?q=tide+tables", "ul li h2 a"),
    ("https://www.startpage.com/sp/search", "div.result > a"),
    ("https://search.yahoo.com/search;_ylt=x?p=tide+tables", "div.relsrch h3 a"),
    ("https://yandex.com/search/site/?text=tide+tables", "li.serp-item h3 a"),
]


@pytest.mark.parametrize(("url", "link"), ENGINES, ids=lambda value: urlsplit(value).hostname or "")
def test_a_search_engine_answers_a_page_with_ten_results_of_the_query(url: str, link: str) -> None:
    body = b"" if "?" in url else b"q=tide+tables&query=tide+tables"
    status, kind, text = answer(url, "POST" if body else "GET", body)
    found = BeautifulSoup(text, "html.parser").select(link)
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert len(found) == 10
    assert all("tide tables" in each.get_text() and str(each["href"]).startswith("https://") for each in found)


@pytest.mark.parametrize(
    ("url", "item", "field"),
    [
        ("https://www.bing.com/news/infinitescrollajax?q=tides", "div.newsitem", "url"),
        ("https://www.bing.com/images/async?q=tides", "div.imgpt a.iusc", "m"),
    ],
)
def test_news_and_images_are_answered_as_items_with_their_facts_in_attributes(url: str, item: str, field: str) -> None:
    found = BeautifulSoup(answer(url)[2], "html.parser").select(item)
    facts = [str(each[field]) for each in found]
    assert len(facts) == 10
    assert all("https://www.example.com/" in fact for fact in facts)
    if field == "m":
        assert all(json.loads(fact)["murl"].endswith(".png") for fact in facts)


APIS = [
    ("https://api.openweathermap.org/data/2.5/weather?q=Rome&units=metric", ("main", "temp"), float),
    ("https://api.openweathermap.org/data/2.5/forecast?q=Rome", ("list", 0, "main", "temp"), float),
    ("https://api.openweathermap.org/data/2.5/air_pollution?lat=1&lon=2", ("list", 0, "main", "aqi"), int),
    ("https://api.openweathermap.org/geo/1.0/direct?q=Rome&limit=1", (0, "lat"), float),
    ("https://api.weatherapi.com/v1/forecast.json?q=Rome&days=2", ("forecast", "forecastday", 1, "date"), str),
    ("https://api.open-meteo.com/v1/forecast?latitude=1&longitude=2&current=temperature_2m", ("current", "time"), str),
    ("https://api.open-meteo.com/v1/forecast?latitude=1&longitude=2&daily=rain_sum", ("daily", "rain_sum", 6), float),
    ("https://geocoding-api.open-meteo.com/v1/search?name=Rome", ("results", 0, "latitude"), float),
    ("https://api.weather.gov/points/38.9,-77.0", ("properties", "forecast"), str),
    ("https://api.weather.gov/gridpoints/LAB/1,1/forecast", ("properties", "periods", 0, "temperature"), int),
    ("https://api.weather.gov/alerts/active?area=CA", ("features", 0, "properties", "event"), str),
    ("https://wttr.in/Rome?format=j1", ("current_condition", 0, "temp_C"), str),
    ("https://nominatim.openstreetmap.org/search?q=Rome&format=json", (0, "lat"), str),
    ("https://ipinfo.io/json", ("loc",), str),
    ("https://api.ipify.org/?format=json", ("ip",), str),
    ("https://api.frankfurter.app/latest?from=USD&to=EUR", ("rates", "EUR"), float),
    ("https://open.er-api.com/v6/latest/GBP", ("rates", "USD"), float),
    ("https://www.alphavantage.co/query?function=GLOBAL_QUOTE&symbol=X", ("Global Quote", "05. price"), str),
    ("https://serpapi.com/search?q=tides&engine=google", ("organic_results", 0, "snippet"), str),
    ("https://www.googleapis.com/customsearch/v1?q=tides", ("items", 0, "link"), str),
    ("https://api.duckduckgo.com/?q=tides&format=json", ("AbstractText",), str),
    ("https://duckduckgo.com/news.js?q=tides&vqd=4-1", ("results", 0, "excerpt"), str),
    ("https://grokipedia.com/api/typeahead?query=tides", ("results", 0, "slug"), str),
]


APIS += [
    ("https://en.wikipedia.org/api/rest_v1/page/summary/Tide", ("extract",), str),
    ("https://api.coingecko.com/api/v3/simple/price?ids=bitcoin,ether&vs_currencies=usd", ("ether", "usd"), float),
    ("https://restcountries.com/v3.1/name/france", (0, "name", "common"), str),
    ("https://newsapi.org/v2/everything?q=tides", ("articles", 0, "title"), str),
    ("https://api.semanticscholar.org/graph/v1/paper/search?query=tides&limit=3", ("data", 2, "paperId"), str),
    ("https://api.semanticscholar.org/graph/v1/paper/abc/citations", ("data", 0, "citingPaper", "title"), str),
    ("https://api.semanticscholar.org/recommendations/v1/papers/forpaper/a", ("recommendedPapers", 0, "year"), int),
    ("https://api.semanticscholar.org/graph/v1/author/search?query=Ann", ("data", 0, "authorId"), str),
    ("https://api.openalex.org/works?search=tides&per-page=2", ("results", 1, "abstract_inverted_index"), dict),
    ("https://api.openalex.org/works?filter=title.search:tides", ("results", 0, "cited_by_count"), int),
    ("https://api.crossref.org/works?query.title=tides&rows=2", ("message", "items", 1, "title", 0), str),
    (
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esearch.fcgi?db=pubmed&term=tides&retmode=json",
        ("esearchresult", "idlist", 0),
        str,
    ),
    (
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esummary.fcgi?db=pubmed&id=7,8&retmode=json",
        ("result", "8", "title"),
        str,
    ),
    (
        "https://www.ebi.ac.uk/europepmc/webservices/rest/search?query=tides&format=json&pageSize=2",
        ("resultList", "result", 1, "title"),
        str,
    ),
    ("https://pypi.org/pypi/requests/json", ("info", "version"), str),
    ("https://query1.finance.yahoo.com/v8/finance/chart/T?range=5d", ("chart", "result", 0, "timestamp", 4), int),
    (
        "https://query2.finance.yahoo.com/v10/finance/quoteSummary/T?modules=price,assetProfile",
        ("quoteSummary", "result", 0, "assetProfile", "sector"),
        str,
    ),
    ("https://query1.finance.yahoo.com/v7/finance/quote?symbols=A,B", ("quoteResponse", "result", 1, "symbol"), str),
    ("https://query2.finance.yahoo.com/v1/finance/search?q=tides", ("quotes", 0, "symbol"), str),
    ("https://api.github.com/repos/ada/harbour", ("full_name",), str),
    ("https://api.github.com/repos/ada/harbour/pulls/7", ("number",), int),
    ("https://api.github.com/repos/ada/harbour/pulls/7/files", (0, "patch"), str),
    ("https://api.github.com/repos/ada/harbour/issues?state=open", (0, "title"), str),
    ("https://api.github.com/repos/ada/harbour/issues/3/comments", (0, "body"), str),
    ("https://api.github.com/repos/ada/harbour/contents/src", ("content",), str),
    ("https://api.github.com/repos/ada/harbour/contents/", (1, "path"), str),
    ("https://api.github.com/repos/ada/harbour/git/trees/main?recursive=1", ("tree", 0, "path"), str),
    ("https://api.github.com/repos/ada/harbour/commits", (0, "commit", "message"), str),
    ("https://api.github.com/repos/ada/harbour/compare/a...b", ("files", 0, "filename"), str),
    ("https://api.github.com/search/repositories?q=tides+language:python", ("items", 0, "full_name"), str),
    ("https://api.github.com/users/ada", ("login",), str),
    ("https://registry.npmjs.org/@types/node", ("dist-tags", "latest"), str),
]


APIS += [
    ("https://devapi.qweather.com/v7/weather/3d?location=101010100", ("daily", 2, "tempMax"), str),
    ("https://restapi.amap.com/v3/weather/weatherInfo?city=110000", ("lives", 0, "temperature"), str),
    ("https://restapi.amap.com/v5/place/text?keywords=museum", ("pois", 1, "name"), str),
    ("https://maps.googleapis.com/maps/api/place/textsearch/json?query=museum", ("results", 1, "rating"), float),
    ("https://archive-api.open-meteo.com/v1/archive?latitude=1&longitude=2&daily=rain_sum", ("daily", "time", 0), str),
    ("https://api.nal.usda.gov/fdc/v1/foods/search?query=oats", ("foods", 0, "foodNutrients", 1, "value"), float),
    ("https://test.api.amadeus.com/v2/shopping/flight-offers", ("data", 0, "price", "total"), str),
    ("https://hn.algolia.com/api/v1/search?query=tides", ("hits", 0, "title"), str),
    ("https://www.reddit.com/r/python/hot.json", ("data", "children", 1, "data", "title"), str),
    ("https://finnhub.io/api/v1/quote?symbol=T", ("c",), float),
    ("https://api.coingecko.com/api/v3/coins/ether", ("market_data", "current_price", "usd"), float),
    ("https://api.pinecone.io/indexes/harbour", ("host",), str),
    ("https://serpapi.com/search?engine=google_flights&departure_id=A", ("best_flights", 0, "price"), int),
    ("https://serpapi.com/search.json?engine=google_news&q=tides", ("news_results", 4, "title"), str),
    ("https://google.serper.dev/news?q=tides", ("news", 0, "date"), str),
    ("https://jsonplaceholder.typicode.com/todos/7", ("title",), str),
]


@pytest.mark.parametrize(("url", "path", "kind"), APIS, ids=[url for url, _, _ in APIS])
def test_an_open_service_answers_in_its_own_shape_and_the_same_each_time(url: str, path: Any, kind: type) -> None:
    status, content_type, text = answer(url)
    value = json.loads(text)
    for name in path:
        value = value[name]
    assert (status, content_type) == (200, "application/json")
    assert isinstance(value, kind)
    assert answer(url)[2] == text


def addresses_in(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [url for each in (value.values() if isinstance(value, dict) else value) for url in addresses_in(each)]
    return [value] if isinstance(value, str) and value.startswith("https://") else []


def a_request_of(row: Endpoint) -> tuple[str, str, str]:
    """Return a method, a host and a path that the patterns of a row fit."""
    host, path = (re.sub(r"\[[^]]*\]", "a", pattern).replace("*", "x") for pattern in (row.host, row.path))
    return "GET" if row.method == "*" else row.method, host, path if path.startswith("/") else f"/{path}"


def test_every_ready_row_answers_and_every_address_in_an_answer_is_answered_itself() -> None:
    table = EndpointTable()
    asked = [a_request_of(row) for row in ready_rows()] + [
        ("GET", str(urlsplit(url).hostname), urlsplit(url).path) for url, _, _ in APIS
    ]
    for method, host, path in asked:
        status, kind, text = answer(f"https://{host}{path}", method, b"{}" if method == "POST" else b"")
        assert status < 300 or status == 404, (method, host, path, text)
        found = addresses_in(json.loads(text)) if kind == "application/json" else []
        nowhere = [url for url in found if not table.ready("GET", str(urlsplit(url).hostname), urlsplit(url).path)]
        assert not nowhere, (method, host, path, nowhere)


def test_the_weather_of_some_days_is_that_of_those_days_with_each_value_that_is_asked_for() -> None:
    url = "https://api.open-meteo.com/v1/forecast?latitude=1&longitude=2&start_date=2026-02-27&end_date=2026-03-01"
    daily = json.loads(answer(f"{url}&daily=temperature_2m_max&daily=rain_sum")[2])["daily"]
    assert daily["time"] == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert [len(daily[name]) for name in ("temperature_2m_max", "rain_sum")] == [3, 3]


def test_no_ready_row_stands_behind_another_that_answers_all_of_its_requests() -> None:
    table, hidden = EndpointTable(), []
    for row in ready_rows():
        method, *place = a_request_of(row)
        methods = ("GET", "POST") if row.method == "*" else (method,)
        if all(table.ready(each, *place) is not row for each in methods):
            hidden.append((row.method, row.host, row.path))
    assert hidden == []


def test_a_template_takes_a_part_of_the_path_by_its_number() -> None:
    asked = EndpointRequest("GET", "tickets.example.com", "/v1/tickets/17")
    assert filled("ticket {path.3} of {path}, {path.4}{path.0}{path.x}", asked) == "ticket 17 of /v1/tickets/17, "


def test_github_shows_a_change_takes_a_comment_and_has_no_other_path() -> None:
    changes = [
        answer("https://github.com/ada/harbour/pull/7.diff")[2],
        answer("https://api.github.com/repos/ada/harbour/pulls/7", headers={"accept": "application/vnd.github.diff"})[
            2
        ],
    ]
    assert [text.partition("\n")[0] for text in changes] == ["diff --git a/src/main.py b/src/main.py"] * 2
    place = "https://api.github.com/repos/ada/harbour/issues/7/comments"
    status, _, text = answer(place, "POST", b'{"body": "Seen."}')
    assert (status, json.loads(text)["body"]) == (201, "Seen.")
    assert answer("https://api.github.com/repos/ada/harbour/actions/runs")[0] == 404
    assert "Tides turn" in answer("https://raw.githubusercontent.com/ada/harbour/main/README.md")[2]


def test_firecrawl_reads_a_page_and_searches() -> None:
    page = json.loads(answer("https://api.firecrawl.dev/v2/scrape", "POST", b'{"url": "https://example.com"}')[2])
    assert page["data"]["markdown"].startswith("# https://example.com")
    found = json.loads(answer("https://api.firecrawl.dev/v2/search", "POST", b'{"query": "tides"}')[2])
    assert "tides" in found["data"]["web"][0]["title"]


def test_what_a_library_can_do_without_is_not_there() -> None:
    assert answer("https://raw.githubusercontent.com/BerriAI/litellm/main/prices.json")[0] == 404
    assert answer("https://huggingface.co/api/agent-harnesses")[0] == 404


def test_a_graph_that_is_drawn_as_its_module_is_imported_gets_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "draws_itself.py"
    file.write_text(
        "from typing import TypedDict\nfrom langgraph.graph import START, StateGraph\n"
        "class State(TypedDict, total=False):\n    question: str\n"
        "graph = StateGraph(State).add_node('look', lambda state: {}).add_edge(START, 'look').compile()\n"
        "picture = graph.get_graph().draw_mermaid_png()\n"
    )
    own_graph(f"{file}:graph", [{"question": "a"}])
    assert sys.modules[file.stem].picture.startswith(b"\x89PNG")


def test_papers_come_as_an_atom_feed_with_as_many_entries_as_are_asked_for() -> None:
    _, kind, text = answer("https://export.arxiv.org/api/query?search_query=tides&start=0&max_results=3")
    entries = ElementTree.fromstring(text).findall("{http://www.w3.org/2005/Atom}entry")
    assert kind.startswith("application/xml")
    assert len(entries) == 3
    ids = [entry.findtext("{http://www.w3.org/2005/Atom}id") or "" for entry in entries]
    assert all(re.fullmatch(r"http://arxiv\.org/abs/\d{4}\.\d{5}v1", each) for each in ids)


@pytest.mark.parametrize(
    ("url", "path", "value"),
    [
        ("https://api.semanticscholar.org/graph/v1/paper/DOI:10.5555/1", ("paperId",), "DOI:10.5555/1"),
        ("https://api.openalex.org/works/W12", ("id",), "https://openalex.org/W12"),
        ("https://api.crossref.org/works/10.5555/1", ("message", "DOI"), "10.5555/1"),
        ("https://pypi.org/pypi/requests/2.31.0/json", ("info", "version"), "2.31.0"),
        ("https://registry.npmjs.org/react/18.2.0", ("version",), "18.2.0"),
    ],
)
def test_what_is_asked_for_by_its_identifier_has_it(url: str, path: Any, value: str) -> None:
    found = json.loads(answer(url)[2])
    for name in path:
        found = found[name]
    assert found == value


def test_papers_of_pubmed_come_as_xml_where_no_json_is_asked_for() -> None:
    base = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    found = ElementTree.fromstring(answer(f"{base}/esearch.fcgi?db=pubmed&term=tides&retmax=2")[2])
    ids = [each.text for each in found.iter("Id")]
    papers = ElementTree.fromstring(answer(f"{base}/efetch.fcgi?db=pubmed&id={','.join(map(str, ids))}")[2])
    assert [each.text for each in papers.iter("PMID")] == ids
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://blog.example.org/posts/deadlines/", True),
        ("https://someone.github.io/posts/agents", True),
        ("https://www.somewhere.org/article/tides", True),
        ("https://somewhere.org/", True),
        ("https://somewhere.org/guide.html", True),
        ("https://somewhere.org/guide.pdf", False),
        ("https://api.somewhere.org/", False),
        ("https://somewhere.org/api/v2/users/", False),
        ("https://www.somewhere.org/find?q=tides", False),
        ("https://somewhere.org/todos/1", False),
        ("https://somewhere.org/2024/01/how-tides-work", True),
        ("https://somewhere.org/fact-1", False),
        ("http://192.0.2.7/", False),
    ],
)
def test_a_page_is_told_from_an_api_by_its_address(url: str, expected: bool) -> None:
    parts = urlsplit(url)
    assert is_page("GET", parts.hostname or "", parts.path, parts.query) is expected


def test_a_page_of_a_site_is_read_in_virtual_time() -> None:
    def read(state: State) -> State:
        page = httpx.get("https://someone.github.io/posts/on-deadlines/", timeout=9)
        assert "on deadlines" in BeautifulSoup(page.text, "html.parser").get_text()
        return {"answer": page.text}

    measured = run(read)
    assert measured.run.outcome == "answered"
    assert {(call.kind, call.role, call.outcome) for call in measured.calls} == {("tool", "look", "ok")}


def test_a_refused_request_is_told_of_the_file_that_can_answer_it() -> None:
    with pytest.raises(NotSimulated, match=r"a table of endpoints can, --endpoints FILE \(endpoints=\.\.\.\)"):
        run(lambda state: httpx.get("https://somewhere.org/todos/1") and {})


# ---- a client that is compiled


class _Primp(ModuleType):
    """As much of primp as its users touch."""

    class Client:
        headers: dict[str, str] = {"user-agent": "one"}  # noqa: RUF012 - as the library has it

        def __init__(self, **options: Any) -> None:
            self.cookies: dict[str, str] = {}

        def set_cookies(self, url: str, cookies: dict[str, str]) -> None:
            self.cookies |= cookies

        def request(self, method: str, url: str, **options: Any) -> Any:
            raise AssertionError("the library's own client was asked")

    class PrimpError(Exception):
        pass

    class RequestError(PrimpError):
        pass

    class ConnectError(RequestError):
        pass

    class TimeoutError(RequestError):  # noqa: A001 - the library's name
        pass


@pytest.fixture
def primp(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = _Primp("primp")
    made.__spec__ = importlib.util.spec_from_loader("primp", loader=None)
    monkeypatch.setitem(sys.modules, "primp", made)
    return made


def test_searches_of_a_compiled_client_are_answered_also_in_threads_of_its_library(primp: Any) -> None:
    def search(state: State) -> State:
        client = primp.Client(timeout=3, impersonate="random")
        client.set_cookies("https://www.bing.com", {"a": "b"})
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(client.get, "https://www.bing.com/search", params={"q": "tides"}).result()
        assert (found.status_code, "b_algo" in found.text) == (200, True)
        assert "tides" in found.text_plain
        return {"answer": found.text}

    measured = run(search)
    assert measured.run.outcome == "answered"
    assert [(call.kind, call.outcome) for call in measured.calls if call.seen_from == "client"] == [("tool", "ok")]
    assert primp.Client is _Primp.Client


def test_a_compiled_client_gets_its_own_error_where_nothing_answers_before_its_timeout(primp: Any) -> None:
    def search(state: State) -> State:
        with pytest.raises(primp.TimeoutError):
            primp.Client(timeout=1.0).get("https://www.bing.com/search", params={"q": "tides"})
        return {"answer": "too late"}

    (measured,) = simulated(
        graph_of(search),
        alternatives="unguarded",
        decision_timeout_s=5.0,
        given={"question": "a"},
        profile="fast",
        faults="hang:look",
    )
    assert measured.run.outcome == "answered"
    assert measured.run.returned_at_s == pytest.approx(1.0, abs=0.01)


def test_a_search_that_outlives_its_run_is_never_sent_by_the_library_itself(primp: Any) -> None:
    sent: list[str] = []
    primp.Client.request = lambda self, method, url, **_: sent.append(url)

    def search(state: State) -> State:
        # Whoever tries again after each error makes a client anew, also when the run has been given up.
        for _ in range(50):
            with contextlib.suppress(Exception), ThreadPoolExecutor(1) as pool:
                client = primp.Client(timeout=5.0)
                wait([pool.submit(client.request, "GET", "https://www.bing.com/search")], timeout=5.0)
            time.sleep(3.0)
        return {"answer": "at last"}

    (measured,) = simulated(
        graph_of(search),
        alternatives="unguarded",
        decision_timeout_s=5.0,
        given={"question": "a"},
        profile="fast",
        faults="hang:look",
    )
    assert measured.run.outcome != "answered"
    assert sent == []


# ---- while a module is imported

SEARCHES = """
import requests
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

found = requests.post("https://api.tavily.com/search", json={"query": "tides", "max_results": 2}, timeout=9).json()


class State(TypedDict, total=False):
    question: str


graph = StateGraph(State).add_node("look", lambda state: {}).add_edge(START, "look").compile()
"""


def test_a_search_is_answered_while_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "searches_as_it_is_imported.py").write_text(SEARCHES)
    monkeypatch.syspath_prepend(tmp_path)
    own_graph("searches_as_it_is_imported:graph", [{"question": "a"}])
    assert len(sys.modules["searches_as_it_is_imported"].found["results"]) == 2
