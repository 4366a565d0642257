"""The combinations that follow from a design, and those that are impossible."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives, require_no_roles
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_seconds, require_share
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.own_graph import faults_in
from docmind_lab.experiments.sweeps.factors import (
    StudyFields,
    alternatives_of,
    behaviours_of,
    profile_of,
    values_of,
)
from docmind_lab.services.faults import Fault
from docmind_lab.systems.base.node_modes import NodeMode, checked_node_mode
from docmind_lab.systems.workload_by_name import workload_kind


class Impossible(Exception):
    """A combination of levels cannot run; the text says why."""


@dataclass(frozen=True)
class SweepPlan:
    """The combinations of a design. left_out: why each impossible combination was left out.

    combinations: each is a comparison with a single alternative, of one level of each factor.
    """

    combinations: tuple[Comparison, ...]
    left_out: tuple[str, ...]


def plan_of(study: StudyFields) -> SweepPlan:
    """Return the combinations of a study, each once. Raises: ConfigurationError for an unusable level."""
    possible: dict[tuple[object, ...], Comparison] = {}
    left_out: dict[str, None] = {}
    levels = _levels(study)
    for values in itertools.product(*levels.values()):
        try:
            combination = _combination(study, dict(zip(levels, values, strict=True)))
        except Impossible as reason:
            left_out[str(reason)] = None
        else:
            # "own" and what an alternative does by itself are one combination.
            possible.setdefault(_facts_of(combination), combination)
    if not possible:
        raise ConfigurationError(f"factors: no combination can be run: {'; '.join(left_out)}")
    return SweepPlan(tuple(possible.values()), tuple(left_out))


def _facts_of(combination: Comparison) -> tuple[object, ...]:
    """Return what the tables hold of a combination: the same for equal levels, however they are written."""
    # Of one run: the others have the same, but for their questions.
    facts = vars(dataclasses.replace(combination, runs=1).orders()[0].facts)
    return tuple((name, value) for name, value in facts.items() if name not in ("study_id", "run_id"))


def _levels(study: StudyFields) -> dict[str, Sequence[Any]]:
    """Return the values of each factor by the field of a comparison that they are for, or else by the factor.

    The arms vary fastest; what costs a worker a new system varies slowest.
    """
    factors = study.factors
    kinds = values_of("workload", study.workloads, workload_kind)
    alternatives = alternatives_of(factors)
    if study.own is not None:
        values_of("alternative", [alternatives], require_no_roles)

    def faults_of(level: str) -> tuple[Fault, ...]:
        return faults_in(kinds[0], level.split("+"), is_own=study.own is not None)

    in_seconds = functools.partial(require_seconds, "decision timeout")
    return {
        "clock": factors.clock,
        "workload": study.workloads,
        "router_injection": factors.router_injection,
        "node_mode": factors.node_mode,
        "client_retries": [None if tries == "own" else tries for tries in factors.retries],
        "profile": values_of("latency_profile", factors.latency_profile, profile_of),
        "faults": values_of("fault", factors.fault, faults_of),
        "server_behaviour": behaviours_of(factors),
        "adoption": values_of("adoption", factors.adoption, functools.partial(require_share, "adoption", of="hops")),
        "decision_timeout_s": values_of("decision_timeout_s", factors.decision_timeout_s, in_seconds),
        "budget": [study.budget],
        "propagation": factors.deadline_propagation,
        "alternative": alternatives,
    }


def _combination(study: StudyFields, level: dict[str, Any]) -> Comparison:
    """Return the combination of these levels, as `_levels` has them. Raises: Impossible."""
    arm = _with_propagation(level.pop("alternative"), level.pop("propagation"))
    level["node_mode"] = _node_mode(arm, level["node_mode"])
    workload, adoption, tries = level["workload"], level["adoption"], level["client_retries"]
    if adoption and not workload_kind(workload).has_hops:
        raise Impossible(f"{workload} with adoption={adoption:g}: it calls no services that could adopt a deadline")
    simulation = study.world.simulation | ({"cpu_charge": 0.0} if level["clock"] == "wall" else {})
    return Comparison(
        **level,
        runs=study.repeats,
        seed=study.seed,
        alternatives=parse_alternatives([arm], tries, budgeted_retries=Settings().agents.max_retries),
        horizon_factor=study.horizon_factor,
        side_by_side=study.side_by_side,
        documents=study.library,
        **simulation,
    )


def _with_propagation(alternative: Alternative, level: bool | Literal["own"]) -> Alternative:
    if level == "own" or alternative.propagates == level:
        return alternative
    if not isinstance(alternative, Propagation):
        raise Impossible(f"{alternative.name} with deadline_propagation={str(level).lower()}: it has no such option")
    dataclass_of_it: Any = alternative
    changed: Alternative = dataclasses.replace(dataclass_of_it, propagate=level)
    return changed


def _node_mode(alternative: Alternative, level: str) -> NodeMode:
    """Return the mode to build the system's nodes in for this level. Raises: Impossible."""
    if level in ("own", alternative.node_mode):
        return "own"
    if alternative.node_mode == "sync":
        raise Impossible(f"{alternative.name} with node_mode={level}: it runs sync nodes")
    return checked_node_mode(level)
