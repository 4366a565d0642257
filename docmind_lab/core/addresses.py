"""Addresses of endpoints: the host that a request goes to, and the address without credentials.

host_of("http://user:secret@models.example:8000/v1?token=abc")     # "models.example"
redact_url("http://user:secret@models.example:8000/v1?token=abc")   # "http://models.example:8000/v1"
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import re

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_LARGEST_PORT = 65535
# RFC 3986. Parsers agree on addresses of these characters, and disagree on others: "http://a.test\@b.test/" is a
# request to a.test for urllib3 and to b.test for httpx.
_ALLOWED = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")


# The network seam asks for every request, of a few addresses.
@functools.lru_cache(maxsize=256)
def host_of(url: str) -> str:
    """Return the host that a request to this address goes to, in lower case, without the brackets of IPv6.

    The address is parsed by httpx, which sends the requests.

    Raises: ValueError if it has no host, or cannot be sent to. The message does not repeat the address.
    """
    # Function-level: httpx is slow to import, and settings are read before anything is sent.
    import httpx  # noqa: PLC0415

    if not _ALLOWED.fullmatch(url):
        raise ValueError("has characters that an address cannot have")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError("is not a valid address") from error
    # Some clients decode an escaped character of a host, and others do not.
    if not parsed.scheme or not parsed.host or "%" in parsed.host:
        raise ValueError("has no host")
    if parsed.port is not None and not 0 < parsed.port <= _LARGEST_PORT:
        raise ValueError("has a port that is not between 1 and 65535")
    return parsed.host.lower()


def same_origin(url: str, other: str) -> bool:
    """Whether two addresses have the same scheme, host and port. An address that cannot be parsed is like no other."""
    # Function-level: as in `host_of`.
    import httpx  # noqa: PLC0415

    try:
        hosts = host_of(url), host_of(other)
    except ValueError:
        return False
    one, two = httpx.URL(url), httpx.URL(other)
    return hosts[0] == hosts[1] and (one.scheme, one.port) == (two.scheme, two.port)


def redact_url(url: str) -> str:
    """Return the address without user, password, query and fragment, which may be secret.

    In an address that cannot be parsed the end of a password is not known, so it is shown only if it has neither a user
    nor a query.
    """
    try:
        host_of(url)
    except ValueError:
        return "(address not shown)" if set("@?#") & set(url) else url
    scheme, _, rest = url.partition("://")
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def without_credentials(text: str) -> str:
    """Return the text with the credentials removed from each address in it."""
    return _URL.sub(lambda match: redact_url(match[0]), text)


class _CredentialsFilter(logging.Filter):
    """A logging filter that removes credentials from the addresses among a record's arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_without_secrets(argument) for argument in record.args)
        return True


def _without_secrets(argument: object) -> object:
    # httpx and httpx2 log their own URL objects; numbers stay numbers for "%d".
    if isinstance(argument, int | float | None):
        return argument
    text = str(argument)
    return redact_url(text) if _URL.fullmatch(text) else argument


def hide_credentials_in_logs() -> None:
    """Keep credentials out of the lines that the HTTP clients log for each request."""
    for name in ("httpx", "httpx2", "openai._base_client"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, _CredentialsFilter) for each in logger.filters):
            logger.addFilter(_CredentialsFilter())


# Cached: called for every request that is observed, for a few hosts.
@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine itself, without asking a name server."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
