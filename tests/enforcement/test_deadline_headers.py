"""How the time left is written to headers and read from them, and which hosts get it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import httpx2
import pytest
from manual_clock import ManualClock
from multidict import CIMultiDict
from requests.structures import CaseInsensitiveDict
from starlette.datastructures import Headers

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.duration_headers import DEADLINE_HEADER, GRPC_TIMEOUT, read_remaining_s, to_header
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.network.deadline_headers import (
    DeadlineOnWire,
    deadline_headers,
    put_in_force,
    wire_in_force,
)


@pytest.fixture
def in_force() -> Iterator[DeadlineOnWire]:
    wire = DeadlineOnWire(hosts=("api.internal",))
    before = put_in_force(wire)
    yield wire
    put_in_force(before)


# ---- the forms


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "grpc"),
    [
        (1.5, "1500", "1500m"),
        (1.4999, "1499", "1499m"),
        (0.0004, "1", "1m"),
        (0.0, "0", "0m"),
        (-3.0, "0", "0m"),
        (99_999.999, "99999999", "99999999m"),
        (100_000.9, "100000900", "100000S"),
        (1e12, "1000000000000000", "99999999S"),
    ],
)
def test_a_duration_is_rounded_down_and_is_zero_only_if_nothing_is_left(
    seconds: float, milliseconds: str, grpc: str
) -> None:
    assert to_header(seconds) == (DEADLINE_HEADER, milliseconds)
    assert to_header(seconds, "GRPC-Timeout") == (GRPC_TIMEOUT, grpc)
    assert to_header(seconds, "X-Mine") == ("x-mine", milliseconds)
    # What is read is what was sent; of milliseconds, 15 digits are read.
    if len(milliseconds) < 16:
        assert read_remaining_s({DEADLINE_HEADER: milliseconds}) == pytest.approx(int(milliseconds) / 1000)
    assert read_remaining_s({GRPC_TIMEOUT: grpc}, GRPC_TIMEOUT) == int(grpc[:-1]) / (1000 if grpc[-1] == "m" else 1)


UNREADABLE = [
    "",
    " ",
    "\0",
    "é",
    "😀",
    "soon",
    "-5",
    "+5",
    "1.5",
    "1e3",
    "٣",
    "0x10",
    "nan",
    "inf",
    "1" * 16,
    "1" * 5000,
    "10 0",
    "5ms",
]


@pytest.mark.parametrize("value", UNREADABLE)
def test_a_value_that_cannot_be_read_counts_as_absent(value: str) -> None:
    assert read_remaining_s({DEADLINE_HEADER: value}) is None
    assert read_remaining_s({GRPC_TIMEOUT: value}, GRPC_TIMEOUT) is None
    assert Deadline.from_headers({DEADLINE_HEADER: value}, at_most_s=20).limit_s == 20


GRPC_VALUES = {"2H": 7200, "3M": 180, "2S": 2, "100m": 0.1, "7u": 7e-6, "9n": 9e-9, "99999999S": 99_999_999}
NOT_OF_GRPC = ["100", "123456789m", "m", "1 m", "1s", "1D", "-1S", "1.5S"]


@pytest.mark.parametrize(("value", "seconds"), [*GRPC_VALUES.items(), *((value, None) for value in NOT_OF_GRPC)])
def test_each_unit_of_grpc_is_read_and_another_form_counts_as_absent(value: str, seconds: float | None) -> None:
    read_s = read_remaining_s({"grpc-timeout": value}, GRPC_TIMEOUT)
    assert read_s == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Envoy-Expected-Rq-Timeout-Ms": "1500"},
        Headers({"X-Envoy-Expected-Rq-Timeout-Ms": "1500"}),
        httpx.Headers({"X-Envoy-Expected-Rq-Timeout-Ms": "1500"}),
        httpx2.Headers({"X-Envoy-Expected-Rq-Timeout-Ms": "1500"}),
        CaseInsensitiveDict({"X-Envoy-Expected-Rq-Timeout-Ms": "1500"}),
        CIMultiDict({"X-Envoy-Expected-Rq-Timeout-Ms": "1500"}),
    ],
    ids=lambda headers: f"{type(headers).__module__}.{type(headers).__name__}",
)
def test_the_headers_of_each_library_are_read_in_any_case(headers: Mapping[str, str]) -> None:
    assert read_remaining_s(headers) == 1.5
    assert read_remaining_s(headers, DEADLINE_HEADER.upper()) == 1.5
    assert Deadline.from_headers(headers, at_most_s=20).limit_s == 1.5


def test_of_several_values_the_smallest_that_can_be_read_counts() -> None:
    assert read_remaining_s(httpx.Headers([(DEADLINE_HEADER, "1500"), (DEADLINE_HEADER, "900")])) == 0.9
    assert read_remaining_s(Headers(raw=[(DEADLINE_HEADER.encode(), b"x"), (DEADLINE_HEADER.encode(), b"70")])) == 0.07
    assert read_remaining_s({DEADLINE_HEADER: "1500, 900"}) == 0.9


# ---- the deadline of a request that came in


@pytest.mark.parametrize(
    ("headers", "limit_s"),
    [
        ({}, 20),
        ({DEADLINE_HEADER: "1500"}, 1.4),
        ({GRPC_TIMEOUT: "2S"}, 1.9),
        ({DEADLINE_HEADER: "1500", GRPC_TIMEOUT: "1S"}, 0.9),
        ({DEADLINE_HEADER: "90000"}, 20),
        ({DEADLINE_HEADER: "20050"}, 19.95),
    ],
)
def test_the_deadline_is_the_smaller_of_what_came_without_the_transit_and_what_is_allowed(
    headers: dict[str, str], limit_s: float, manual_clock: ManualClock
) -> None:
    deadline = Deadline.from_headers(headers, at_most_s=20, transit_s=0.1, clock=manual_clock)
    assert deadline.limit_s == pytest.approx(limit_s)
    assert deadline.remaining() == pytest.approx(limit_s)


@pytest.mark.parametrize("value", ["0", "50"])
def test_a_deadline_of_which_nothing_is_left_has_passed(value: str, manual_clock: ManualClock) -> None:
    deadline = Deadline.from_headers({DEADLINE_HEADER: value}, at_most_s=20, transit_s=0.05, clock=manual_clock)
    assert deadline.passed()
    assert deadline.limit_s == 0


def test_only_the_headers_that_are_named_are_read() -> None:
    headers = {DEADLINE_HEADER: "1500", "x-mine": "500"}
    assert Deadline.from_headers(headers, at_most_s=20, names=("x-mine",)).limit_s == 0.5


# ---- which hosts get it


HOSTS = DeadlineOnWire(hosts=("API.internal", "*.svc.local", "127.0.0.1:8001", "[::1]:8001"))


@pytest.mark.parametrize(
    ("host", "port", "is_named"),
    [
        ("api.internal", 443, True),
        ("API.Internal.", 80, True),
        ("api.internal.evil.example", 443, False),
        ("notapi.internal", 443, False),
        ("a.svc.local", 80, True),
        ("a.b.svc.local", 80, True),
        ("svc.local", 80, False),
        ("asvc.local", 80, False),
        (".svc.local", 80, False),
        ("127.0.0.1", 8001, True),
        ("127.0.0.1", 8002, False),
        ("127.0.0.1", None, False),
        ("::1", 8001, True),
        ("[::1]", 8001, True),
        ("::1", 80, False),
        ("api.openai.com", 443, False),
        ("", None, False),
    ],
)
def test_only_hosts_that_are_named_get_the_header(host: str, port: int | None, is_named: bool) -> None:
    assert HOSTS.names(host, port) is is_named


# ---- outgoing requests


def deadline_of(seconds: float, clock: ManualClock) -> Deadline:
    return Deadline.after(seconds, clock)


RAW = [(b"Host", b"api.internal"), (b"Accept", b"*/*")]
COPIED = [*RAW, (b"X-Envoy-Expected-Rq-Timeout-Ms", b"700")]


def test_a_host_that_is_named_gets_what_is_left_without_the_transit(manual_clock: ManualClock) -> None:
    wire, deadline = DeadlineOnWire(("api.internal",), transit_s=0.1), deadline_of(2, manual_clock)
    manual_clock.advance(0.5)
    sent = wire.outgoing_headers(RAW, "api.internal", 443, deadline)
    assert sent == [*RAW, (b"x-envoy-expected-rq-timeout-ms", b"1400")]


def test_a_header_that_was_copied_onto_a_request_is_removed_for_a_third_party(manual_clock: ManualClock) -> None:
    wire = DeadlineOnWire(("api.internal",))
    for deadline in (None, deadline_of(2, manual_clock)):
        assert wire.outgoing_headers(COPIED, "api.openai.com", 443, deadline) == RAW
        assert wire.outgoing_headers(RAW, "api.openai.com", 443, deadline) is RAW


@pytest.mark.parametrize(
    ("header", "given", "left_s", "sent"),
    [
        (GRPC_TIMEOUT, RAW, 2.0, b"2000m"),
        # Of the caller's own value and what is left, the smaller; a value that cannot be read is replaced.
        (DEADLINE_HEADER, COPIED, 2.0, b"700"),
        (DEADLINE_HEADER, COPIED, 0.5, b"500"),
        (DEADLINE_HEADER, [*RAW, (DEADLINE_HEADER.encode(), b"soon")], 2.0, b"2000"),
    ],
)
def test_the_value_that_is_sent_stands_under_its_header(
    header: str, given: list[tuple[bytes, bytes]], left_s: float, sent: bytes, manual_clock: ManualClock
) -> None:
    wire = DeadlineOnWire(("api.internal",), header=header)
    made = wire.outgoing_headers(given, "api.internal", 443, deadline_of(left_s, manual_clock))
    assert made == [*RAW, (header.encode(), sent)]


def test_outside_every_deadline_a_named_host_gets_what_its_caller_wrote() -> None:
    assert DeadlineOnWire(("api.internal",)).outgoing_headers(COPIED, "api.internal", 443, None) is COPIED


def test_without_rules_in_force_nothing_is_sent(manual_clock: ManualClock) -> None:
    assert wire_in_force() is None
    with deadline_scope(deadline_of(2, manual_clock)):
        assert deadline_headers("https://api.internal/") == {}


# ---- requests by hand


def test_a_request_by_hand_gets_the_header_of_the_deadline_in_force(
    in_force: DeadlineOnWire, manual_clock: ManualClock
) -> None:
    assert deadline_headers("https://api.internal/v1") == {}
    with hold_scope(Hold(deadline_of(2, manual_clock))):
        manual_clock.advance(0.5)
        assert deadline_headers("https://API.internal:8443/v1?x=1") == {DEADLINE_HEADER: "1500"}
        assert deadline_headers("https://api.openai.com/v1") == {}
    with deadline_scope(deadline_of(2, manual_clock)):
        assert deadline_headers("https://api.internal/v1") == {DEADLINE_HEADER: "2000"}


def test_rules_can_be_given_for_one_request_and_know_the_ports_of_schemes(manual_clock: ManualClock) -> None:
    wire = DeadlineOnWire(("a.test:443", "b.test:80"), header="x-mine")
    with hold_scope(Hold(deadline_of(2, manual_clock))):
        assert deadline_headers("https://a.test/", wire) == {"x-mine": "2000"}
        assert deadline_headers("http://b.test/", wire) == {"x-mine": "2000"}
        assert deadline_headers("http://a.test/", wire) == {}


# ---- what cannot be used

NO_HOSTS = [
    "",
    "*",
    "*.",
    "a.*.b",
    "http://api.internal",
    "api.internal/v1",
    "api.internal:0",
    "a:70000",
    "ü.test",
    "a b",
    7,
]
NO_NAMES = ["", "x y", "x:y", "x\r\ny", "ü", None]
NO_URLS = ["", "api.internal", "/v1", "http://", "http://a:99999/", "http://a b/"]


def limits_of_a_server(field: str) -> Callable[[Any], Any]:
    return lambda value: Deadline.from_headers({}, **{"at_most_s": 20.0, field: value})


# What takes the value, what its error says, and values that it refuses.
REFUSED: list[tuple[Callable[[Any], Any], str, list[Any]]] = [
    (to_header, "remaining_s must be a finite number of seconds", [math.inf, math.nan, -math.inf]),
    (lambda name: to_header(1, name), "header must be the name of an HTTP header", NO_NAMES),
    (lambda name: DeadlineOnWire(("a",), header=name), "header must be the name of an HTTP header", NO_NAMES),
    (lambda host: DeadlineOnWire(hosts=(host,)), r"hosts must be names such as 'api\.internal'", NO_HOSTS),
    (lambda hosts: DeadlineOnWire(hosts=hosts), "hosts must be a tuple of host names", ["api.internal", (), None]),
    (
        lambda seconds: DeadlineOnWire(hosts=("a",), transit_s=seconds),
        "transit_s must be 0 or more finite seconds",
        [-1, math.inf, math.nan, "1", True],
    ),
    (limits_of_a_server("at_most_s"), "at_most_s", [0, math.nan]),
    (limits_of_a_server("transit_s"), "transit_s", [-1]),
    (deadline_headers, r"url .*give an address such as", NO_URLS),
]


@pytest.mark.parametrize(("make", "message", "values"), REFUSED)
def test_a_value_that_cannot_be_used_is_refused_with_its_name(
    make: Callable[[Any], Any], message: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(ConfigurationError, match=message):
            make(value)
