"""The shape of a simulated endpoint: a row of the table, what it is asked, and what a function in it may answer."""

from __future__ import annotations

import fnmatch
import functools
import glob
import hashlib
import importlib
import json as json_text
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.users_code import digest_of_module, forget_if_changed, note_imported
from docmind_lab.services.scripted_model.conversation import parse_json


@dataclass(frozen=True)
class EndpointRequest:
    """A request as the real service would get it. headers: lower-case names. query: repeated values have commas."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @functools.cached_property
    def json(self) -> Any:
        """The body as JSON; None if it is none."""
        return parse_json(self.body)

    @functools.cached_property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def value(self, source: str, name: str) -> Any:
        """Return a value of the request; "" if there is none.

        source: "query", "json", "form", "header" or "path". name: of the value; of JSON with dots, such as "user.id";
        of the path the number of its part, from 1.
        """
        if source == "path":
            parts = self.path.strip("/").split("/")
            return parts[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(parts) else ""
        if source == "json":
            value = self.json
            for part in name.split("."):
                if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                    value = value[int(part)]
                else:
                    value = value.get(part, "") if isinstance(value, Mapping) else ""
            return value
        return {"query": self.query, "form": self.form, "header": self.headers}[source].get(name, "")


def query_of(text: str) -> dict[str, str]:
    """Return the values of a query by their names; several of one name are joined by commas."""
    values: dict[str, list[str]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        values.setdefault(name, []).append(value)
    return {name: ",".join(each) for name, each in values.items()}


@dataclass(frozen=True)
class EndpointResponse:
    """A response that a function makes. body: text, bytes, or what becomes JSON."""

    body: Any = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def share_of(*names: object) -> float:
    """Return a number from 0 to 1 that belongs to the names, for values that are the same in every run."""
    return int(hashlib.sha256(repr(names).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


# ---- a row of the table

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
        function: "module:attribute" of a function from `EndpointRequest` to an answer.
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
    function: str = ""
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
            forget_if_changed(self._module)
            self._call  # noqa: B018 - a function that cannot be imported is refused here
            note_imported(self._module)

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

    @property
    def code_digest(self) -> str:
        """A digest of the user's code that answers; empty for none."""
        return digest_of_module(self._module)

    @property
    def _module(self) -> str:
        return str(self.function).rpartition(":")[0].removesuffix(".py")

    @property
    def _call(self) -> Callable[[EndpointRequest], Any]:
        if not self._module:
            raise ConfigurationError(f'function {self.function!r}: write it as "module:attribute"')
        if self.folder and self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            function = getattr(importlib.import_module(self._module), str(self.function).rpartition(":")[2])
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


PROVISIONAL: Final = "provisional"
"""The tag of a request that is to be answered with an empty JSON object."""

_HEAD: Final = """\
# Requests of your graph that no simulated service answers. Replace each {} by what the service answers, in a shape that
# your code can read, and give the file with --endpoints (endpoints=...).
"""


@dataclass(frozen=True)
class Unanswered:
    """A request that no simulated service answers. url: without credentials and query. where: such as a node."""

    method: str
    url: str
    where: str

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


def in_words(requests: Sequence[Unanswered]) -> str:
    """Return which requests nothing answers, in one line."""
    if len(requests) == 1:
        return f"{requests[0]}: no simulated service answers this ({requests[0].where})"
    each = ", ".join(f"{request} ({request.where})" for request in requests)
    return f"no simulated service answers {len(requests)} requests: {each}"


def rows_to_fill_in(requests: Iterable[Unanswered]) -> str:
    """Return a table of endpoints as TOML, with a row for each method and host; its answers are empty."""
    return "\n".join([_HEAD, *_rows(requests)])


def _rows(requests: Iterable[Unanswered]) -> Iterator[str]:
    of_host: dict[tuple[str, str], list[Unanswered]] = {}
    for request in requests:
        of_host.setdefault((request.method, urlsplit(request.url).hostname or ""), []).append(request)
    for (method, host), each in of_host.items():
        comments = dict.fromkeys(f"# {request} ({request.where})" for request in each)
        values = {"host": host, "path": _pattern([urlsplit(request.url).path or "/" for request in each])}
        # Texts of JSON are texts of TOML.
        lines = [f"{name} = {json_text.dumps(value)}" for name, value in {**values, "method": method}.items()]
        yield "\n".join([*comments, "[[endpoint]]", *lines, "json = {}", ""])


def _pattern(paths: Sequence[str]) -> str:
    """Return a pattern that fits some paths: what they begin with, or the one path, whose last part may be an id."""
    if len(set(paths)) > 1:
        return f"{glob.escape(posixpath.commonpath(paths))}*"
    before, _, last = paths[0].rpartition("/")
    is_id = re.search(r"\d", last) and not re.fullmatch(r"v\d+", last)
    return f"{glob.escape(before)}/*" if is_id else glob.escape(paths[0])
