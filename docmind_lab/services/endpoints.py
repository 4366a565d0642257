"""Simulated endpoints of other services that a graph calls: a table that users extend in one file.

    [[endpoint]]
    host = "api.example.com"            # a pattern: "*.example.com", "*"
    path = "/v1/weather/*"              # a pattern
    method = "GET"                      # left out, any
    json = { city = "{query.q}", degrees = 21 }
    latency = "retrieval_s"             # of the profile, or seconds

A request is answered by the first row that fits it: those of the user's file, then the ready ones for searches. One
that no row fits gets an empty JSON object if it is tagged as `PROVISIONAL`, and the plan says that this is
made up. Rows to copy for other services are in examples/endpoints.
The answer is a plan, so both doors play it and faults strike it as they do a model call, by the node that sent it.
"""

from __future__ import annotations

import fnmatch
import functools
import json as json_text
import math
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.whole_files import as_text, write_whole
from docmind_lab.services.endpoint_shape import (
    PROVISIONAL,
    Endpoint,
    EndpointRequest,
    EndpointResponse,
    Unanswered,
    query_of,
    rows_to_fill_in,
)
from docmind_lab.services.fault_effects import REFUSALS, of_any_request, refused, under_fault
from docmind_lab.services.faults import Fault, first_that_strikes
from docmind_lab.services.plan import ODD_REQUEST, Chunk, Headers, Plan, ServiceRequest, Wait, json_steps
from docmind_lab.services.search_apis import READY
from docmind_lab.statistics.latency.profile import LatencyProfile

ENDPOINTS_PATH: Final = "/endpoints/"
"""Where the doors have them: the host and the path of the real service follow."""

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
    rows = data.get("endpoint", [])
    if not data.keys() <= {"endpoint"} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError(
            f'endpoints: {place} may have rows and nothing else; a row begins with [[endpoint]], and then host = "…"'
        )
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


def write_rows(file: str | os.PathLike[str], requests: Sequence[Unanswered]) -> None:
    """Add a row to fill in for each request to a file, which is made if need be.

    Raises: ConfigurationError for a file that is there and is none of endpoints.
    """
    place = Path(file)
    there = ""
    if place.exists():
        read_endpoints(place)
        there = f"{place.read_text(encoding='utf-8')}\n"
    write_whole(place, as_text(there + rows_to_fill_in(requests)))


@functools.lru_cache(maxsize=16)
def _rows_as_written(file: str, at_ns: int) -> tuple[Endpoint, ...]:
    """Return the rows of a file, read again when it has changed. at_ns: the instant of its last change."""
    return read_endpoints(file)


@dataclass(frozen=True)
class EndpointTable:
    """The endpoints of a study. file: the user's rows, if there are any."""

    file: str = ""

    @property
    def own_rows(self) -> tuple[Endpoint, ...]:
        """The rows of the user's file."""
        return _rows_as_written(self.file, os.stat(self.file).st_mtime_ns) if self.file else ()

    def of_user(self, method: str, host: str, path: str) -> Endpoint | None:
        """Return the row of the user's file that answers a request, if one does."""
        return next((row for row in self.own_rows if row.answers(method, host, path)), None)

    def row(self, method: str, host: str, path: str) -> Endpoint | None:
        """Return the row that answers a request, if one does: the user's first, then the ready ones."""
        ready = (row for row in READY if row.answers(method, host, path))
        return self.of_user(method, host, path) or next(ready, None)

    def has_host(self, host: str) -> bool:
        """Whether some request to a host is answered by a row."""
        rows = (*self.own_rows, *READY)
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
