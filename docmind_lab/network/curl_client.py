"""Requests of curl_cffi, the HTTP client below yfinance and many scrapers, carried by httpx.

Its requests are sent by libcurl, which nothing in Python can watch. Where simulated services answer, its sessions send
with httpx in their place, and answer with curl_cffi's own responses; every other request is left to libcurl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from docmind_lab.network.carried import NO_CERTIFICATES
from docmind_lab.network.library_watch import NOBODY_WATCHES, Find
from docmind_lab.network.replacements import Replacements
from docmind_lab.virtual_time import current_clock

_DEFAULT_TIMEOUT_S: Final = 30.0
_TAKEN: Final = ("params", "data", "content", "json", "files", "cookies", "auth")
"""Options that httpx takes by the same names."""


def watch_curl(hooks: Replacements, find: Find) -> None:
    """Replace the methods by which curl_cffi's sessions send, until `hooks` are removed."""
    from curl_cffi import requests as curl  # noqa: PLC0415 - it may not be installed

    def carries(url: str) -> bool:
        watch = find(urlsplit(url).hostname or "")
        if watch is None and current_clock() is not None:
            raise curl.exceptions.ConnectionError(NOBODY_WATCHES)
        return watch is not None and watch.carries

    def wrap(previous: Any) -> Any:
        def request(session: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            if not carries(url):
                return previous(session, method, url, *arguments, **options)
            transport = httpx.HTTPTransport(verify=NO_CERTIFICATES, trust_env=False)
            try:
                with httpx.Client(transport=transport, **_of_client(session, options)) as client:
                    return _response(client.request(method, url, **_of_request(session, options)))
            except httpx.HTTPError as error:
                raise _translated(error) from error

        return request

    def wrap_async(previous: Any) -> Any:
        async def request(session: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            if not carries(url):
                return await previous(session, method, url, *arguments, **options)
            transport = httpx.AsyncHTTPTransport(verify=NO_CERTIFICATES, trust_env=False)
            try:
                async with httpx.AsyncClient(transport=transport, **_of_client(session, options)) as client:
                    return _response(await client.request(method, url, **_of_request(session, options)))
            except httpx.HTTPError as error:
                raise _translated(error) from error

        return request

    hooks.replace(curl.Session, "request", wrap)
    hooks.replace(curl.AsyncSession, "request", wrap_async)


def _of_client(session: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of httpx's client: the timeout of each wait, and whether redirects are followed."""
    given = options.get("timeout", getattr(session, "timeout", None))
    if isinstance(given, tuple):
        given = max(given)
    timeout_s = given if isinstance(given, int | float) and given else _DEFAULT_TIMEOUT_S
    return {"timeout": timeout_s, "follow_redirects": options.get("allow_redirects") is not False, "trust_env": False}


def _of_request(session: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: options[name] for name in _TAKEN if options.get(name) is not None}
    return {**given, "headers": {**dict(session.headers or {}), **dict(options.get("headers") or {})}}


def _response(answered: httpx.Response) -> Any:
    """Return curl_cffi's response of what httpx was answered."""
    from curl_cffi import requests as curl  # noqa: PLC0415 - it is there

    made = curl.Response()
    made.url, made.content, made.status_code = str(answered.url), answered.content, answered.status_code
    made.reason, made.ok = answered.reason_phrase, answered.is_success or answered.is_redirect
    made.headers, made.elapsed = curl.Headers(answered.headers.multi_items()), answered.elapsed
    for name, value in answered.cookies.items():
        made.cookies.set(name, value)
    return made


def _translated(error: httpx.HTTPError) -> Exception:
    from curl_cffi.requests import exceptions  # noqa: PLC0415 - it is there

    if isinstance(error, httpx.TimeoutException):
        return exceptions.Timeout(str(error) or "timed out")
    return exceptions.ConnectionError(str(error) or "the connection was closed")
