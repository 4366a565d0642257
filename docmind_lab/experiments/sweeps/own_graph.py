"""A study of a graph or an agent of one's own: the fields that name it, and what it cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.own_graph import of_own_graph
from docmind_lab.experiments.comparison.request import CompareRequest

OWN_FIELDS: Final = ("graph", "agent", "inputs", "deadline_key", "context", "config", "store", "resume", "endpoints")
"""Fields of a study that are of a graph of one's own, as `compare` takes them."""

_NOT_OF_A_GRAPH: Final = ("workload", "router_injection", "node_mode", "retries", "adoption")


def names_own_graph(values: Mapping[str, Any]) -> bool:
    """Whether the values of a study name a graph or an agent of one's own."""
    return values.get("graph") is not None or values.get("agent") is not None


def own_graph_of(values: Mapping[str, Any]) -> CompareRequest:
    """Return the graph and the inputs of a study as a request, by the names that they are registered under.

    Args:
        values: Of the study's design.

    Raises:
        ConfigurationError: The graph or its inputs cannot be used, or a field is given that is of the lab's systems.
    """
    if values.get("inputs") is None:
        raise ConfigurationError('graph without inputs: name both, such as inputs = "inputs.jsonl"')
    factors = values.get("factors") or {}
    if isinstance(factors, Mapping):
        for name in _NOT_OF_A_GRAPH:
            if name in factors:
                raise ConfigurationError(
                    f"factors.{name}: it is of the lab's own systems, and a graph of your own has none; leave it out"
                )
    for name in ("documents", "questions", "model_variation"):
        if values.get(name):
            raise ConfigurationError(f"{name}: it is of the lab's own systems; a graph of your own has inputs")
    given = {name: values[name] for name in OWN_FIELDS if values.get(name) is not None}
    return of_own_graph(CompareRequest(**given), Settings(), "virtual")


def with_own_graph(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study with its graph as the workload, and its inputs in place of documents.

    Raises:
        ConfigurationError: As `own_graph_of`.
    """
    factors = values.get("factors") or {}
    if values.get("replay") is not None:
        return dict(values)  # both stand there already, since the recording names them too
    own = own_graph_of(values)
    made = {"side_by_side": 1} | dict(values) | {"documents": own.documents}
    return made | ({"factors": {**factors, "workload": own.workload}} if isinstance(factors, Mapping) else {})
