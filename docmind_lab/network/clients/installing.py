"""The adapters of all client libraries: production installs them one by one, and a run of the lab all at once."""

from __future__ import annotations

import importlib.util
from typing import Any, Final

from docmind_lab.network.clients.aiohttp import AiohttpAdapter
from docmind_lab.network.clients.http_client import HttpClientAdapter
from docmind_lab.network.clients.httpx import HttpxAdapter

HOLDING: Final[dict[str, tuple[str, type[Any]]]] = {
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
