"""Apply a fault to a plan: the same reply comes late, in pieces, broken off or never.

    under_fault(plan, Fault("stall"))

Each change keeps the account of tokens true: those of the plan's waits are those that are generated when it is played
to its end. Faults that are another answer (`http_500`, `rate_limit`, `empty`, `retrieval_503`) are the service's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from docmind_lab.services.faults import Fault, first_that_strikes
from docmind_lab.services.plan import (
    Chunk,
    Disconnect,
    Headers,
    Plan,
    ServiceKind,
    ServiceRequest,
    Step,
    Wait,
    json_steps,
)

TRICKLE_PIECES = 12
_STREAMS = ("text/event-stream", "application/x-ndjson")

Steps = tuple[Step, ...]

REFUSALS: Final[Mapping[str, int]] = {"http_500": 500, "rate_limit": 429, "retrieval_503": 503}
"""The faults that are a refusal, with its status."""


def of_any_request(plan: Plan, request: ServiceRequest, faults: Iterable[Fault], default_seed: int) -> Plan:
    """Return the plan of a request of a user's graph under the fault that strikes it, whatever it asks for.

    Services strike what takes them time by themselves. What they answer at once (a list of models, a point that is
    written, a request that they refuse) can hang at a real service all the same, and a user's graph may wait for it.
    """
    if plan.fault or not request.node_request:
        return plan
    service: ServiceKind = "retrieval" if plan.kind == "retrieval" else "llm"
    of_requests = (fault for fault in faults if fault.kind in _CHANGES or fault.kind in REFUSALS)
    key = request.draw_key("", "0", default_seed)
    fault = first_that_strikes(of_requests, service, key, request=request.node_request)
    if fault is None:
        return plan
    return refused(plan, fault) if fault.kind in REFUSALS else under_fault(plan, fault)


def refused(plan: Plan, fault: Fault) -> Plan:
    """Return a plan under a fault that refuses the request. Raises: KeyError for a fault that does not."""
    wait = (("retry-after", f"{fault.seconds:.0f}"),) if fault.kind == "rate_limit" else ()
    refusal = json_steps(REFUSALS[fault.kind], {"error": fault.kind}, wait)
    return replace(plan, steps=refusal, fault=fault.kind, takes_slot=False)


def under_fault(plan: Plan, fault: Fault) -> Plan:
    """Return a good reply's plan under a fault. Raises: KeyError for a fault that is another answer."""
    steps = _CHANGES[fault.kind](plan.steps, fault.seconds or 0.0)
    return replace(plan, steps=steps, output_tokens=_tokens(steps), fault=fault.kind)


def _tokens(steps: Steps) -> int:
    # A wait for ever generates nothing, nor does anything after it.
    tokens = 0
    for step in steps:
        if isinstance(step, Wait):
            if math.isinf(step.seconds):
                break
            tokens += step.tokens
    return tokens


def _is_stream(steps: Steps) -> bool:
    headers = next((step for step in steps if isinstance(step, Headers)), Headers(200))
    return dict(headers.headers).get("content-type") in _STREAMS


def _hang(steps: Steps, seconds: float) -> Steps:
    return (Wait(math.inf),)


def _delay(steps: Steps, seconds: float) -> Steps:
    return (Wait(seconds), *steps)


def _slow_first_token(steps: Steps, seconds: float) -> Steps:
    late = _delay(steps, seconds)
    return tuple(sorted(late, key=lambda step: not isinstance(step, Headers))) if _is_stream(steps) else late


def _trickle(steps: Steps, gap_s: float) -> Steps:
    """Keep the latency up to the headers, then send the body in small pieces."""
    body = b"".join(step.data for step in steps if isinstance(step, Chunk))
    size = max(1, math.ceil(len(body) / TRICKLE_PIECES))
    trickled: list[Step] = [step for step in steps if isinstance(step, Wait | Headers)]
    # Headers go out only once: an event stream interleaves waits and chunks, a JSON reply does not.
    trickled.sort(key=lambda step: isinstance(step, Headers))
    for start in range(0, len(body), size):
        trickled += [Wait(gap_s), Chunk(body[start : start + size])]
    return tuple(trickled)


def _disconnect(steps: Steps, seconds: float) -> Steps:
    """Send half of a JSON body, or an event stream up to half of its tokens; then close the connection."""
    if not _is_stream(steps):
        halves = (Chunk(step.data[: len(step.data) // 2]) if isinstance(step, Chunk) else step for step in steps)
        return (*halves, Disconnect())
    left, changed_steps = _tokens(steps) // 2, list[Step]()
    for step in steps:
        if isinstance(step, Wait) and step.tokens > left:
            # Token i of n is there after seconds × i / n, which is when the last one of this half is.
            changed_steps.append(Wait(step.seconds * left / step.tokens, left))
            break
        changed_steps.append(step)
        left -= step.tokens if isinstance(step, Wait) else 0
    return (*changed_steps, Disconnect())


_CHANGES: Mapping[str, Callable[[Steps, float], Steps]] = {
    "hang": _hang,
    "trickle": _trickle,
    "stall": _delay,
    "slow_first_token": _slow_first_token,
    "disconnect": _disconnect,
    "retrieval_slow": _delay,
    "retrieval_hang": _hang,
    "retrieval_trickle": _trickle,
}
