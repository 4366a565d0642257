"""What a server says of its own work: the lab's service by its log, others by their counters.

To look can change what is seen. llama.cpp's server notices that a client has left only when it has had nothing else to
report for a second; a client that polls its counters keeps it from noticing. So counters are read when a call is over,
and while it may go on no more often than every `LEAST_GAP_S`.

truth = truth_of(target)        # None for a server that says nothing
truth.look().tokens             # 131.0
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from docmind_lab.core.errors import ServiceError
from docmind_lab.experiments.probe.calls import Target
from docmind_lab.network.endpoints import reason_of
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import LogClient

_PATIENCE_S = 30.0
# A line of Prometheus' text format: name, labels, value, instant. Comments begin with #.
_SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+(\S+)", re.MULTILINE)
LEAST_GAP_S: Final = 2.5


@dataclass(frozen=True)
class Look:
    """What the server says at one instant.

    busy: calls that it works on or has in its queue. queued: calls of those that wait in its queue. tokens: tokens that
    it has generated in calls that are over. prompt_s: seconds that it has spent on prompts of calls; None where it does
    not say. generating_s: seconds that it has spent on generating tokens; None where it does not say.
    """

    busy: int
    queued: int
    tokens: float
    prompt_s: float | None = None
    generating_s: float | None = None


def _get(target: Target, path: str) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    try:
        response = httpx.get(target.root + path, headers=headers, timeout=_PATIENCE_S, trust_env=False)
    except httpx.HTTPError as error:
        raise ServiceError(f"{target.root}{path} cannot be read: {reason_of(error)}") from error
    return response.status_code, response.text


@dataclass
class LabLog:
    """The log of the lab's own service: a row for each call."""

    log_url: str
    server: str = "docmind-lab serve"

    def rows(self, run_id: str, wait_quiet_s: float = 0.0, since_s: float = -math.inf) -> list[RequestRow]:
        """Return the rows of a call, after waiting for the service to be done with it.

        A gateway may drop the header that names the run. Then they are the rows without a run, since an instant.

        wait_quiet_s: how long to wait for the service, seconds. since_s: the instant, seconds of `time.monotonic`.
        """
        with contextlib.closing(LogClient(self.log_url)) as client:
            if rows := client.rows(run_id, wait_quiet_s):
                return rows
            return [row for row in client.rows("", wait_quiet_s) if row.received_at >= since_s]


# Server → the counters that hold the fields of a `Look`; `busy` comes without what is queued.
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "llama.cpp server": {
        "busy": "llamacpp:requests_processing",
        "queued": "llamacpp:requests_deferred",
        "tokens": "llamacpp:tokens_predicted_total",
        "prompt_s": "llamacpp:prompt_seconds_total",
        "generating_s": "llamacpp:tokens_predicted_seconds_total",
    },
    "vLLM": {
        "busy": "vllm:num_requests_running",
        "queued": "vllm:num_requests_waiting",
        "tokens": "vllm:generation_tokens_total",
    },
}


@dataclass
class Counters:
    """A server's own count of its work, of all calls together: its /metrics.

    slots: how many calls it works on at once.
    """

    target: Target
    server: str
    slots: int = 1

    def look(self) -> Look:
        """What it says now. Raises: ServiceError when it says nothing any more."""
        metrics = _metrics(self.target)
        values = {field: metrics[name] for field, name in _NAMES[self.server].items()}
        queued = int(values.pop("queued"))
        return Look(busy=int(values.pop("busy")) + queued, queued=queued, **values)


def _metrics(target: Target) -> Mapping[str, float]:
    status, text = _get(target, "/metrics")
    if status != 200:
        raise ServiceError(f"{target.root}/metrics answered HTTP {status}")
    values: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        values[name] = values.get(name, 0.0) + float(value)
    return values


def first_model(target: Target) -> str:
    """The first model that the server lists. Raises: ServiceError when the server does not answer or lists none."""
    status, text = _get(target, f"{urlsplit(target.base_url).path.rstrip('/')}/models")
    try:
        return str(json.loads(text)["data"][0]["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise ServiceError(
            f"{target.base_url} lists no models (HTTP {status}); name one, and check that the address ends as /v1"
        ) from error


def truth_of(target: Target) -> LabLog | Counters | None:
    """How a server accounts for its own work; None if it does not, as hosted ones."""
    if target.log_url:
        return LabLog(target.log_url)
    with contextlib.suppress(ServiceError, ValueError, KeyError, TypeError):
        status, text = _get(target, "/log?run_id=probe")
        if status == 200 and "rows" in json.loads(text):
            return LabLog(f"{target.root}/log")
    with contextlib.suppress(ServiceError, ValueError, KeyError, TypeError):
        metrics = _metrics(target)
        if any(name.startswith("llamacpp:") for name in metrics):
            status, text = _get(target, "/slots")
            slots: Any = json.loads(text) if status == 200 else None
            if isinstance(slots, list):
                return Counters(target, "llama.cpp server", len(slots))
        if any(name.startswith("vllm:") for name in metrics):
            return Counters(target, "vLLM")
    return None
