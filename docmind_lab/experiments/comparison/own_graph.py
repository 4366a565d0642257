"""A comparison of a user's own graph, and the options that apply to one."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.world_options import AnyWorld, Replay
from docmind_lab.services.faults import Fault
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.own import OwnGraph, Services, own_graph
from docmind_lab.systems.own.agents import agent_graph, load_agent
from docmind_lab.systems.own.programs import own_program
from docmind_lab.systems.own.references import AGENT_PREFIX
from docmind_lab.systems.system_catalogue import Agent, Command, Graph, OwnSystem, System

_EVERY_ROLE = "*"


def own_names(system: OwnSystem, services: Services, endpoints: str | os.PathLike[str] | None) -> OwnGraph:
    """Return the names under which worker processes find a system of the user's own and its inputs.

    services: "own" where requests go where the system's code sends them, "simulated" elsewhere. endpoints: file with
    simulated endpoints of other services.
    Raises: ConfigurationError for a system or inputs that cannot be used.
    """
    if isinstance(system, Command):
        if services == "own":
            raise ConfigurationError(
                "services='own': what a program sends to its own endpoints can be neither seen nor limited; leave "
                "services out, and simulated services answer it"
            )
        if endpoints is not None:
            raise ConfigurationError("endpoints is not for a program, which command names; leave endpoints out")
        return own_program(system.command, system.inputs)
    graph = graph_of(system)
    options: dict[str, Any] = {"deadline_key": graph.deadline_key, "services": services, "endpoints": endpoints}
    return own_graph(graph.graph, graph.inputs, **graph.of_runs, **options)


def graph_of(system: System) -> Graph:
    """Return the graph that a system is, or that runs an agent. Raises: ConfigurationError for another system."""
    if isinstance(system, Agent):
        is_reference = isinstance(system.agent, str)
        graph = f"{AGENT_PREFIX}{system.agent}" if is_reference else agent_graph(load_agent(system.agent))
        return Graph(graph, system.inputs, budget=system.budget)
    if not isinstance(system, Graph):
        raise ConfigurationError(f"{system!r} is no graph of your own; name one: dl.graph(graph, inputs)")
    return system


def require_own_world(system: OwnSystem, world: AnyWorld, clock: ClockName, settings: Settings) -> None:
    """Return if a user's system can meet the world. Raises: ConfigurationError saying what it cannot be given."""
    if isinstance(system, Command):
        # A recording or a cap needs every request to be seen.
        watching = (getattr(world, name, None) for name in ("record", "max_requests", "max_tokens"))
        if isinstance(world, Replay) or any(option is not None for option in watching):
            raise ConfigurationError("record is not for a program, which command names; leave record out")
        if clock == "virtual":
            raise ConfigurationError(
                "command: another process runs in real time; use the wall clock: World(clock='wall') (--clock wall)"
            )
    if name := live_endpoint_of(settings):
        raise ConfigurationError(
            f"{name} names an endpoint of the lab's own systems; a graph of your own names its own: leave the setting "
            "out, and use world=Live() (--services own) for live endpoints"
        )


def faults_in(kind: WorkloadKind, faults: Sequence[str | Fault] | str | Fault, *, is_own: bool) -> tuple[Fault, ...]:
    """Return the faults of a comparison.

    is_own: whether it is of a user's graph, whose roles are its nodes; a text without a role strikes every call of it.
    Raises: ConfigurationError for a role that is no node of the graph.
    """
    written = [faults] if isinstance(faults, str | Fault) else faults
    everywhere = (_EVERY_ROLE,) if is_own else ()
    parsed = (Fault.parse(fault, *everywhere) if isinstance(fault, str) else fault for fault in written)
    made = tuple(fault for fault in parsed if fault.kind != "none")
    for fault in made if is_own else ():
        if fault.role not in (_EVERY_ROLE, *kind.roles):
            nodes = ", ".join(kind.roles)
            raise ConfigurationError(f"fault {fault}: the graph has no node {fault.role!r}; it has {nodes}")
    return made


# Event → the entry of the manifest that counts its runs, and the part of its detail by which it does.
_ENTRIES = {
    "error_in_state": ("errors_in_state", "key"),
    "output_not_set": ("outputs_not_set", "key"),
    "answer_made_up": ("made_up_answers", "of"),
    "loop_blocked": ("loops_blocked", "line"),
}


def not_exercised(parts: Mapping[str, Sequence[str]], events: pd.DataFrame, calls: pd.DataFrame) -> dict[str, Any]:
    """Return what of a user's graph no run came to, and what failed, as entries of the manifest.

    never_reached: the nodes and tools. no_model_calls: True if no run called a model. loops_blocked: line of code that
    blocked the event loop past the deadline → runs that the caller left so. errors_in_state: key of the graph's state →
    runs at whose end it held an error. outputs_not_set: key of its declared output → runs at whose end it had no value.
    made_up_answers: what the simulated services do not have, or had to guess the shape of, as its kind and its name →
    runs in which they were asked for it. failed_calls: how many requests there were, how many failed otherwise than by
    the deadline, and the node that sent most of these. An entry without anything in it is left out.

    parts: the names of its nodes and tools, as a `WorkloadKind` has them; empty for what is no user's graph.
    """
    without = _failed_calls(calls)
    if events.empty or not parts:
        return without
    if not (calls["kind"].astype("str") == "llm").any():
        without["no_model_calls"] = True
    names = events["event"].astype("str")
    details = events.loc[names == "tool_started", "detail"].map(json.loads)
    started = events.loc[names == "node_started", "detail"].map(json.loads)
    reached = {
        # A node within another is "outer/inner"; its role is not its name, since it lacks "_agent" at the end.
        "nodes": {str(detail["node"]).partition("/")[0] for detail in started},
        "tools": {str(detail["tool"]) for detail in details},
    }
    missing = {kind: [name for name in all_names if name not in reached[kind]] for kind, all_names in parts.items()}
    for event, (entry, key) in _ENTRIES.items():
        noted = events.loc[names == event, ["run_id", "detail"]].drop_duplicates()
        if len(noted):
            without[entry] = dict(Counter(str(json.loads(detail)[key]) for detail in noted["detail"]))
    return without | ({"never_reached": missing} if any(missing.values()) else {})


def _failed_calls(calls: pd.DataFrame) -> dict[str, Any]:
    sent = calls[(calls["seen_from"].astype("str") == "client") & (calls["outcome"].astype("str") != "refused")]
    failed = sent[sent["outcome"].astype("str") == "error"]
    if failed.empty:
        return {}
    node = str(failed["role"].astype("str").value_counts().index[0])
    return {"failed_calls": {"requests": len(sent), "failed": len(failed), "node": node}}
