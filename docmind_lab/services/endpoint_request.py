"""What a simulated endpoint is asked, and what a function of a table of endpoints may answer."""

from __future__ import annotations

import functools
import hashlib
import json as json_text
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl


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
        try:
            return json_text.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @functools.cached_property
    def form(self) -> dict[str, str]:
        """The body as a form."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    @property
    def fields(self) -> dict[str, Any]:
        """The values of the query and of a body that is a JSON object."""
        return {**self.query, **(self.json if isinstance(self.json, dict) else {})}

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
