"""The limits that one request is under: its client's timeouts, who tries it again, and what the node around it has.

    recorder.on_attempt = lambda attempt: print(client_of(attempt))     # in the code that sends it
    designed([Limit("node", "node", 20.0), Limit("call", "openai", tries=3, waits_s=1.5), ...])

A timeout is what came with the request to the network seam, so it was observed. Who tries again is read off the objects
that are sending: those whose methods are on the stack at that instant.
"""

from __future__ import annotations

import math
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import FrameType
from typing import Any, Literal, cast

from docmind_lab.network.attempts import Attempt
from docmind_lab.systems.own.references import AnyGraph

Level = Literal["run", "step", "node", "idle node", "call", "retry", "try", "read", "connect", "pool"]
"""What a limit is of, from the outside in; a retry is of a layer of retries inside of a call."""

_LIBRARIES = (
    *("aiohttp", "anthropic", "google.genai", "http.client", "httpx", "httpx2", "langchain_openai", "mcp", "ollama"),
    *("openai", "qdrant_client", "requests", "urllib3"),
)
"""Modules of client libraries. On the stack the outermost of them is the one that a node calls."""
# Of a loop that ends by the time alone.
_MOST_TRIES = 100_000


@dataclass(frozen=True)
class Limit:
    """One limit, or one layer of retries, and how long what is inside lasts at worst. Infinite for what has no end.

    Args:
        level: What it is a limit of.
        who: What has it: "run", "step", "node", the name of a client library or the class of a loop of retries.
        seconds: After which it ends one try of what is inside of it; infinite for no limit.
        tries: How often what is inside of it is tried.
        waits_s: All waits between the tries together, at their longest, in seconds; infinite where tries have no end.
        node: The node; empty for a limit of the whole run.
        address: What its client asks, without credentials; empty for a limit of the graph's.
        designed_s: What the limits from here to the inside come to when nothing is ever answered, in seconds.
        hang_s: How long it lasted when no byte ever came, in seconds; NaN where it was not measured.
        hang_requests: How many requests were sent meanwhile.
        trickle_s: How long it lasted when bytes came without end, in seconds; NaN where it was not measured.
    """

    level: Level
    who: str
    seconds: float = math.inf
    tries: int = 1
    waits_s: float = 0.0
    node: str = ""
    address: str = ""
    designed_s: float = math.nan
    hang_s: float = math.nan
    hang_requests: int = 0
    trickle_s: float = math.nan

    @property
    def is_beside(self) -> bool:
        """Whether it is of connecting, or of the wait for a connection, which is beside the wait for an answer."""
        return self.level in ("connect", "pool")


def designed(limits: Sequence[Limit], inner_s: float = math.inf) -> tuple[Limit, ...]:
    """Return limits that are around each other with what each comes to by design.

    limits: from the outside in. inner_s: how long what is inside of them would last without them, in seconds.
    """
    made = list[Limit]()
    for limit in reversed(limits):
        if limit.is_beside:
            made.append(replace(limit, designed_s=limit.seconds))
        else:
            inner_s = limit.tries * min(limit.seconds, inner_s) + limit.waits_s
            made.append(replace(limit, designed_s=inner_s))
    return tuple(reversed(made))


def client_of(attempt: Attempt) -> tuple[Limit, ...]:
    """Return the limits of the client that sends a request; called by the code that sends it, as the request starts.

    From the outside in: who tries again, one try, one read; and those beside it.
    """
    own, frames = attempt.own_s, [frame for frame, _ in traceback.walk_stack(sys._getframe())]
    names = [name for frame in frames if (name := _library(frame))]
    # The tasks of aiohttp send what its callers wait for elsewhere.
    name = "aiohttp" if "total" in own else names[-1] if names else "client"
    # urllib3 has a limit of connecting beside that of each read.
    connects = [getattr(frame.f_locals.get("timeout"), "connect_timeout", None) for frame in frames]
    connect_s = next((one for one in connects if isinstance(one, int | float)), own.get("connect"))
    timeouts_s = {"try": own.get("total"), "read": own.get("read"), "connect": connect_s, "pool": own.get("pool")}
    inner_s, layers = min(timeouts_s["try"] or math.inf, timeouts_s["read"] or math.inf), list[Limit]()
    for frame in frames:
        layer = _layer(frame, name, inner_s)
        if layer.tries > 1 or math.isinf(layer.waits_s):
            layers.insert(0, layer)
            inner_s = designed([layer], inner_s)[0].designed_s
    observed = (Limit(cast("Level", level), name, seconds or math.inf) for level, seconds in timeouts_s.items())
    return designed(
        (
            *(layers[:1] or [Limit("call", name)]),
            *(replace(layer, level="retry") for layer in layers[1:]),
            *(limit for limit in observed if limit.level == "read" or math.isfinite(limit.seconds)),
        )
    )


def _library(frame: FrameType) -> str | None:
    module = f"{frame.f_globals.get('__name__', '')}."
    names = (name for name in _LIBRARIES if module.startswith(f"{name}."))
    return next((re.sub("[._]", "-", name) for name in names), None)


def _layer(frame: FrameType, name: str, inner_s: float) -> Limit:
    """Return the layer of retries that a frame is of; one try where it is of none.

    A client has the number of retries in a variable, a middleware in a field, and a loop of tenacity, on which others
    are built, an object that says when to stop. inner_s: how long one try lasts at worst.
    """
    function, local = frame.f_code.co_name, frame.f_locals
    loop: Any = local.get("self")
    if function in ("request", "_request") and _library(frame) and isinstance(local.get("max_retries"), int):
        tries = local["max_retries"] + 1
        return Limit("call", name, tries=tries, waits_s=_backoff_s(tries, 0.5, 2.0, 8.0))
    if function == "urlopen":
        return _layer_of_urllib3(local.get("retries"), str(local.get("method")), name)
    if "wrap" in function and hasattr(loop, "backoff_factor"):
        tries = int(loop.max_retries) + 1
        waits_s = _backoff_s(tries, loop.initial_delay, loop.backoff_factor, loop.max_delay)
        return Limit("call", type(loop).__name__, tries=tries, waits_s=waits_s * (1.25 if loop.jitter else 1.0))
    # A loop of tenacity calls a function, or the code around it says `for attempt in` it: so does with_retry.
    attempts = [each.retry_state for each in local.values() if type(each).__name__ == "AttemptManager"]
    at_work = [each.retry_object for each in attempts if each.outcome is None]
    who = type(loop if hasattr(loop, "max_attempt_number") or not at_work else at_work[0]).__name__
    loop = at_work[0] if at_work else loop
    if not at_work and not (function == "__call__" and hasattr(loop, "stop") and hasattr(loop, "wait")):
        return Limit("call", name)
    if _stops(loop.stop, sys.maxsize, math.inf) is False:
        return Limit("call", who, waits_s=math.inf)
    tries, waits_s, wait_s = 1, 0.0, _wait_of_tenacity_s(loop.wait, 1)
    while tries < _MOST_TRIES and _stops(loop.stop, tries, tries * inner_s + waits_s, wait_s) is False:
        tries, waits_s = tries + 1, waits_s + wait_s
        wait_s = _wait_of_tenacity_s(loop.wait, tries)
    return Limit("call", who, tries=tries, waits_s=waits_s)


def _stops(stop: Any, failed: int, spent_s: float, wait_s: float = 0.0) -> bool | None:
    """Whether a loop of tenacity ends after so many tries, and seconds; None for a function of the user's own."""
    kind = type(stop).__name__
    if hasattr(stop, "stops"):
        parts = [part for each in stop.stops if (part := _stops(each, failed, spent_s, wait_s)) is not None]
        return None if not parts else all(parts) if kind == "stop_all" else any(parts)
    if hasattr(stop, "max_attempt_number"):
        return bool(failed >= stop.max_attempt_number)
    if kind in ("stop_after_delay", "stop_before_delay"):
        return bool(spent_s + (wait_s if kind == "stop_before_delay" else 0.0) >= stop.max_delay)
    return False if kind == "_stop_never" else None


def _layer_of_urllib3(retries: Any, method: str, name: str) -> Limit:
    """Return how often urllib3 asks again where nothing is answered: not what may not be asked twice."""
    if not hasattr(retries, "total") or not retries._is_method_retryable(method):
        return Limit("call", name)
    counts = [int(each) for each in (retries.total, retries.read) if each is not None]
    if not counts:
        return Limit("call", name, waits_s=math.inf)
    tries = min(counts) + 1
    # There is no wait before the second try.
    waits_s = _backoff_s(tries - 1, retries.backoff_factor * 2, 2.0, retries.backoff_max)
    return Limit("call", name, tries=tries, waits_s=waits_s + retries.backoff_jitter * max(tries - 2, 0))


def _wait_of_tenacity_s(wait: Any, failed: int) -> float:
    """Return the longest wait after so many tries have failed, in seconds; 0 for a function of the user's own."""
    if parts := getattr(wait, "wait_funcs", ()):
        return sum(_wait_of_tenacity_s(part, failed) for part in parts)
    if chain := getattr(wait, "strategies", ()):
        return _wait_of_tenacity_s(chain[min(failed, len(chain)) - 1], failed)
    for field in ("wait_fixed", "wait_random_max"):
        if hasattr(wait, field):
            return float(getattr(wait, field))
    if hasattr(wait, "increment"):
        wait_s = wait.start + wait.increment * (failed - 1)
    elif hasattr(wait, "exp_base"):
        first_s = wait.multiplier if hasattr(wait, "multiplier") else wait.initial
        wait_s = first_s * float(wait.exp_base) ** min(failed - 1, 100) + getattr(wait, "jitter", 0.0)
    else:
        return 0.0
    return float(max(0.0, getattr(wait, "min", 0.0), min(wait_s, wait.max)))


# ---- of the graph


def limits_of_graph(graph: AnyGraph, decision_timeout_s: float | None) -> tuple[Limit, ...]:
    """Return the limits around every node of a graph, from the outside in."""
    run, step_s = Limit("run", "run", _seconds(decision_timeout_s)), graph.step_timeout
    return (run,) if step_s is None else (run, Limit("step", "step", _seconds(step_s)))


def limits_of_node(graph: AnyGraph, name: str) -> tuple[Limit, ...]:
    """Return the limits that LangGraph puts around a node, from the outside in: its retries with its two timeouts."""
    node = graph.nodes.get(name)
    if node is None:
        return (Limit("node", "node", node=name),)
    run_s, idle_s = (getattr(node.timeout, field, None) for field in ("run_timeout", "idle_timeout"))
    policies = node.retry_policy or graph.retry_policy or ()
    tries = max((policy.max_attempts for policy in policies), default=1)
    waits_s = max((_waits_of(policy) for policy in policies), default=0.0)
    whole = Limit("node", "node", _seconds(run_s), tries, waits_s, name)
    return (whole,) if idle_s is None else (whole, Limit("idle node", "node", _seconds(idle_s), node=name))


def _waits_of(policy: Any) -> float:
    """Return all waits between the tries of a policy, at their longest."""
    waits_s = _backoff_s(policy.max_attempts, policy.initial_interval, policy.backoff_factor, policy.max_interval)
    return waits_s + (policy.max_attempts - 1 if policy.jitter else 0)


def _backoff_s(tries: int, first_s: float, factor: float, longest_s: float) -> float:
    """Return all waits between tries together, each longer than the one before by a factor."""
    return float(sum(min(longest_s, first_s * factor**failed) for failed in range(tries - 1)))


def _seconds(value: float | timedelta | None) -> float:
    return math.inf if value is None else value.total_seconds() if isinstance(value, timedelta) else float(value)


def in_sequence_s(spans: Iterable[tuple[tuple[float, float], float]]) -> float:
    """Return how long things last one after the other, where those that overlapped go side by side.

    spans: when each was under way in a run in which nothing was wrong, and how long it lasts at most, in seconds.
    """
    total_s, longest_s, until_s = 0.0, 0.0, -math.inf
    for (from_s, to_s), worst_s in sorted(spans):
        if from_s >= until_s:
            total_s, longest_s = total_s + longest_s, 0.0
        longest_s, until_s = max(longest_s, worst_s), max(until_s, to_s)
    return total_s + longest_s
