"""Simulated endpoints of other services that a graph calls: a table that users extend in one file.

    [[endpoint]]
    host = "api.example.com"            # a pattern: "*.example.com", "*"
    path = "/v1/weather/*"              # a pattern
    method = "GET"                      # left out, any
    json = { city = "{query.q}", degrees = 21 }
    latency = "retrieval_s"             # of the profile, or seconds

A request is answered by the first row that fits it: those of the user's file, then the ready ones for searches. One
that no row fits gets an empty JSON object if it is tagged as `unanswered.PROVISIONAL`, and the plan says that this is
made up. Rows to copy for other services are in examples/endpoints.
The answer is a plan, so both doors play it and faults strike it as they do a model call, by the node that sent it.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import json as json_text
import math
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services import search_apis
from docmind_lab.services.endpoint_request import EndpointRequest, EndpointResponse, query_of
from docmind_lab.services.fault_plans import REFUSALS, of_any_request, refused, under_fault
from docmind_lab.services.faults import Fault, first_that_strikes
from docmind_lab.services.plan import ODD_REQUEST, Chunk, Headers, Plan, ServiceRequest, Wait, json_steps
from docmind_lab.services.unanswered import PROVISIONAL
from docmind_lab.statistics.latency.profile import LatencyProfile

ENDPOINTS_PATH: Final = "/endpoints/"
"""Where the doors have them: the host and the path of the real service follow."""

LATENCIES: Final = ("retrieval_s", "first_token_s")
"""The distributions of a latency profile that an endpoint may take its time from."""

_LONGEST_S = 3600.0
_CHANGING: Final = ("POST", "PUT", "PATCH", "DELETE")
_VALUE = re.compile(r"\{(query|json|form|header|path)\.([A-Za-z0-9_.\-]+)\}|\{(host|path|method)\}")


@dataclass(frozen=True)
class Endpoint:
    """One row of the table.

    Args:
        host: Pattern of the host, without its port.
        path: Pattern of the path.
        method: Of the request; "*" for any.
        status: Of the answer.
        json: Template of a JSON answer.
        text: Template of a text answer.
        function: "module:attribute" of a function from `EndpointRequest` to an answer, or the function.
        latency: Seconds, or the distribution of the profile from which they are drawn.
        headers: Of the answer.
        effect: Whether a request changes something, which `crash-test` counts; None for what the method says: POST,
            PUT, PATCH and DELETE do.
        folder: Where modules are looked for first.

    Raises:
        ConfigurationError: A value that cannot be used, by name.
    """

    host: str
    path: str = "*"
    method: str = "*"
    status: int = 200
    json: Any = None
    text: str | None = None
    function: str | Callable[[EndpointRequest], Any] = ""
    latency: float | str = "retrieval_s"
    headers: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    effect: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.host, str) or not self.host:
            raise ConfigurationError('host must be a pattern of a host name, such as "api.example.com"')
        if not isinstance(self.path, str) or not isinstance(self.method, str):
            raise ConfigurationError('path and method must be texts, such as "/v1/*" and "GET"')
        if isinstance(self.status, bool) or not isinstance(self.status, int) or not 200 <= self.status <= 599:
            raise ConfigurationError(f"status must be a whole number from 200 to 599, not {self.status!r}")
        if (self.json is not None) + (self.text is not None) + bool(self.function) != 1:
            raise ConfigurationError("give one of json, text and function, for the answer")
        if self.text is not None and not isinstance(self.text, str):
            raise ConfigurationError(f"text must be a text, not {self.text!r}")
        if isinstance(self.latency, str):
            if self.latency not in LATENCIES:
                raise ConfigurationError(
                    f"latency must be seconds, or one of {', '.join(LATENCIES)}; not {self.latency!r}"
                )
        elif isinstance(self.latency, bool) or not 0 <= self.latency <= _LONGEST_S:
            raise ConfigurationError(f"latency must be between 0 and {_LONGEST_S:g} seconds, not {self.latency!r}")
        if not isinstance(self.headers, Mapping) or not all(isinstance(each, str) for each in self.headers.values()):
            raise ConfigurationError("headers must be a table of texts")
        if self.effect is not None and not isinstance(self.effect, bool):
            raise ConfigurationError(f"effect must be true or false, not {self.effect!r}")
        if self.function:
            self._call  # noqa: B018 - a function that cannot be imported is refused here

    def answers(self, method: str, host: str, path: str) -> bool:
        """Whether a request is answered by this row."""
        return (
            self.method in ("*", method)
            and fnmatch.fnmatchcase(host.lower(), self.host.lower())
            and fnmatch.fnmatchcase(path, self.path)
        )

    def has_effect(self, method: str) -> bool:
        """Whether a request by this method changes something at the service."""
        return method in _CHANGING if self.effect is None else self.effect

    @functools.cached_property
    def _call(self) -> Callable[[EndpointRequest], Any]:
        if callable(self.function):
            return self.function
        place, _, attribute = str(self.function).rpartition(":")
        if not place:
            raise ConfigurationError(f'function {self.function!r}: write it as "module:attribute"')
        if self.folder and self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            function = getattr(importlib.import_module(place.removesuffix(".py")), attribute)
        except Exception as error:  # whatever a user's module raises
            raise ConfigurationError(f"function {self.function!r} cannot be imported: {error}") from error
        if not callable(function):
            raise ConfigurationError(f"function {self.function!r} is a {type(function).__name__}, not a function")
        return function  # type: ignore[no-any-return]

    def response(self, request: EndpointRequest) -> EndpointResponse:
        """Return the answer to a request. Raises: what a user's function raises."""
        if self.function:
            result = self._call(request)
            if isinstance(result, EndpointResponse):
                return replace(result, headers={**self.headers, **result.headers})
            return EndpointResponse(result, self.status, self.headers)
        template = self.text if self.json is None else self.json
        return EndpointResponse(filled(template, request), self.status, self.headers)


def filled(template: Any, request: EndpointRequest) -> Any:
    """Return a template with the values of a request. A text that is one value alone keeps the value's type."""
    if isinstance(template, Mapping):
        return {name: filled(value, request) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, request) for value in template]
    if not isinstance(template, str):
        return template

    def value_of(match: re.Match[str]) -> Any:
        return request.value(match[1], match[2]) if match[1] else getattr(request, match[3])

    whole = _VALUE.fullmatch(template)
    if whole is not None:
        return value_of(whole)
    return _VALUE.sub(lambda match: str(value_of(match)), template)


_PAGE: Final = (
    "<!DOCTYPE html><html><head><title>{path}</title></head><body><main><h1>{path}</h1>"
    "<p>This page says what it is about, and what to mind.</p></main></body></html>"
)

_TITLES: Final = ("Overview", "Guide")
_SERPER: Final = {
    "searchParameters": {"q": "{json.q}"},
    **{
        kind: [
            {"position": place + 1, "title": f"{title}: {{json.q}}", "link": f"https://www.example.com/{place + 1}"}
            | {"snippet": f"{title} of {{json.q}}: what it is, and how it is used."}
            for place, title in enumerate(_TITLES)
        ]
        for kind in ("organic", "news")
    },
}
_BRAVE_RESULTS: Final = [
    {"title": f"{title}: {{query.q}}", "url": f"https://www.example.com/{place + 1}"}
    | {"description": f"{title} of {{query.q}}: what it is, and how it is used."}
    for place, title in enumerate(_TITLES)
]

READY: Final[tuple[Endpoint, ...]] = (
    Endpoint("api.tavily.com", "/search", "POST", function=search_apis.tavily_search),
    Endpoint("api.tavily.com", "/extract", "POST", function=search_apis.tavily_extract),
    Endpoint("google.serper.dev", "/*", json=_SERPER, effect=False),
    Endpoint(
        "api.search.brave.com",
        "/res/v1/web/search",
        "GET",
        json={"type": "search", "web": {"type": "search", "results": _BRAVE_RESULTS}},
    ),
    Endpoint("*.wikipedia.org", "/w/api.php", function=search_apis.wikipedia),
    # Pages that these name in their answers.
    Endpoint("*.wikipedia.org", "/wiki/*", "GET", text=_PAGE),
    Endpoint("www.example.com", "*", "GET", text=_PAGE),
)
"""Rows that are always there, after those of a user's file."""

_PROVISIONAL: Final = Endpoint("*", json={})


def read_endpoints(file: str | Path) -> tuple[Endpoint, ...]:
    """Return the rows of a file. Raises: ConfigurationError naming the row and what is wrong with it."""
    place = Path(file)
    try:
        data = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"endpoints: {place} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ConfigurationError(f"endpoints: {place} is not TOML: {error}") from error
    rows = data.get("endpoint")
    if set(data) != {"endpoint"} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError(f"endpoints: {place} must have rows [[endpoint]], and nothing else")
    columns = {each.name for each in fields(Endpoint)} - {"folder"}
    endpoints = []
    for number, row in enumerate(rows, 1):
        where = f"endpoints: {place}, row {number}"
        if unknown := sorted(row.keys() - columns):
            raise ConfigurationError(f"{where}: unknown {unknown[0]!r}; a row has {', '.join(sorted(columns))}")
        try:
            endpoints.append(Endpoint(**{"host": "", **row}, folder=str(place.resolve().parent)))
        except (ConfigurationError, TypeError) as error:
            raise ConfigurationError(f"{where}: {error}") from error
    return tuple(endpoints)


def _known_rows(file: str) -> tuple[Endpoint, ...]:
    return _rows_as_written(file, os.stat(file).st_mtime_ns) if file else ()


@functools.lru_cache(maxsize=16)
def _rows_as_written(file: str, at_ns: int) -> tuple[Endpoint, ...]:
    """Return the rows of a file, read again when it has changed. at_ns: the instant of its last change."""
    return read_endpoints(file)


@dataclass(frozen=True)
class EndpointTable:
    """The endpoints of a study. file: the user's rows, if there are any."""

    file: str = ""

    def of_user(self, method: str, host: str, path: str) -> Endpoint | None:
        """Return the row of the user's file that answers a request, if one does."""
        return next((row for row in _known_rows(self.file) if row.answers(method, host, path)), None)

    def row(self, method: str, host: str, path: str) -> Endpoint | None:
        """Return the row that answers a request, if one does: the user's first, then the ready ones."""
        ready = (row for row in READY if row.answers(method, host, path))
        return self.of_user(method, host, path) or next(ready, None)

    def has_host(self, host: str) -> bool:
        """Whether some request to a host is answered by a row."""
        rows = (*_known_rows(self.file), *READY)
        return any(fnmatch.fnmatchcase(host.lower(), row.host.lower()) for row in rows)


@dataclass(frozen=True)
class EndpointService:
    """The simulated endpoints as a service of the doors."""

    profile: LatencyProfile
    faults: tuple[Fault, ...] = ()
    default_seed: int = 0
    table: EndpointTable = field(default_factory=EndpointTable)

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        host, _, rest = request.path.removeprefix(ENDPOINTS_PATH).partition("/")
        path = f"/{rest}"
        row = self.table.row(request.method, host, path)
        made_up = f"{request.method} {host}{path}" if row is None and request.tag(PROVISIONAL) else ""
        if made_up:
            row = _PROVISIONAL
        if row is None:
            answer = {"error": f"no endpoint answers {request.method} {host}{path}"}
            return of_any_request(Plan(json_steps(404, answer), "tool"), request, self.faults, self.default_seed)
        key = request.draw_key(host, "0", self.default_seed)
        is_named = bool(request.tag("role"))
        fault = first_that_strikes(self.faults, "llm", key, is_named=is_named, request=request.node_request)
        if fault is not None and fault.kind in REFUSALS:
            return refused(Plan((), "tool"), fault)
        query = query_of(request.query)
        call = EndpointRequest(request.method, host, path, query, request.headers, request.body)
        try:
            response = row.response(call)
        except ODD_REQUEST as error:
            answer = {"error": f"the request cannot be answered: {type(error).__name__}: {error}"}
            return of_any_request(Plan(json_steps(500, answer), "tool"), request, self.faults, self.default_seed)
        plan = Plan((Wait(self._latency_s(row, key)), *_steps(response)), "tool", made_up=made_up)
        # What has no words cannot be without them.
        return plan if fault is None or fault.kind == "empty" else under_fault(plan, fault)

    def _latency_s(self, row: Endpoint, key: DrawKey) -> float:
        if not isinstance(row.latency, str):
            return float(row.latency)
        if row.latency == "first_token_s":
            return self.profile.draw_llm(key).first_token_s
        seconds = self.profile.draw_retrieval(key)
        return seconds if math.isfinite(seconds) else 0.0


def _steps(response: EndpointResponse) -> tuple[Headers, Chunk]:
    body, kind = response.body, "text/plain; charset=utf-8"
    if isinstance(body, str) and body.startswith(("<!DOCTYPE html", "<html", "<?xml")):
        kind = "text/html; charset=utf-8" if "<html" in body[:200] else "application/xml; charset=utf-8"
    if not isinstance(body, str | bytes):
        body, kind = json_text.dumps(body), "application/json"
    data = body.encode() if isinstance(body, str) else body
    own = {name.lower(): value for name, value in response.headers.items()}
    headers = {"content-type": kind, **own, "content-length": str(len(data))}
    return Headers(response.status, tuple(headers.items())), Chunk(data)
