"""A wrong keyword of a public call is answered with the right one: another spelling, or where an old name lives now."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from docmind_lab.core.errors import ConfigurationError

OLD_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "timeout": "decision_timeout_s",
        "timeout_s": "decision_timeout_s",
        "decision_timeout": "decision_timeout_s",
        "alternative": "alternatives",
        "side_by_side": "workers",
        "graph": "dl.graph(graph, inputs)",
        "agent": "dl.agent(agent, inputs)",
        "command": "dl.command(command, inputs)",
        "inputs": "dl.graph(graph, inputs)",
        **{
            name: f"dl.graph({name}=…)" for name in ("context", "config", "store", "resume", "deadline_key", "enforced")
        },
        "workload": "a system: dl.docmind(), dl.research(), dl.staged(), dl.peers(), dl.hops()",
        **{name: f"dl.docmind({name}=…)" for name in ("documents", "questions", "router_injection")},
        "retries": "an option of the system: dl.docmind(retries=…)",
        "budget": "an option of the system: dl.docmind(budget=…)",
        "adoption": "dl.hops(adoption=…)",
        "profile": "World(latencies=…)",
        "latency_profile": "World(latencies=…)",
        "fault": "World(faults=…)",
        "stops_on_disconnect": 'World(server="goes-on")',
        "server_behaviour": "World(server=…)",
        **{name: f"World({name}=…)" for name in ("endpoints", "clock", "cpu_charge")},
        "model_variation": "World(model=ScriptedModel(variation=…))",
        "model_under_pressure": "World(model=ScriptedModel(under_pressure=…))",
        "services": "world=Live() for services='own'",
        **{
            name: f"Live({name}=…)"
            for name in ("settings", "max_requests", "max_tokens", "record", "record_text", "before_sending")
        },
        "replay": "world=Replay(folder)",
        "policies": 'a part of an alternative: alternatives="A+hedge:2s"',
        "kill": 'alternatives, where kill is one of them: "A,D,E,kill"',
    }
)
"""Each name that a keyword had before systems and worlds took it over, and where it lives now."""

Target = TypeVar("Target", bound=Callable[..., Any])


def answers_wrong_names(target: Target) -> Target:
    """Return a function, or a class, that answers a keyword it does not have with the right one.

    Numbers, arrays and columns of numpy and pandas that it is given become Python's.
    """
    names = list(inspect.signature(target).parameters)
    name_of_call = str(getattr(target, "noun", "") or f"dl.{getattr(target, '__name__', 'call')}")
    inner = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]

    @functools.wraps(inner)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in names:
                raise ConfigurationError(f"{name_of_call} has no argument {name!r}: {right_name(name, names)}")
        return inner(*map(_plain, arguments), **{name: _plain(value) for name, value in keywords.items()})

    if isinstance(target, type):
        target.__init__ = call  # type: ignore[misc]
        return target
    return cast(Target, call)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    is_theirs = type(value).__module__.partition(".")[0] in ("numpy", "pandas")
    return value.tolist() if is_theirs and hasattr(value, "tolist") else value


def right_name(name: str, names: Collection[str]) -> str:
    """Return what to write in place of a name that does not exist. names: those that there are."""
    if name in OLD_NAMES:
        return f"now {OLD_NAMES[name]}"
    alike = difflib.get_close_matches(name, [*names, *OLD_NAMES], n=1)
    if alike and alike[0] in names:
        return f"did you mean {alike[0]}?"
    if alike:
        return f"did you mean {alike[0]}? It is now {OLD_NAMES[alike[0]]}"
    return f"it takes {', '.join(names)}"
