"""Holds LangSmith's tracing, which environment variables switch on, to the endpoint allowlist.

A trace holds the question, the documents and the answer. Measured runs are never traced: a trace would leave the
machine, and making it would take time that is measured. Queries to a coordinator are traced where the settings admit
the host.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager

import langsmith
import requests
from langsmith.utils import LangSmithError, tracing_is_enabled

from docmind_lab.core.errors import EndpointRefused
from docmind_lab.core.settings import Settings

_log = logging.getLogger(__name__)


def tracing_off() -> AbstractContextManager[None]:
    """Return a block in which nothing is traced, nor in threads and tasks that start with its context."""
    return langsmith.tracing_context(enabled=False)


def tracing_where_admitted(settings: Settings) -> AbstractContextManager[None]:
    """Return a block with tracing as the environment sets it if the settings admit every host, else off."""
    client = _admitted_client(settings) if tracing_is_enabled() else None
    return tracing_off() if client is None else langsmith.tracing_context(client=client, enabled=True)


def _admitted_client(settings: Settings) -> langsmith.Client | None:
    """Return the client that sends traces; None if it would send to a host that the settings refuse."""
    try:
        for url in (_address(), *_replicas()):
            settings.admit(url, name="LANGSMITH_ENDPOINT")
        client = _direct_client()
    except (LangSmithError, EndpointRefused, ValueError, AttributeError) as error:
        # Replicas that are not the JSON that LangSmith documents are sent where nobody can check.
        _log.warning(
            "LangSmith tracing is off: %s", error if isinstance(error, EndpointRefused) else type(error).__name__
        )
        return None
    return client


def _replicas() -> Iterable[str]:
    if not (text := os.environ.get("LANGSMITH_RUNS_ENDPOINTS")):
        return ()
    replicas = json.loads(text)
    return tuple(replicas) if isinstance(replicas, dict) else tuple(entry.get("api_url", "") for entry in replicas)


@functools.cache
def _address() -> str:
    """Return where traces would go, by the variables and the profile of the environment, and send nothing there."""
    # A client that sends in the background asks the host for its version as soon as it exists, with the key.
    return str(langsmith.Client(session=direct_session(), tracing_mode="langsmith", auto_batch_tracing=False).api_url)


@functools.cache
def _direct_client() -> langsmith.Client:
    # By HTTP to LangSmith's own address: OpenTelemetry's exporters would go where its variables say.
    return langsmith.Client(session=direct_session(), tracing_mode="langsmith")


def direct_session() -> requests.Session:
    """Return a session without the environment's proxies and credentials, which fails at a redirect.

    For exporters of other libraries, which take a session of `requests` and would follow both.
    """
    session = requests.Session()
    session.trust_env = False
    session.hooks["response"].append(_refuse_redirect)
    return session


def _refuse_redirect(response: requests.Response, *_: object, **__: object) -> None:
    if response.is_redirect:
        response.close()
        raise requests.TooManyRedirects("a redirect is not followed: it may lead to a host that is not allowed")
