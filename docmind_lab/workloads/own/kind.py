"""A user's graph as a workload kind: named by a reference that other processes can load, or live in this process.

    kind, corpus = own_kind("my_app:graph", "inputs.jsonl")        # kind.name is how comparisons name it
    workload_kind("own:my_app:graph")                              # the same, in any process

A reference "my_app:graph" names a compiled graph or a factory without arguments. Inputs are kept under a name derived
from them, which stands where other workloads have a corpus.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import parse_qs, urlencode

from langgraph.graph import START, StateGraph
from langgraph.pregel import Pregel

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.docmind.graphs.observer import role_of
from docmind_lab.workloads.agents import Agent, AgentGraph, agent_graph, load_agent
from docmind_lab.workloads.agents.enforcing import carried_out_by, notes_on, refusal_of
from docmind_lab.workloads.agents.inputs import as_question
from docmind_lab.workloads.kinds import OWN_PREFIX, Defaults, Surroundings, WorkloadKind, own_retries
from docmind_lab.workloads.own.inputs import GraphInput, Inputs, fingerprint, read_inputs
from docmind_lab.workloads.own.watch import Own, Services, SimulatedDestinations
from docmind_lab.workloads.own.workload import OwnWorkload

AGENT_PREFIX = "agent:"
"""Before a reference that names an agent, and no graph."""


def load_graph(reference: str) -> Pregel[Any, Any, Any, Any]:
    """Load the compiled graph "module:attribute". Modules are also looked for in the working directory.

    Raises: ConfigurationError in one line: for a malformed reference, a module that does not import, an attribute
    that is not there or is no graph, a factory that fails.
    """
    if reference.startswith(AGENT_PREFIX):
        named = reference.removeprefix(AGENT_PREFIX)
        return agent_graph(load_agent(_load(named, "agent"), named))
    return compile_graph(_load(reference, "graph"), reference)


def _load(reference: str, what: str) -> Any:
    """Return the object "module:attribute". what: what it is to be, for the message of an error."""
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"{what} {reference!r}: write it as module:attribute, such as my_app:{what}")
    found = _import(f"{what} {reference!r}", module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{what} {reference!r}: module {module_name} has no attribute {attribute}")
        found = getattr(found, name)
    return found


def compile_graph(found: Any, reference: str) -> Pregel[Any, Any, Any, Any]:
    """Return the compiled graph that an object is, or makes if called. Raises: ConfigurationError as `load_graph`."""
    if isinstance(found, StateGraph):
        raise ConfigurationError(
            f"graph {reference!r} is a {type(found).__name__} that is not compiled; call .compile()"
        )
    if isinstance(found, Pregel):
        return found
    if not callable(found) or inspect.isclass(found):
        raise ConfigurationError(
            f"graph {reference!r} is a {_kind(found)}, not a compiled LangGraph graph or a function that makes one"
        )
    made = _call_factory(found, reference)
    if isinstance(made, StateGraph):
        raise ConfigurationError(
            f"graph {reference!r} makes a {type(made).__name__} that is not compiled; call .compile()"
        )
    if not isinstance(made, Pregel):
        raise ConfigurationError(f"graph {reference!r} makes a {_kind(made)}, not a compiled LangGraph graph")
    return made


def _import(named: str, module: str) -> Any:
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except DocmindLabError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{named}: module {module} does not import: {_one_line(error)}") from error


def _call_factory(factory: Any, reference: str) -> Any:
    needed = [
        name
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise ConfigurationError(
            f"graph {reference!r} is a function of {', '.join(needed)}; one without arguments is needed"
        )
    try:
        made = factory()
        return shared_loop().run(_await(made)) if inspect.isawaitable(made) else made
    except DocmindLabError:
        raise
    except Exception as error:
        raise ConfigurationError(f"graph {reference!r} could not be made: {_one_line(error)}") from error


async def _await(made: Any) -> Any:
    return await made


def _kind(value: Any) -> str:
    return f"class ({value.__name__})" if inspect.isclass(value) else type(value).__name__


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


# How long a user's graph takes is unknown; these are the defaults of DocMind itself.
DEFAULTS: Mapping[ClockName, Defaults] = {
    "virtual": Defaults(20.0, 40, "heavy_tail/3"),
    "wall": Defaults(2.0, 8, "typical/6"),
}

_live: dict[str, Pregel[Any, Any, Any, Any]] = {}
_inputs: dict[str, tuple[GraphInput, ...]] = {}


@dataclass(frozen=True)
class OwnGraph:
    """The names under which `compare` finds a user's graph and its inputs.

    workload: its name as `workload_kind` takes it. corpus: the name of its inputs. questions: how many there are.
    """

    workload: str
    corpus: str
    questions: int


def own_graph(
    graph: Any,
    inputs: Inputs,
    *,
    deadline_key: str = DEADLINE_KEY,
    services: Services = "simulated",
) -> OwnGraph:
    """Check a graph and its inputs, and register them under names by which comparisons find them.

    graph: "module:attribute", a compiled graph, or a factory. Raises: ConfigurationError for any of it that cannot be
    used, in one line.
    """
    if services not in get_args(Services):
        raise ConfigurationError(f"services must be one of {', '.join(get_args(Services))}, not {services!r}")
    options = {"deadline_key": deadline_key} if deadline_key != DEADLINE_KEY else {}
    if services != "simulated":
        options["services"] = services
    query = f"?{urlencode(options)}" if options else ""
    if isinstance(graph, str):
        name, found = graph, _load_once(graph)
    else:
        found = compile_graph(graph, getattr(graph, "__name__", "") or "graph")
        name = _register(found)
    convert = functools.partial(as_question, found.agent) if isinstance(found, AgentGraph) else None
    asked = read_inputs(found, inputs, convert)
    corpus = f"inputs-{fingerprint(asked)}"
    _inputs[corpus] = asked
    return OwnGraph(f"{OWN_PREFIX}{name}{query}", corpus, len(asked))


def own_kind(workload: str) -> WorkloadKind:
    """Return the kind for a name that `own_graph` gave, in this process or another. Raises: ConfigurationError."""
    reference, _, query = workload.removeprefix(OWN_PREFIX).partition("?")
    options = {name: values[-1] for name, values in parse_qs(query).items()}
    graph = _live[reference] if reference in _live else _load_once(reference)
    services, key = options.get("services", "simulated"), options.get("deadline_key", DEADLINE_KEY)

    def build(around: Surroundings) -> OwnWorkload:
        addresses = around.addresses
        simulated = SimulatedDestinations(addresses.openai_base_url, addresses.qdrant_url)
        made = OwnWorkload(reference, graph, Own() if services == "own" else simulated, key)
        return made.in_node_mode(around.node_mode)

    return WorkloadKind(
        name=reference,
        title=reference,
        asked="inputs",
        cases=_cases,
        build=build,
        defaults=DEFAULTS,
        roles=_roles(graph),
        in_this_process=reference in _live,
        has_server_log=services != "own",
        retries=own_retries,
        **(_of_agent(graph.agent) if isinstance(graph, AgentGraph) else {}),
    )


def _of_agent(agent: Agent) -> dict[str, Any]:
    """Return what the kind of an agent has and that of a graph has not."""
    return {
        "refusal": functools.partial(refusal_of, agent),
        "carried_out_by": functools.partial(carried_out_by, agent),
        "notes": notes_on(agent),
    }


# A module is imported once in a process, and a factory called once.
_load_once = functools.cache(load_graph)


def _register(graph: Pregel[Any, Any, Any, Any]) -> str:
    """Register a live graph and return its name, with a number if another graph has the name already."""
    own = str(graph.get_name()).replace("?", "_").replace(":", "_")
    number = 1
    while True:
        name = own if number == 1 else f"{own}-{number}"
        if _live.setdefault(name, graph) is graph:
            return name
        number += 1


def _cases(corpus: str) -> tuple[GraphInput, ...]:
    if corpus not in _inputs:
        raise ConfigurationError("a graph of your own is asked its own inputs: compare(graph=..., inputs=...)")
    return _inputs[corpus]


def _roles(graph: Pregel[Any, Any, Any, Any]) -> tuple[str, ...]:
    names = (role_of(name) for name in graph.nodes if name != START)
    return tuple(dict.fromkeys(name for name in names if name))
