"""A comparison of a user's own graph, and the options that apply to one."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.request import OF_A_GRAPH, CompareRequest
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.services.faults import Fault
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.own import OwnGraph, Services, own_graph
from docmind_lab.systems.own.agents import agent_graph, load_agent
from docmind_lab.systems.own.programs import own_program
from docmind_lab.systems.own.references import AGENT_PREFIX

_EVERY_ROLE = "*"


def of_own_graph(request: CompareRequest, settings: Settings, clock: ClockName) -> CompareRequest:
    """Return the request with the user's graph and inputs replaced by the names that they are registered under.

    Raises: ConfigurationError for options that a user's graph cannot have, and for an unusable graph or inputs.
    """
    others = request.given("workload", "documents", "questions", "retries")
    others += ["router_injection"] if request.router_injection else []
    _require_own_only(settings, clock, request.services, others)
    if request.command is not None:
        own = _program_of(request, clock)
    else:
        own = _graph_of_names(request, request.graph if request.agent is None else _graph_of_agent(request))
    return dataclasses.replace(request, workload=own.workload, documents=own.corpus)


def _graph_of_agent(request: CompareRequest) -> Any:
    """Return the graph that runs the agent, or its reference. Raises: ConfigurationError for what an agent has not."""
    for name in request.given("graph", *OF_A_GRAPH):
        raise ConfigurationError(f"{name} is for a LangGraph graph, and agent names an agent; leave {name} out")
    if request.inputs is None:
        raise ConfigurationError("agent without inputs: name both, --agent and --inputs (agent=..., inputs=...)")
    if isinstance(request.agent, str):
        return f"{AGENT_PREFIX}{request.agent}"
    return agent_graph(load_agent(request.agent))


def _program_of(request: CompareRequest, clock: ClockName) -> OwnGraph:
    """Return the names of a program and its questions. Raises: ConfigurationError for what a program has not."""
    others = request.given("graph", "agent", *OF_A_GRAPH, "endpoints")
    others += ["record"] if request.recording.is_live or request.recording.replay is not None else []
    for name in others:
        raise ConfigurationError(f"{name} is not for a program, which command names; leave {name} out")
    if clock == "virtual":
        raise ConfigurationError("command: another process runs in real time; use the wall clock (--clock wall)")
    if request.services == "own":
        raise ConfigurationError(
            "services='own': what a program sends to its own endpoints can be neither seen nor limited; leave services "
            "out, and simulated services answer it"
        )
    if request.inputs is None:
        raise ConfigurationError("command without inputs: name both, --command and --inputs (command=..., inputs=...)")
    return own_program(request.command or "", request.inputs)


def _graph_of_names(request: CompareRequest, graph: Any) -> OwnGraph:
    inputs = request.inputs
    if graph is None and inputs is None:
        raise ConfigurationError(
            "context, config, store, resume, endpoints, services and enforced are for a graph of your own: name it, "
            "and its inputs (--graph and --inputs)"
        )
    if graph is None or inputs is None:
        absent, there = ("graph", "inputs") if graph is None else ("inputs", "graph")
        raise ConfigurationError(f"{there} without {absent}: name both, --graph and --inputs (graph=..., inputs=...)")
    named = ("deadline_key", "services", "context", "config", "store", "resume", "endpoints")
    return own_graph(graph, inputs, **{name: getattr(request, name) for name in named})


def _require_own_only(settings: Settings, clock: ClockName, services: Services, given: Iterable[str]) -> None:
    """Return if no option is given that only the lab's own systems have. given: names of such options."""
    if services == "own" and clock == "virtual":
        raise ConfigurationError(
            "services='own': what answers in real time is not reached in virtual time; use the wall clock "
            "(--clock wall), or leave services out"
        )
    for name in given:
        raise ConfigurationError(f"{name} is for the lab's own systems; a graph of your own has none, so leave it out")
    if name := live_endpoint_of(settings):
        raise ConfigurationError(
            f"{name} names an endpoint of the lab's own systems; a graph of your own names its own: leave the setting "
            "out, and use services='own' (--services own) for live endpoints"
        )


def faults_in(kind: WorkloadKind, faults: Iterable[str | Fault]) -> tuple[Fault, ...]:
    """Return the faults for a user's graph, whose roles are its nodes; a text without a role strikes every call.

    Raises: ConfigurationError for a role that is no node of the graph.
    """
    parsed = (Fault.parse(fault, _EVERY_ROLE) if isinstance(fault, str) else fault for fault in faults)
    made = tuple(fault for fault in parsed if fault.kind != "none")
    for fault in made:
        if fault.role not in (_EVERY_ROLE, *kind.roles):
            known = ", ".join(kind.roles)
            raise ConfigurationError(f"fault {fault}: the graph has no node {fault.role!r}; it has {known}")
    return made


def require_whole_budget(alternatives: Iterable[Alternative]) -> None:
    """Return if no alternative needs the lab's own roles or calls, which a user's graph does not have.

    Raises: ConfigurationError naming the one that does.
    """
    for alternative in alternatives:
        policy = getattr(alternative, "policy", None)
        if policy is not None and policy.policies.text:
            raise ConfigurationError(
                f"{alternative.name}+{policy.policies.text}: these policies are for the model calls of the lab's own "
                "roles, and none of a graph of your own goes through them; leave them out"
            )
        if policy is not None and (policy.allocation is not None or policy.reserve_s):
            raise ConfigurationError(
                f"{alternative.name} {options_json(alternative)}: a budget is divided over the lab's own roles, which "
                "a graph of your own does not have; leave allocation and reserve_s out"
            )


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
