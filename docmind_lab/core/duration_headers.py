"""The headers that carry a remaining duration from one process to the next, as text and as seconds.

    to_header(1.5)                            # ("x-envoy-expected-rq-timeout-ms", "1500")
    to_header(1.5, "grpc-timeout")            # ("grpc-timeout", "1500m")
    read_remaining_s(request.headers)         # 1.5; None without a readable header

What travels is a duration, never an instant: the clocks of two machines differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_number

DEADLINE_HEADER: Final = "x-envoy-expected-rq-timeout-ms"
"""The header by which Envoy tells a service how long it will wait, in whole milliseconds."""

GRPC_TIMEOUT: Final = "grpc-timeout"
"""The header of gRPC: at most eight digits and a unit, such as `100m` or `2S`."""

# Of a second: to divide by 1000 is exact where to multiply by 0.001 is not.
_GRPC_UNITS: Final = {"H": 1 / 3600, "M": 1 / 60, "S": 1, "m": 1000, "u": 1_000_000, "n": 1_000_000_000}
_MOST_OF_GRPC: Final = 99_999_999  # eight digits, by the gRPC protocol
# A whole number of up to 15 digits is exact as a float; more than 30,000 years are no deadline of anybody.
_MILLISECONDS = re.compile(r"[0-9]{1,15}")
_GRPC = re.compile(r"([0-9]{1,8})([HMSmun])")
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # a token of RFC 9110


def header_name(name: str) -> str:
    """Return the name of a header in lower case. Raises: ConfigurationError if no header can have this name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"header must be the name of an HTTP header, not {name!r}; try {DEADLINE_HEADER!r} or {GRPC_TIMEOUT!r}"
        )
    return name.lower()


def to_header(remaining_s: float, name: str = DEADLINE_HEADER) -> tuple[str, str]:
    """Return the name and the value of the header for this much time, in milliseconds or in the form of gRPC.

    The value is rounded down to whole milliseconds. It is 0 only if nothing is left: less than one is sent as one,
    because proxies read 0 as no limit at all.

    Raises: ConfigurationError if `remaining_s` is not finite, or no header can have the name.
    """
    require_number("remaining_s", remaining_s, "a finite number of seconds", remedy="send no header")
    name = header_name(name)
    milliseconds = whole_milliseconds(remaining_s)
    if name != GRPC_TIMEOUT:
        return name, str(milliseconds)
    if milliseconds <= _MOST_OF_GRPC:
        return name, f"{milliseconds}m"
    return name, f"{min(milliseconds // 1000, _MOST_OF_GRPC)}S"


def whole_milliseconds(remaining_s: float) -> int:
    """Return a finite duration in milliseconds, rounded down; 0 only if nothing is left."""
    return 0 if remaining_s <= 0 else max(1, int(remaining_s * 1000))


def read_remaining_s(headers: Mapping[str, str], name: str = DEADLINE_HEADER) -> float | None:
    """Return the seconds that the sender of a request still waits; None if no header says so.

    A value that cannot be read counts as absent: what comes from outside must not fail a request. Of several values,
    the smallest counts. The headers may be a dict or an object of Starlette, httpx, aiohttp or requests.

    Raises: ConfigurationError if no header can have the name.
    """
    name = header_name(name)
    return smallest_s((value for key, value in headers.items() if key.lower() == name), name)


def smallest_s(values: Iterable[str], name: str = DEADLINE_HEADER) -> float | None:
    """Return the smallest duration among the values of one header, in seconds; None if none can be read.

    Each value may be a list with commas. The name is in lower case, and decides the form.
    """
    durations = [_parse(item.strip(), name) for value in values for item in value.split(",")]
    return min((duration for duration in durations if duration is not None), default=None)


def _parse(text: str, name: str) -> float | None:
    if name == GRPC_TIMEOUT:
        parts = _GRPC.fullmatch(text)
        return None if parts is None else int(parts[1]) / _GRPC_UNITS[parts[2]]
    return int(text) / 1000 if _MILLISECONDS.fullmatch(text) else None
