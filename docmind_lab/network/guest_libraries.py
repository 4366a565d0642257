"""Observes requests of http.client (and so of urllib3, requests, urllib), aiohttp and primp in runs of a user's graph.

Where a run's services are simulated, httpx carries the request (`carried.py`), so that it is redirected, recorded and
held as one of httpx's. Elsewhere the library sends it itself, and what is seen of it is its attempt: when it began and
ended, its status and its body.
"""

from __future__ import annotations

import importlib.util

from docmind_lab.network.guest_aiohttp import AiohttpHooks
from docmind_lab.network.guest_http_client import HttpClientHooks
from docmind_lab.network.guests import Replacements
from docmind_lab.network.library_watch import Find
from docmind_lab.network.primp_client import watch_primp


def watch_libraries(hooks: Replacements, find: Find) -> None:
    """Replace the methods by which http.client, urllib3 and aiohttp connect and send, until `hooks` are removed.

    Args:
        hooks: What puts them back.
        find: Called at every request, with its host.
    """
    HttpClientHooks(find).install(hooks)
    # Imported here, since a node may import it in a run, when its methods are looked for no more.
    if importlib.util.find_spec("aiohttp") is not None:
        AiohttpHooks(find).install(hooks)
    if importlib.util.find_spec("primp") is not None:
        watch_primp(hooks, find)
