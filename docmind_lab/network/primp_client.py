"""Requests of primp, the HTTP client below searches with DuckDuckGo's library, carried by httpx.

primp's own client is compiled: nothing below it can be watched. Its class is replaced by one that sends a request with
httpx where simulated services answer, and leaves every other request to primp.
"""

from __future__ import annotations

import contextvars
import html.parser
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx

from docmind_lab.network.carried import NO_CERTIFICATES
from docmind_lab.network.guests import Replacements
from docmind_lab.network.library_watch import NOBODY_WATCHES, Find
from docmind_lab.virtual_time import current_clock

_METHODS = ("get", "head", "options", "delete", "post", "put", "patch")
_DEFAULT_TIMEOUT_S = 30.0


def watch_primp(hooks: Replacements, find: Find) -> None:
    """Replace the class of primp's clients until `hooks` are removed.

    Args:
        hooks: What puts it back.
        find: Host → the watch of the calling code, if it watches requests to that host.
    """
    import primp  # noqa: PLC0415 - it may not be installed

    def make(previous: Any) -> Any:
        def client(*arguments: Any, **options: Any) -> CarriedClient:
            return CarriedClient(previous(*arguments, **options), find, options.get("timeout"))

        return client

    hooks.replace(primp, "Client", make)


class CarriedClient:
    """A client of primp.

    Args:
        own: primp's client, which keeps headers and cookies and sends what is not simulated.
        find: Host → the watch of the calling code.
        timeout_s: Of each wait of a request; None for primp's default.
    """

    def __init__(self, own: Any, find: Find, timeout_s: float | None) -> None:
        self._own, self._find = own, find
        self._timeout_s = _DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s
        # Searches hand their requests to threads of their own, which know nothing of the run.
        self._made_in = contextvars.copy_context()

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            return lambda url, **options: self.request(name.upper(), url, **options)
        return getattr(self._own, name)

    def __enter__(self) -> CarriedClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def request(self, method: str, url: str, **options: Any) -> Any:
        """Send a request. options: as primp takes them. Raises: primp's errors."""
        host = urlsplit(url).hostname or ""
        for run in (_in_place, self._made_in.copy().run):
            watch = run(self._find, host)
            if watch is not None and watch.carries:
                return run(self._carry, method, url, options)
        if current_clock() is not None:
            import primp  # noqa: PLC0415 - it is there

            raise primp.ConnectError(NOBODY_WATCHES)
        return self._own.request(method, url, **options)

    def _carry(self, method: str, url: str, options: Mapping[str, Any]) -> Any:
        import primp  # noqa: PLC0415 - it is there

        known = ("params", "content", "data", "json", "files", "cookies")
        given = {name: options[name] for name in known if options.get(name) is not None}
        headers = {**dict(self._own.headers or {}), **(options.get("headers") or {})}
        timeout_s = options.get("timeout") or self._timeout_s
        transport = httpx.HTTPTransport(verify=NO_CERTIFICATES, trust_env=False)
        try:
            with httpx.Client(transport=transport, timeout=timeout_s, follow_redirects=True, trust_env=False) as client:
                return _response(client.request(method, url, headers=headers, **given))
        except httpx.TimeoutException as error:
            raise primp.TimeoutError(str(error)) from error
        except httpx.ConnectError as error:
            raise primp.ConnectError(str(error)) from error
        except httpx.HTTPError as error:
            raise primp.RequestError(str(error)) from error


def _in_place(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _response(answered: httpx.Response) -> Any:
    """Return a response with the attributes that primp's has."""
    words = _Words()
    words.feed(answered.text)
    plain = "\n".join(words.lines)
    return SimpleNamespace(
        status_code=answered.status_code,
        url=str(answered.url),
        headers=dict(answered.headers),
        cookies=dict(answered.cookies),
        encoding=answered.encoding,
        content=answered.content,
        text=answered.text,
        text_plain=plain,
        text_markdown=plain,
        text_rich=plain,
        json=answered.json,
        raise_for_status=answered.raise_for_status,
        read=lambda: answered.content,
    )


class _Words(html.parser.HTMLParser):
    """The lines of text that a page shows."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.lines.append(data.strip())
