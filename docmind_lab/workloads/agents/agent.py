"""An agent as the lab runs it: one function from a question to a result, and how the result is read as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NODE = "agent"
"""The name of the graph's only node: the role of an agent in the tables, and in faults (`hang:agent`)."""

_TEXT_ATTRIBUTES = ("text", "content", "output", "final_output", "answer", "response", "raw")
# A result in a result in a message: no framework nests them deeper.
_DEPTH = 4


class NativeTimeoutReached(Exception):
    """Raised by an adapter when the framework's own timeout has ended the run."""


@dataclass(frozen=True)
class NativeTimeout:
    """The timeout that a framework itself offers for a whole run.

    title: how the framework's users write it. call: (seconds, question, **keywords) → the result; sync or async as the
    agent is. It raises `NativeTimeoutReached` when the timeout has ended the run.
    """

    title: str
    call: Callable[..., Any]


@dataclass(frozen=True)
class Agent:
    """An agent: a function of a question, of any framework or of none.

    name: level of `workload` in the tables. call: (question, **keywords) → the result. is_async: whether `call` and the
    native timeout return a coroutine. takes_stop: whether `call` takes `should_stop`, a function that returns True when
    it is time to stop. framework: how its users call it. native: its own timeout; None without one.
    """

    name: str
    call: Callable[..., Any]
    is_async: bool
    takes_stop: bool = False
    framework: str = "a function"
    native: NativeTimeout | None = None


def text_of(result: Any, depth: int = _DEPTH) -> str:
    """Return the text of an agent's result.

    That is the result itself, or the first of its `text`, `content`, `output`, `final_output`, `answer`, `response`
    and `raw` that is there, read in the same way; otherwise `str(result)`. None has no text.
    """
    if isinstance(result, str) or result is None:
        return result or ""
    if depth:
        for name in _TEXT_ATTRIBUTES:
            value = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
            if value is not None and not callable(value):
                return text_of(value, depth - 1)
        if isinstance(result, Iterable) and not isinstance(result, Mapping | bytes):
            return "".join(text_of(part, depth - 1) for part in result)
    return str(result)
