"""Caps on the requests and tokens that a study may send, enforced at the seam.

    meter = CapMeter(Caps(max_requests=500))
    with attach_taps(meter):
        ...                                     # the 501st request of a model call is not sent: it ends its run

Requests are counted before they are sent, so their cap is never passed. Tokens are known when a call is over, so theirs
is passed by those of the calls that were under way, and by no more. gRPC channels have connections of their own, where
nothing is counted: a study with caps is refused while one is open.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError, DocmindLabError, RunCut
from docmind_lab.core.streamed_answers import decompressed, events_in
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.taps import Traffic

# What OpenAI gives as a rule of thumb for English; used only where a server says nothing, and then called an estimate.
_BYTES_PER_TOKEN = 4


def tokens_of(traffic: Traffic) -> tuple[int, bool]:
    """Return the tokens of an attempt in both directions, and whether they are an estimate.

    They are as its server counts them, else a quarter of the bytes: a call that was cut is never told of its tokens,
    and has cost some.
    """
    counted = _tokens_said(list(_payloads(text_of(traffic) or "")))
    if counted is not None:
        return counted, False
    size = len(traffic.sent) + sum(map(len, traffic.received))
    return -(-size // _BYTES_PER_TOKEN), True


def text_of(traffic: Traffic) -> str | None:
    """Return the response's body as text; None if it is not text or has an unknown compression."""
    body = decompressed(b"".join(traffic.received), traffic.headers.get("content-encoding", "").lower())
    try:
        return None if body is None else body.decode("utf-8")
    except UnicodeDecodeError:
        return None


_ADDED = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ("prompt_eval_count", "eval_count"),
)
"""Counts that make up a total where a dialect has none: OpenAI's, Anthropic's (over several events), Ollama's."""


def _tokens_said(payloads: Sequence[dict[str, Any]]) -> int | None:
    """Return the tokens that a reply states, in the words of any dialect; None if it states none.

    payloads: of the reply, the last first.
    """
    latest: dict[str, int] = {}
    for payload in payloads:
        for counts in _places_of_counts(payload):
            for name, value in counts.items():
                if isinstance(value, int) and not isinstance(value, bool):
                    latest.setdefault(name, value)
    for total in ("total_tokens", "totalTokenCount"):
        if total in latest:
            return latest[total]
    for names in _ADDED:
        # Without its last part a stream was cut, and what it had cost by then was not said.
        if names[1] in latest:
            return sum(latest.get(name, 0) for name in names)
    return None


def _places_of_counts(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a payload in which dialects put their counts."""
    inner = (payload.get("response"), payload.get("message"))
    for outer in (payload, *(each for each in inner if isinstance(each, dict))):
        for name in ("usage", "usageMetadata"):
            if isinstance(outer.get(name), dict):
                yield outer[name]
    if payload.get("done") is True:
        yield {name: payload.get(name) for name in ("prompt_eval_count", "eval_count")}


def _payloads(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a reply: the only one, or those of an event stream, the last first."""
    try:
        payloads = [json.loads(text)]
    except ValueError:
        payloads = list(events_in(text.encode()))
    yield from (payload for payload in reversed(payloads) if isinstance(payload, dict))


class CapReached(DocmindLabError):
    """A request was not sent because it would pass a cap. It ends its run, and is not raised out of the study."""


@dataclass(frozen=True)
class Caps:
    """The most that a study may send; None for no cap. Raises: ConfigurationError for a cap below 1.

    max_requests: of model calls, retries and the two warm-up runs included. max_tokens: of those calls, both ways.
    """

    max_requests: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or value < 1):
                raise ConfigurationError(f"{name} must be 1 or more, or left out for no cap; not {value}")


@dataclass
class CapMeter:
    """A tap on the seam that counts requests and tokens of model calls, and stops requests that would pass a cap.

    reached: the cap that a request ran into, in words; empty so far. cut: ids of the runs whose request it kept back.
    estimated_requests: those whose server did not say what they took, so that their tokens are an estimate.
    """

    caps: Caps
    requests: int = 0
    tokens: int = 0
    estimated_requests: int = 0
    reached: str = ""
    cut: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def sending(self, call: LogicalCall) -> None:
        """Count a request of a model call. Raises: RunCut (CapReached) if a cap stops the request."""
        if call.kind != "llm":
            return
        with self._lock:
            self.reached = self.reached or self._cap_in_the_way()
            if self.reached:
                self.cut.add(call.run_id)
                raise RunCut(CapReached(self.reached))
            self.requests += 1

    def _cap_in_the_way(self) -> str:
        requests, tokens = self.caps.max_requests, self.caps.max_tokens
        if requests is not None and self.requests >= requests:
            return f"max_requests: {requests} requests were sent"
        if tokens is not None and self.tokens >= tokens:
            return f"max_tokens: {self.tokens} tokens went over the wire, of {tokens}"
        return ""

    def ended(self, attempt: Attempt, traffic: Traffic) -> None:
        """Add the tokens of a model call that has ended."""
        if attempt.call.kind != "llm" or attempt.sent_at is None:
            return
        tokens, is_estimate = tokens_of(traffic)
        with self._lock:
            self.tokens += tokens
            self.estimated_requests += is_estimate


# ---- what no cap sees

# Where OpenTelemetry's collectors listen: what goes there is no request of an agent.
_TELEMETRY_PORT: Final = ":4317"


def grpc_targets() -> list[str]:
    """Return what the open gRPC channels of this process lead to, each once, but for telemetry collectors."""
    grpc: Any = sys.modules.get("grpc")
    if grpc is None:
        return []
    kinds = (grpc.Channel, grpc.aio.Channel)
    # By type: isinstance would ask proxies for their class, and some then import what they stand for.
    inner = [each._channel for each in gc.get_objects() if issubclass(type(each), kinds) and hasattr(each, "_channel")]
    targets = set(filter(None, map(_target_of, inner)))
    return sorted(target for target in targets if not target.endswith(_TELEMETRY_PORT))


def _target_of(channel: Any) -> str:
    """Return what an open channel leads to; empty for a closed one."""
    try:
        channel.check_connectivity_state(False)
    except Exception:  # noqa: BLE001 - a closed channel raises ValueError or an error of gRPC's own
        return ""
    # A method of a channel for threads, an attribute of one for event loops.
    target = channel.target() if callable(channel.target) else channel.target
    return str(target.decode() if isinstance(target, bytes) else target)
