"""curl_cffi, the HTTP client below yfinance and many scrapers: observed where services are simulated.

Its requests are sent by libcurl, which nothing in Python can observe and production does not hold. Where simulated
services answer, its sessions send with httpx in their place, and answer with curl_cffi's own responses; every other
request is left to libcurl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from docmind_lab.core.deadlines import deadline_scope
from docmind_lab.network.clients.in_memory import NO_CERTIFICATES
from docmind_lab.network.clients.watching import observer_of_run
from docmind_lab.network.replacements import Replacements
from docmind_lab.virtual_time import current_clock

_DEFAULT_TIMEOUT_S: Final = 30.0
_TAKEN: Final = ("params", "data", "content", "json", "files", "cookies", "auth")
"""Options that httpx takes by the same names."""


_NOBODY_WATCHES: Final = "the run that sent this request has ended, and nothing real is reached in virtual time"


class CurlAdapter(Replacements):
    """Hooks on the sessions of curl_cffi."""

    def observe(self) -> None:
        """Replace the methods by which curl_cffi's sessions send, until `remove`."""
        from curl_cffi import requests as curl  # noqa: PLC0415 - it may not be installed

        self.replace(curl.Session, "request", _wrap)
        self.replace(curl.AsyncSession, "request", _wrap_async)


def _wrap(previous: Any) -> Any:
    def request(session: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
        if not _is_simulated(url):
            return previous(session, method, url, *arguments, **options)
        transport = httpx.HTTPTransport(verify=NO_CERTIFICATES, trust_env=False)
        try:
            with _unheld(), httpx.Client(transport=transport, **_of_client(session, options)) as client:
                return _response(client.request(method, url, **_of_request(session, options)))
        except httpx.HTTPError as error:
            raise _translated(error) from error

    return request


def _wrap_async(previous: Any) -> Any:
    async def request(session: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
        if not _is_simulated(url):
            return await previous(session, method, url, *arguments, **options)
        transport = httpx.AsyncHTTPTransport(verify=NO_CERTIFICATES, trust_env=False)
        try:
            with _unheld():
                async with httpx.AsyncClient(transport=transport, **_of_client(session, options)) as client:
                    return _response(await client.request(method, url, **_of_request(session, options)))
        except httpx.HTTPError as error:
            raise _translated(error) from error

    return request


def _is_simulated(url: str) -> bool:
    """Whether httpx sends a request. Raises: curl_cffi's ConnectionError in virtual time where nobody observes."""
    from curl_cffi.requests import exceptions  # noqa: PLC0415 - it is there

    observer = observer_of_run(urlsplit(url).hostname or "")
    if observer is None and current_clock() is not None:
        raise exceptions.ConnectionError(_NOBODY_WATCHES)
    return observer is not None and observer.is_simulated


def _unheld() -> deadline_scope:
    # As libcurl would be: of a run's own deadline the run's observer tells.
    return deadline_scope(None, inherits=False)


def _of_client(session: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of httpx's client: the timeout of each wait, and whether redirects are followed."""
    timeout = options.get("timeout", getattr(session, "timeout", None))
    if isinstance(timeout, tuple):
        timeout = max(timeout)
    timeout_s = timeout if isinstance(timeout, int | float) and timeout else _DEFAULT_TIMEOUT_S
    return {"timeout": timeout_s, "follow_redirects": options.get("allow_redirects") is not False, "trust_env": False}


def _of_request(session: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: options[name] for name in _TAKEN if options.get(name) is not None}
    return {**settings, "headers": {**dict(session.headers or {}), **dict(options.get("headers") or {})}}


def _response(answer: httpx.Response) -> Any:
    """Return curl_cffi's response of what httpx was answered."""
    from curl_cffi import requests as curl  # noqa: PLC0415 - it is there

    response = curl.Response()
    response.url, response.content, response.status_code = str(answer.url), answer.content, answer.status_code
    response.reason, response.ok = answer.reason_phrase, answer.is_success or answer.is_redirect
    response.headers, response.elapsed = curl.Headers(answer.headers.multi_items()), answer.elapsed
    for name, value in answer.cookies.items():
        response.cookies.set(name, value)
    return response


def _translated(error: httpx.HTTPError) -> Exception:
    from curl_cffi.requests import exceptions  # noqa: PLC0415 - it is there

    if isinstance(error, httpx.TimeoutException):
        return exceptions.Timeout(str(error) or "timed out")
    return exceptions.ConnectionError(str(error) or "the connection was closed")
