"""Checks that the endpoints answer: asks a model server for its models, a vector store for its version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from docmind_lab.core.addresses import hide_credentials_in_logs, redact_url, without_credentials
from docmind_lab.core.errors import DocmindLabError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network import HttpxTransport

Verdict = Literal["ok", "failed", "note"]

MODEL_ENDPOINT, VECTOR_STORE = "model endpoint", "vector store"
# An endpoint that needs longer for a list of names will not answer questions within seconds either.
_PATIENCE_S = 5.0
_NOT_SERVED = 404


@dataclass(frozen=True)
class Check:
    """The result of checking one endpoint. remedy: what to do when the check failed."""

    subject: str
    verdict: Verdict
    finding: str
    remedy: str = ""


def endpoint_checks(settings: Settings) -> Iterator[Check]:
    """Yield the results of checking the model endpoint and the vector store."""
    yield _model_endpoint(settings)
    yield _vector_store(settings)


def require_endpoints(settings: Settings) -> None:
    """Require that the endpoints of the settings answer; simulated endpoints always do.

    Raises: ServiceError naming the endpoint and the remedy.
    """
    for check in endpoint_checks(settings):
        if check.verdict == "failed":
            raise ServiceError(f"{check.subject} {check.finding}; {check.remedy}")


def _get_json(settings: Settings, url: str, headers: Mapping[str, str] | None = None) -> Any:
    hide_credentials_in_logs()
    with httpx.Client(
        transport=HttpxTransport(admit=settings.admit), trust_env=False, timeout=_PATIENCE_S, follow_redirects=True
    ) as client:
        response = client.get(url, headers=headers)
        response.raise_for_status()
        return response.json()


def _resource_url(url: str, name: str) -> str:
    """Return the address of a resource below an endpoint; keep a query of the endpoint's address at the end."""
    address = httpx.URL(url)
    return str(address.copy_with(path=f"{address.path.rstrip('/')}/{name}"))


def _model_endpoint(settings: Settings) -> Check:
    url, remedy = settings.llm.base_url, "start the server, or set DOCMIND_LLM__BASE_URL to where it is"
    if url is None:
        return Check(MODEL_ENDPOINT, "ok", "simulated")
    where = redact_url(url)
    headers = {"Authorization": f"Bearer {settings.llm.api_key.get_secret_value()}"}
    try:
        names = [str(entry["id"]) for entry in _get_json(settings, _resource_url(url, "models"), headers)["data"]]
    except (httpx.HTTPError, DocmindLabError) as error:
        if isinstance(error, httpx.HTTPStatusError) and error.response.status_code == _NOT_SERVED:
            return Check(MODEL_ENDPOINT, "note", f"{where} answers, and does not list its models")
        return Check(MODEL_ENDPOINT, "failed", f"{where}: {reason_of(error)}", remedy)
    except (ValueError, KeyError, TypeError):
        return Check(MODEL_ENDPOINT, "failed", f"{where}: its list of models cannot be read", remedy)
    if settings.llm.model not in names:
        first_names = ", ".join(names[:5]) or "none"
        finding = f"{where} has no model {settings.llm.model!r}; it has {first_names}"
        return Check(MODEL_ENDPOINT, "failed", finding, "set DOCMIND_LLM__MODEL")
    return Check(MODEL_ENDPOINT, "ok", f"{where} has {settings.llm.model}")


def _vector_store(settings: Settings) -> Check:
    url, remedy = settings.database.qdrant_url, "start Qdrant, or set DOCMIND_DATABASE__QDRANT_URL to where it is"
    if url is None:
        return Check(VECTOR_STORE, "ok", "simulated")
    where = redact_url(url)
    try:
        version = _get_json(settings, url)["version"]
    except (httpx.HTTPError, DocmindLabError) as error:
        return Check(VECTOR_STORE, "failed", f"{where}: {reason_of(error)}", remedy)
    except (ValueError, KeyError, TypeError):
        return Check(VECTOR_STORE, "failed", f"{where} does not answer like Qdrant", remedy)
    return Check(VECTOR_STORE, "ok", f"{where}, version {version}")


def reason_of(error: BaseException) -> str:
    """Return in a few words why an endpoint could not be reached."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return without_credentials(str(error)) or type(error).__name__
