"""Observes requests of other libraries than httpx in runs of a user's graph.

They are http.client (and so urllib3, requests, urllib and httplib2), aiohttp and curl_cffi.

Where a run's services are simulated, httpx carries the request (`carried.py`), so that it is redirected, recorded and
held as one of httpx's. Elsewhere the library sends it itself, and what is seen of it is its attempt: when it began and
ended, its status and its body.
"""

from __future__ import annotations

import importlib.util

from docmind_lab.network.aiohttp_client import AiohttpHooks
from docmind_lab.network.curl_client import watch_curl
from docmind_lab.network.http_client import HttpClientHooks
from docmind_lab.network.library_watch import Find
from docmind_lab.network.replacements import Replacements


def watch_libraries(hooks: Replacements, find: Find) -> None:
    """Replace the methods by which http.client, urllib3, aiohttp and curl_cffi send, until `hooks` are removed."""
    HttpClientHooks(find).install(hooks)
    # Imported here, since a node may import it in a run, when its methods are looked for no more.
    if importlib.util.find_spec("aiohttp") is not None:
        AiohttpHooks(find).install(hooks)
    if importlib.util.find_spec("curl_cffi") is not None:
        watch_curl(hooks, find)
