"""A user's graph as a workload kind: named by a reference that other processes can load, or live in this process.

    kind, corpus = own_kind("my_app:graph", "inputs.jsonl")        # kind.name is how comparisons name it
    workload_kind("own:my_app:graph")                              # the same, in any process

Inputs are kept under a name derived from them, which stands where other workloads have a corpus.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs, urlencode

from langgraph.graph import START
from langgraph.pregel import Pregel

from docmind_lab.alternatives.bound import without_wrappers
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.endpoints import EndpointTable, read_endpoints
from docmind_lab.systems.base.observer import role_of
from docmind_lab.systems.base.retries import own_retries
from docmind_lab.systems.base.workload_kind import (
    OWN_PREFIX,
    Defaults,
    Surroundings,
    WorkloadKind,
    left_out,
    shown_name,
)
from docmind_lab.systems.own.agents import AgentGraph, as_question, refusal_of
from docmind_lab.systems.own.inputs import Inputs, inputs_named, read_inputs, register, register_inputs
from docmind_lab.systems.own.making import simulated_while_made
from docmind_lab.systems.own.own_requests import Services, SimulatedDestinations
from docmind_lab.systems.own.own_workload import OwnWorkload
from docmind_lab.systems.own.references import (
    AnyGraph,
    RunMaker,
    compile_graph,
    digest_of,
    load_graph,
    load_object,
    maker_for_runs,
    notes_on_module,
    takes_config,
)
from docmind_lab.systems.own.run_settings import RunSettings, StoreMaker
from docmind_lab.virtual_time import current_clock, outside_simulation

# How long a user's graph takes is unknown; these are the defaults of DocMind itself.
DEFAULTS: Mapping[ClockName, Defaults] = {
    "virtual": Defaults(20.0, 40, "heavy_tail/3"),
    "wall": Defaults(2.0, 8, "typical/6"),
}

_live: dict[str, AnyGraph] = {}
_live_stores: dict[str, StoreMaker] = {}


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
    context: Any = None,
    config: Mapping[str, Any] | None = None,
    store: str | StoreMaker | None = None,
    resume: Sequence[Any] = (),
    endpoints: str | os.PathLike[str] | None = None,
) -> OwnGraph:
    """Check a graph and its inputs, and register them under names by which comparisons find them.

    graph: a reference as `load_graph` takes it, a compiled graph, or a function that makes one. store: a function that
    makes the store of one run, or a reference to it; None for an empty one in memory. resume: answers to the interrupts
    of every run, in their order. endpoints: a file with simulated endpoints of other services that the graph calls.

    Raises: ConfigurationError for any of it that cannot be used, in one line.
    """
    if services not in get_args(Services):
        raise ConfigurationError(f"services must be one of {', '.join(get_args(Services))}, not {services!r}")
    general = RunSettings.of(context, config, resume)
    options = {"deadline_key": deadline_key} if deadline_key != DEADLINE_KEY else {}
    if services != "simulated":
        options["services"] = services
    if endpoints is not None and services == "own":
        raise ConfigurationError("endpoints are simulated services; with services='own' leave them out")
    if endpoints is not None:
        file = Path(endpoints).resolve()
        code = "".join(row.code_digest for row in read_endpoints(file))
        # With its content in the name, no study goes on with earlier rows of the file, or earlier functions.
        digest = hashlib.blake2b(file.read_bytes() + code.encode(), digest_size=4).hexdigest()
        options |= {"endpoints": str(file), "endpoints_digest": digest}
    if isinstance(store, str):
        load_object(store, "store")
        options["store"] = store
    elif store is not None:
        options["store"] = register(store, getattr(store, "__name__", "store"), _live_stores)
    if isinstance(graph, str):
        if general.config:
            with _making(services, options.get("endpoints", "")):
                if takes_config(load_object(graph)):
                    options["config"] = _as_json(general.config)
        name = graph
        with _making(services, options.get("endpoints", "")):
            text = digest_of(graph)
        # Files of one name in two folders are two systems, and so are two versions of one.
        options |= {"text": text} if text else {}
        compiled = _load_once(graph, tuple(options.items()))
    else:
        with _making(services, options.get("endpoints", "")):
            compiled = compile_graph(graph, getattr(graph, "__name__", "") or "graph", general.config)
        name = register(compiled, str(compiled.get_name()).replace("?", "_").replace(":", "_"), _live)
    query = f"?{urlencode(options)}" if options else ""
    convert = functools.partial(as_question, compiled.agent) if isinstance(compiled, AgentGraph) else None
    items = read_inputs(compiled, inputs, general, convert)
    return OwnGraph(f"{OWN_PREFIX}{name}{query}", register_inputs(items), len(items))


def graph_named(workload: str) -> AnyGraph:
    """Return the graph for a name that `own_graph` gave; it is made once in a process. Raises: ConfigurationError."""
    reference, options = _parts_of_name(workload)
    if reference in _live:
        return _live[reference]
    return _load_once(reference, tuple(options.items()))


def _parts_of_name(workload: str) -> tuple[str, dict[str, str]]:
    reference, _, query = workload.removeprefix(OWN_PREFIX).partition("?")
    return reference, {name: values[-1] for name, values in parse_qs(query).items()}


def own_kind(workload: str) -> WorkloadKind:
    """Return the kind for a name that `own_graph` gave, in this process or another. Raises: ConfigurationError."""
    (reference, options), graph = _parts_of_name(workload), graph_named(workload)
    services, key = options.get("services", "simulated"), options.get("deadline_key", DEADLINE_KEY)
    store = _store_maker(options.get("store", ""))
    name = shown_name(f"{OWN_PREFIX}{reference}").removeprefix(OWN_PREFIX)
    make = maker_for_runs(graph)
    if make is not None:
        make = functools.partial(_made_for_run, make, services, options.get("endpoints", ""))

    def build(around: Surroundings) -> OwnWorkload:
        simulated = SimulatedDestinations.at(around.addresses, EndpointTable(options.get("endpoints", "")))
        kind = OwnWorkload(name, graph, None if services == "own" else simulated, key, store, make)
        return kind.in_node_mode(around.node_mode)

    more: dict[str, Any] = {"notes": notes_on_module(reference)}
    if isinstance(graph, AgentGraph):
        refusal = functools.partial(refusal_of, graph.agent)
        more = {"notes": left_out(refusal), "refusal": refusal}
    return WorkloadKind(
        name=name,
        title=name,
        asked="inputs",
        cases=inputs_named,
        build=build,
        defaults=DEFAULTS,
        roles=_roles(graph),
        parts=parts_of(graph),
        in_this_process=reference in _live or options.get("store") in _live_stores,
        has_server_log=services != "own",
        retries=own_retries,
        async_only=is_async_only(graph),
        endpoints=options.get("endpoints", ""),
        **more,
    )


@functools.cache
def _load_once(reference: str, options: tuple[tuple[str, str], ...]) -> AnyGraph:
    """Load a graph; a function that makes one is called once in a process for each version of the user's code.

    options: those in its name, with digests of the graph's code, and of the file of endpoints and its functions.
    """
    given = dict(options)
    if endpoints := given.get("endpoints", ""):
        read_endpoints(Path(endpoints))
    with _making(given.get("services", "simulated"), endpoints):
        if given.get("text", "") != digest_of(reference):
            raise ConfigurationError(f"graph {reference!r}: its code has changed since the study began; run it again")
        return load_graph(reference, json.loads(given["config"]) if "config" in given else None)


def _made_for_run(
    make: RunMaker, services: str, endpoints: str, config: Mapping[str, Any], stack: contextlib.ExitStack
) -> AnyGraph:
    """Make the graph of a run. In virtual time it takes none, and what it asks is no request of the run."""
    if current_clock() is None:
        return make(config, stack)
    with outside_simulation(), _making(services, endpoints):
        return make(config, stack)


def _making(services: str, endpoints: str) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if services == "own" else simulated_while_made(endpoints)


def _as_json(config: Mapping[str, Any]) -> str:
    try:
        return json.dumps(config, sort_keys=True)
    except TypeError as error:
        raise ConfigurationError(f"config: a function makes this graph from it, so it must be JSON: {error}") from error


def _store_maker(reference: str) -> StoreMaker | None:
    if not reference:
        return None
    maker = _live_stores[reference] if reference in _live_stores else load_object(reference, "store")
    if not callable(maker):
        raise ConfigurationError(
            f"store {reference!r} is a {type(maker).__name__}, not a function: each run needs a store of its own"
        )
    return maker


def is_async_only(graph: AnyGraph) -> bool:
    """Whether a node or a tool of a graph, or of a graph within it, is async and has no sync form."""
    parts = [(node, "afunc") for node in nodes_of(graph)]
    parts += [(tool, "coroutine") for tool in tools_of(graph).values()]
    return any(getattr(part, "func", True) is None and getattr(part, form, None) is not None for part, form in parts)


def parts_of(graph: AnyGraph) -> dict[str, tuple[str, ...]]:
    """Return the names of a graph's nodes and tools, of which runs may reach some."""
    return {"nodes": tuple(name for name in graph.nodes if name != START), "tools": tuple(tools_of(graph))}


def tools_of(graph: AnyGraph) -> dict[str, Any]:
    """Return the tools of a graph's nodes, and of the graphs within it, by name."""
    tools: dict[str, Any] = {}
    for node in nodes_of(graph):
        tools |= getattr(node, "tools_by_name", {})
    return tools


def nodes_of(graph: AnyGraph) -> Iterator[Any]:
    """Yield what the nodes of a graph run, and in place of a graph within it what its nodes run."""
    for node in graph.nodes.values():
        runnable = without_wrappers(node.bound)
        yield from nodes_of(runnable) if isinstance(runnable, Pregel) else (runnable,)


def _roles(graph: AnyGraph) -> tuple[str, ...]:
    names = (role_of(name) for name in graph.nodes if name != START)
    return tuple(dict.fromkeys(name for name in names if name))
