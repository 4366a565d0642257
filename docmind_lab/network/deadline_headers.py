"""The deadline on outgoing requests: to which hosts the remaining duration is sent, and from which it is kept.

wire = DeadlineOnWire(hosts=("api.internal", "*.svc.local", "127.0.0.1:8001"))
wire.outgoing_headers(request.headers.raw, "api.internal", 443, deadline)

put_in_force(wire)                           # for the process; `docmind_lab.install(wire=...)` does it
deadline_headers("https://api.internal/")    # {"x-envoy-expected-rq-timeout-ms": "1500"}, for requests by hand
"""

from __future__ import annotations

import functools
import re
from collections.abc import MutableMapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from docmind_lab.core.addresses import host_of
from docmind_lab.core.deadlines import Deadline, current_deadline
from docmind_lab.core.duration_headers import DEADLINE_HEADER, header_name, smallest_s, to_header
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import current_hold
from docmind_lab.core.numbers import require_allowance
from docmind_lab.core.shown import ShownAsCode

RawHeaders = list[tuple[bytes, bytes]]
"""Headers as httpx and ASGI have them."""

# A name with an optional "*." before it, or an address of IPv4; or an address of IPv6 in brackets. Then perhaps a port.
_HOST = re.compile(r"(?P<host>(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


@dataclass(frozen=True)
class DeadlineOnWire(ShownAsCode):
    """Which requests carry the time that is left, and in which header.

    Args:
        hosts: The hosts that get the header: `api.internal` (any port), `127.0.0.1:8001` (this port only),
            `*.svc.local` (each host below it). Every other host is a third party, from which the header is removed.
        header: The header. `grpc-timeout` has the form of gRPC, every other one is in milliseconds.
        transit_s: Seconds taken off what is left, for the way there and back.

    Raises:
        ConfigurationError: A host, the header or the allowance cannot be used.
    """

    hosts: tuple[str, ...]
    header: str = DEADLINE_HEADER
    transit_s: float = 0.0

    def __post_init__(self) -> None:
        hosts: object = self.hosts
        # A string would be taken for one host per letter.
        if not isinstance(hosts, tuple | list) or not hosts:
            raise ConfigurationError(f"hosts must be a tuple of host names, not {hosts!r}; try ('api.internal',)")
        for host in hosts:
            _parse_host(host)
        object.__setattr__(self, "hosts", tuple(hosts))
        object.__setattr__(self, "header", header_name(self.header))
        require_allowance("transit_s", self.transit_s)

    def names(self, host: str, port: int | None) -> bool:
        """Whether requests to this host carry the header. A port that is not known fits only hosts without one.

        Args:
            host: The host of a request.
            port: Its port; None where it is not known.
        """
        return _is_named(self.hosts, host, port)

    def outgoing_headers(
        self, raw_headers: RawHeaders, host: str, port: int | None, deadline: Deadline | None
    ) -> RawHeaders:
        """Return the headers with which a request is sent; the same list if nothing changes.

        A host that is named gets the time left, or what the caller has written there if that is less. A third party
        gets no such header, even if the caller has copied one onto the request. Without a deadline the header of a
        named host stays as it is.

        Args:
            raw_headers: The headers as pairs of bytes.
            host: The host of a request.
            port: Its port; None where it is not known.
            deadline: The deadline in force; None for none.
        """
        name = self.header.encode("ascii")
        own = [value.decode("latin-1") for key, value in raw_headers if key.lower() == name]
        others = [item for item in raw_headers if item[0].lower() != name] if own else raw_headers
        if not _is_named(self.hosts, host, port):
            return others
        if deadline is None:
            return raw_headers
        left_s, own_s = deadline.remaining() - self.transit_s, smallest_s(own, self.header)
        _, value = to_header(left_s if own_s is None else min(left_s, own_s), self.header)
        return [*others, (name, value.encode("ascii"))]

    def change(self, headers: MutableMapping[str, str], host: str, port: int | None, deadline: Deadline | None) -> None:
        """Change the headers of a request in place, otherwise as `outgoing_headers`.

        They know names in any case, as those of urllib3 and aiohttp do.

        Args:
            headers: The headers, which are changed.
            host: The host of a request.
            port: Its port; None where it is not known.
            deadline: The deadline in force; None for none.
        """
        own = headers.get(self.header)
        raw = [] if own is None else [(self.header.encode("ascii"), str(own).encode("latin-1", "replace"))]
        sent = self.outgoing_headers(raw, host, port, deadline)
        if sent is not raw:
            if own is not None:
                del headers[self.header]
            for name, value in sent:
                headers[name.decode("ascii")] = value.decode("ascii")


_wire: DeadlineOnWire | None = None


def put_in_force(wire: DeadlineOnWire | None) -> DeadlineOnWire | None:
    """Use these rules for all requests of the process from now on; return those that were in force.

    None sends no header and removes none.
    """
    global _wire
    previous, _wire = _wire, wire
    return previous


def wire_in_force() -> DeadlineOnWire | None:
    """Return the rules of this process; None if it sends no deadlines."""
    return _wire


def deadline_headers(url: str, wire: DeadlineOnWire | None = None) -> dict[str, str]:
    """Return the header with the time that is left, for a request made by hand; empty for a third party.

        grpc_or_other_client.post(url, headers=own | dl.deadline_headers(url))

    Args:
        url: Where the request goes, with its scheme.
        wire: Which hosts get the header; None for the rules of the process. Without any, the result is empty.

    Raises:
        ConfigurationError: The address has no host, or cannot be sent to.
    """
    rules = _wire if wire is None else wire
    try:
        host, parts = host_of(url), urlsplit(url)
    except ValueError as error:
        raise ConfigurationError(f"url {error}; give an address such as 'https://api.internal/'") from error
    if rules is None:
        return {}
    headers = rules.outgoing_headers([], host, parts.port or default_port(parts.scheme), deadline_in_force())
    return {name.decode("ascii"): value.decode("ascii") for name, value in headers}


def default_port(scheme: str) -> int | None:
    """Return the port of an address that names none; None for a scheme without one."""
    return _DEFAULT_PORTS.get(scheme.lower())


def deadline_in_force() -> Deadline | None:
    """Return the deadline of the hold on the running code, or else the one in force around it; None without any."""
    hold = current_hold()
    return current_deadline() if hold is None else hold.in_force


# Asked for every request, of a few hosts.
@functools.lru_cache(maxsize=1024)
def _is_named(hosts: tuple[str, ...], host: str, port: int | None) -> bool:
    host = host.lower().removeprefix("[").removesuffix("]").rstrip(".")
    for named, named_port in map(_parse_host, hosts):
        is_it = host.endswith(named[1:]) and host != named[1:] if named.startswith("*.") else host == named
        if is_it and named_port in (None, port):
            return True
    return False


def _parse_host(written: object) -> tuple[str, int | None]:
    """Return the host, or "*." and a domain, and the port. Raises: ConfigurationError for anything else."""
    parts = _HOST.fullmatch(written.lower()) if isinstance(written, str) else None
    if parts is None or not 0 < int(parts["port"] or 1) < 65536:
        raise ConfigurationError(
            f"hosts must be names such as 'api.internal', '*.svc.local' or '127.0.0.1:8001', not {written!r}; "
            "leave out scheme and path, and write a name with other letters in its ASCII form"
        )
    return parts["host"].strip("[]"), None if parts["port"] is None else int(parts["port"])
