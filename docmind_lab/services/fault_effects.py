"""Apply a fault to a plan: the same reply comes late, in pieces, broken off or never.

    under_fault(plan, Fault("stall"))

Each change keeps the account of tokens true: those of the plan's waits are those that are generated when it is played
to its end. Faults that are another answer (`http_500`, `rate_limit`, `empty`, `retrieval_503`) are the service's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from docmind_lab.services.faults import LONGEST_S, Fault, first_that_strikes
from docmind_lab.services.plan import (
    SIGN_OF_LIFE,
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
_EVENT_STREAM = "text/event-stream"
# Of pieces without end: so that there are not too many to play.
_LEAST_GAP_S = 0.01

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


def under_fault(plan: Plan, fault: Fault, sign_of_life: bytes = SIGN_OF_LIFE) -> Plan:
    """Return a good reply's plan under a fault. Raises: KeyError for a fault that is another answer.

    sign_of_life: what the client skips between two events of a stream.
    """
    change = _CHANGES[fault.kind]
    if fault.kind == "keep_alive":
        change = functools.partial(_keep_alive, sign_of_life=sign_of_life)
    steps = change(plan.steps, fault.seconds or 0.0)
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


def _content_type(steps: Steps) -> str:
    headers = next((step for step in steps if isinstance(step, Headers)), Headers(200))
    return dict(headers.headers).get("content-type", "")


def _is_stream(steps: Steps) -> bool:
    return _content_type(steps) in (_EVENT_STREAM, "application/x-ndjson")


def _hang(steps: Steps, seconds: float) -> Steps:
    return (Wait(math.inf),)


def _delay(steps: Steps, seconds: float) -> Steps:
    return (Wait(seconds), *steps)


def _slow_first_token(steps: Steps, seconds: float) -> Steps:
    late = _delay(steps, seconds)
    return tuple(sorted(late, key=lambda step: not isinstance(step, Headers))) if _is_stream(steps) else late


def _keep_alive(steps: Steps, seconds: float, sign_of_life: bytes = SIGN_OF_LIFE) -> Steps:
    """Send the headers at once, without a length, and signs of life until the plan begins."""
    # Before JSON it is a space: an empty line would be read as one of a stream of lines.
    sign = sign_of_life if _content_type(steps) == _EVENT_STREAM else b" "
    kept_alive: list[Step] = [Wait(seconds, sign_of_life=sign)]
    for step in steps:
        if isinstance(step, Headers):
            kept_alive.insert(0, _without_length(step))
        else:
            kept_alive.append(step)
    return tuple(kept_alive)


def _trickle(steps: Steps, gap_s: float) -> Steps:
    """Send the body in small pieces, each after a gap, besides the waits that the plan has between its parts."""
    size = math.ceil(sum(len(step.data) for step in steps if isinstance(step, Chunk)) / TRICKLE_PIECES)
    trickled, left = list[Step](), 0
    for step in steps:
        data = step.data if isinstance(step, Chunk) else b""
        if not isinstance(step, Chunk):
            trickled.append(step)
        while data:
            if left == 0:
                trickled.append(Wait(gap_s))
                left = size
            part, data = data[:left], data[left:]
            trickled.append(Chunk(part))
            left -= len(part)
    return tuple(trickled)


def _endless(steps: Steps, gap_s: float) -> Steps:
    """Send the last token of a stream, or white space before a body, again and again for an hour; then nothing more."""
    after_waits = [
        place for place, (wait, _) in enumerate(pairwise(steps), 1) if isinstance(wait, Wait) and wait.tokens
    ]
    tokens = [place for place in after_waits if isinstance(steps[place], Chunk)] if _is_stream(steps) else []
    chunks = [place for place, step in enumerate(steps) if isinstance(step, Chunk)]
    first, piece = (tokens[-1], steps[tokens[-1]]) if tokens else ([*chunks, len(steps)][0], Chunk(b" "))
    # What has no end has no length.
    begun = tuple(_without_length(step) if isinstance(step, Headers) else step for step in steps[:first])
    gap_s = max(gap_s, _LEAST_GAP_S)
    return (*begun, *(Wait(gap_s), piece) * math.ceil(LONGEST_S / gap_s), Wait(math.inf))


def _without_length(headers: Headers) -> Headers:
    return replace(headers, headers=tuple(item for item in headers.headers if item[0].lower() != "content-length"))


def _halves(steps: Steps) -> tuple[Steps, Steps]:
    """Split a JSON reply after half of its body, and an event stream after half of its tokens."""
    is_stream, left = _is_stream(steps), _tokens(steps) // 2
    for place, step in enumerate(steps):
        halves: tuple[Step, Step]
        if isinstance(step, Chunk) and not is_stream:
            middle = len(step.data) // 2
            halves = Chunk(step.data[:middle]), Chunk(step.data[middle:])
        elif isinstance(step, Wait) and is_stream and step.tokens > left:
            # Token i of n is there after seconds × i / n, which is when the last one of this half is.
            first_s = step.seconds * left / step.tokens
            halves = Wait(first_s, left), Wait(step.seconds - first_s, step.tokens - left)
        else:
            left -= step.tokens if isinstance(step, Wait) else 0
            continue
        return (*steps[:place], halves[0]), (halves[1], *steps[place + 1 :])
    return steps, ()


def _stall_mid_stream(steps: Steps, seconds: float) -> Steps:
    first, second = _halves(steps)
    return (*first, Wait(seconds), *second)


def _disconnect(steps: Steps, seconds: float) -> Steps:
    return (*_halves(steps)[0], Disconnect())


_CHANGES: Mapping[str, Callable[[Steps, float], Steps]] = {
    "hang": _hang,
    "trickle": _trickle,
    "endless": _endless,
    "stall": _delay,
    "stall_mid_stream": _stall_mid_stream,
    "slow_first_token": _slow_first_token,
    "keep_alive": _keep_alive,
    "disconnect": _disconnect,
    "retrieval_slow": _delay,
    "retrieval_hang": _hang,
    "retrieval_trickle": _trickle,
    "retrieval_endless": _endless,
}
