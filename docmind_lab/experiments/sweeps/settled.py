"""A study over a recording, or of a graph of one's own: the fields that it settles, and what remains to sweep.

    replay = "monday"                   # the folder of a recording, beside `repeats`

    [factors]
    alternative = ["A", "C"]
    decision_timeout_s = [5, 10, 20]

Swept may be what a replay may have otherwise than it was recorded: alternatives, whether the deadline is propagated,
decision timeouts, second budgets and retries. What is left out is as it was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.own_graph import own_names, require_own_world
from docmind_lab.experiments.comparison.replays import (
    has_own_documents,
    replayed_comparison,
    require_replayable,
    without_live_endpoints,
)
from docmind_lab.experiments.nouns import Agent, DocMind, Graph, OwnSystem, system_of_kind
from docmind_lab.experiments.recordings.replay import open_recording
from docmind_lab.experiments.sweeps.factors import FIELDS
from docmind_lab.experiments.world import World
from docmind_lab.systems.base.workload_kind import OWN_PREFIX
from docmind_lab.systems.kinds import WORKLOADS
from docmind_lab.systems.own import OwnGraph
from docmind_lab.tables.traces.importers.recordings import Recording

OWN_FIELDS: Final = ("graph", "agent", "inputs", "deadline_key", "context", "config", "store", "resume", "endpoints")
"""Fields of a study that are of a graph of one's own, as `compare` takes them."""

_NOT_OF_A_GRAPH: Final = ("workload", "router_injection", "node_mode", "retries", "adoption")

SETTLED_FACTORS: Final = (
    "router_injection",
    "latency_profile",
    "fault",
    "stops_on_disconnect",
    "server_behaviour",
    "adoption",
    "node_mode",
    "workload",
    "clock",
)
"""Factors that a recording has settled."""

_SETTLED_FIELDS: Final = (
    "seed",
    "horizon_factor",
    "side_by_side",
    "cpu_charge",
    "model_variation",
    "model_under_pressure",
)
_DOCUMENTS: Final = ("documents", "questions")
# What the design in a manifest calls a field.
_DESIGN_KEYS: Final = {"documents": "corpus"}


def names_own_graph(values: Mapping[str, Any]) -> bool:
    """Whether the values of a study name a graph or an agent of one's own."""
    return values.get("graph") is not None or values.get("agent") is not None


def own_system_of(values: Mapping[str, Any]) -> OwnSystem:
    """Return the graph or the agent that a study is of, with its inputs.

    Raises: ConfigurationError for an unusable graph or inputs, and for a field that is of the lab's systems.
    """
    if values.get("inputs") is None:
        raise ConfigurationError('graph without inputs: name both, such as inputs = "inputs.jsonl"')
    for name in _NOT_OF_A_GRAPH:
        if name in values.get("factors", {}):
            raise ConfigurationError(
                f"factors.{name}: it is of the lab's own systems, and a graph of your own has none; leave it out"
            )
    for name in ("documents", "questions", "model_variation"):
        if values.get(name):
            raise ConfigurationError(f"{name}: it is of the lab's own systems; a graph of your own has inputs")
    given = {name: values[name] for name in OWN_FIELDS if name != "endpoints" and values.get(name) is not None}
    return Agent(**given) if "agent" in given else Graph(**given)


def names_in(values: Mapping[str, Any]) -> OwnGraph:
    """Return the names that the graph and the inputs of a study are registered under. Raises: as `own_system_of`."""
    system = own_system_of(values)
    require_own_world(system, World(), "virtual", Settings())
    return own_names(system, "simulated", values.get("endpoints"))


def with_own_graph(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study with its graph as the workload, and its inputs in place of documents."""
    if values.get("replay") is not None:
        return dict(values)  # both stand there already, since the recording names them too
    own = names_in(values)
    factors = {**values.get("factors", {}), "workload": own.workload}
    return {"side_by_side": 1} | dict(values) | {"documents": own.corpus, "factors": factors}


def recording_in(folder: str) -> Recording:
    """Read the recording in a folder. Raises: RecordError for a folder without one."""
    # As a worker finds it, wherever it was started.
    return open_recording(str(Path(folder).resolve()))


def complete_values(values: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Add to the values of a study's design those that its recording fixes or has a default for.

    Raises: ConfigurationError naming a field that is settled and was given; RecordError for a folder without one.
    """
    folder = values["replay"]
    if not isinstance(folder, str) or not folder:
        raise ConfigurationError(f"replay: must be the folder of a recording, not {folder!r}")
    recording = recording_in(folder)
    design = recording.design
    is_own = names_own_graph(values)
    if str(design["workload"]).startswith(OWN_PREFIX) and not is_own:
        raise ConfigurationError(
            f"replay: {folder} was recorded of a graph of your own: name it and its inputs again (graph = ..., "
            "inputs = ...)"
        )
    own = names_in(values) if is_own else None
    factors = values.get("factors", {})
    given = [f"factors.{name}" for name in SETTLED_FACTORS if name in factors]
    workload = DocMind.kind
    if "factors.workload" in given and factors["workload"] in (design["workload"], [design["workload"]]):
        # Another's workload is imported only if the study's author names it too.
        workload = str(design["workload"])
        if workload not in WORKLOADS:
            given.remove("factors.workload")
    fields = _SETTLED_FIELDS if own or has_own_documents(design) else (*_SETTLED_FIELDS, *_DOCUMENTS)
    given += [name for name in fields if name in values]
    if given:
        raise ConfigurationError(
            f"{', '.join(given)}: the recording in {folder} has settled it; leave it out of a study with replay, which "
            "sweeps alternative, deadline_propagation, decision_timeout_s, retries and budget_*"
        )
    named = {name: values[name] for name in _DOCUMENTS if name in values}
    if own is not None:
        named = {"documents": own.corpus}
    system = own_system_of(values) if own is not None else system_of_kind(workload, **named)
    recorded = replayed_comparison(recording, system, settings, own=own)
    require_replayable(recorded, recording, Path(folder), without_live_endpoints(settings))
    known: dict[str, Any] = {
        "alternative": list(recorded.alternatives),
        "decision_timeout_s": recorded.decision_timeout_s,
    }
    price: dict[str, Any] = {}
    if "price" not in values and not FIELDS.keys() & factors.keys():
        # As a comparison that replays: others take the place of all that were recorded.
        limits = {name: recorded.budget.limit(kind) for name, kind in FIELDS.items()}
        known |= {name: limit for name, limit in limits.items() if limit is not None}
        price = {} if recorded.budget.price is None else {"price": recorded.budget.price.written}
    settled = {name: design[key] for name in fields if (key := _DESIGN_KEYS.get(name, name)) in design}
    swept = known | dict(factors) | {"workload": recorded.workload}
    return {"repeats": recorded.runs} | price | dict(values) | named | settled | {"factors": swept}
