"""The most requests and tokens that a study may send, held at the seam.

    meter = CapMeter(Caps(max_requests=500))
    with tapped(meter):
        ...                                     # the 501st request of a model call is not sent: it ends its run

Requests are counted before they are sent, so their cap is never passed. Tokens are known when a call is over, so theirs
is passed by those of the calls that were under way, and by no more.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from docmind_lab.core.errors import ConfigurationError, DocmindLabError, RunCut
from docmind_lab.experiments.recordings.usage import usage_of
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.taps import Traffic


class CapReached(DocmindLabError):
    """A request was not sent, since it would pass a cap. Ends its run, and never leaves the study."""


@dataclass(frozen=True)
class Caps:
    """max_requests: of model calls, retries and the two runs of the warm-up included. max_tokens: of theirs, both ways;
    None for no cap. Raises: ConfigurationError for one below 1.
    """

    max_requests: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (isinstance(value, bool) or value < 1):
                raise ConfigurationError(f"{name} must be 1 or more, or left out for no cap; not {value}")

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self.max_requests is not None or self.max_tokens is not None


@dataclass
class CapMeter:
    """Counts requests and tokens of model calls, and lets none out past a cap; a tap on the seam.

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
        """Count a request of a model call. Raises: RunCut (CapReached) for one that a cap keeps back."""
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
        """Count the tokens of a model call that is over."""
        if attempt.call.kind != "llm" or attempt.sent_at is None:
            return
        usage = usage_of(traffic)
        with self._lock:
            self.tokens += usage.tokens
            self.estimated_requests += usage.is_estimate
