"""The adapters of all client libraries: production installs them one by one, and a run of the lab all at once."""

from __future__ import annotations

import importlib.util
from typing import Any, Final, Literal, get_args

from docmind_lab.network.clients.aiohttp import AiohttpAdapter
from docmind_lab.network.clients.http_client import HttpClientAdapter
from docmind_lab.network.clients.httpx import HttpxAdapter

Client = Literal["httpx", "requests", "aiohttp"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
"""The clients that can be held: httpx stands for httpx2 too, and requests for urllib3."""

HELD_LIBRARIES: Final = "httpx, httpx2, http.client, requests, urllib3 or aiohttp"
"""All of their libraries, as a sentence has them."""

HOLDING: Final[dict[Client, tuple[str, type[Any]]]] = {
    "httpx": ("httpx", HttpxAdapter),
    "requests": ("urllib3", HttpClientAdapter),
    "aiohttp": ("aiohttp", AiohttpAdapter),
}
"""Client that production holds → the package that it needs, and its adapter."""


def is_there(package: str) -> bool:
    """Whether a package is installed; also a module that a node may yet import, when none is looked for any more."""
    return importlib.util.find_spec(package) is not None


class LabAdapters(HttpxAdapter):
    """The adapters for runs of the lab: each library is held as production holds it, and observed in addition."""

    def install(self) -> None:
        """Install all adapters until `remove`."""
        self.hold()
        others: list[HttpClientAdapter | AiohttpAdapter] = [HttpClientAdapter()]
        if is_there("aiohttp"):
            others.append(AiohttpAdapter())
        for adapter in others:
            self.at_removal(adapter.remove)
            adapter.hold()
            adapter.observe()
