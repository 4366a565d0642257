"""The combinations that follow from a design, and those that are impossible."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.names import parse_alternatives, with_policies
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.budgets import Budget
from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.own_graph import faults_in, require_whole_budget
from docmind_lab.experiments.comparison.replays import has_own_documents, replayed_comparison
from docmind_lab.experiments.measurement.run import RunOrder
from docmind_lab.experiments.nouns import DocMind, LabSystem, System, system_of_kind
from docmind_lab.experiments.sweeps.factors import (
    alternatives_of,
    behaviours_of,
    budgets_of,
    faults_of,
    naming_factor,
    policies_of,
    profiles_of,
)
from docmind_lab.experiments.sweeps.settled import own_system_of, recording_in
from docmind_lab.services.hops import checked_adoption
from docmind_lab.systems.docmind.graphs.node_modes import NodeMode, checked_node_mode
from docmind_lab.systems.kinds import WORKLOADS, workload_kind
from docmind_lab.systems.own import OwnGraph


@dataclass(frozen=True)
class Combination:
    """One level of each factor: a comparison with a single alternative."""

    comparison: Comparison

    @property
    def key(self) -> tuple[object, ...]:
        """Key that is equal for equal levels, however they are written: the facts that the tables hold."""
        # Of one run: the others have the same, but for their questions.
        facts = vars(dataclasses.replace(self.comparison, runs=1).orders()[0].facts)
        return tuple((name, value) for name, value in facts.items() if name not in ("study_id", "run_id"))

    @property
    def alternative(self) -> Alternative:
        """The only alternative of the comparison."""
        return self.comparison.alternatives[0]

    def orders(self, study_id: str, number: int, *, has_server_log: bool = True) -> list[RunOrder]:
        """Return the runs, repeat by repeat. number: of the combination in its study."""
        orders = self.comparison.orders_of(0, f"{study_id}-{number:04}", has_server_log=has_server_log)
        return [
            dataclasses.replace(order, facts=dataclasses.replace(order.facts, study_id=study_id)) for order in orders
        ]


class Impossible(Exception):
    """A combination of levels cannot run; the text says why."""


def _with_propagation(alternative: Alternative, level: bool | Literal["own"]) -> Alternative:
    if level == "own" or alternative.propagates == level:
        return alternative
    if not isinstance(alternative, Propagation):
        raise Impossible(f"{alternative.name} with deadline_propagation={str(level).lower()}: it has no such option")
    dataclass_of_it: Any = alternative
    changed: Alternative = dataclasses.replace(dataclass_of_it, propagate=level)
    return changed


def _with_policies(alternative: Alternative, policies: TimePolicies) -> Alternative:
    if not policies.text:
        return alternative
    try:
        return with_policies(alternative, policies)
    except ConfigurationError as error:
        raise Impossible(str(error)) from error


def _node_mode(alternative: Alternative, level: str) -> NodeMode:
    """Return the mode to build the system's nodes in for this level. Raises: Impossible."""
    if level in ("own", alternative.node_mode):
        return "own"
    if alternative.node_mode == "sync":
        raise Impossible(f"{alternative.name} with node_mode={level}: it runs sync nodes")
    return checked_node_mode(level)


if TYPE_CHECKING:
    from docmind_lab.experiments.sweeps.design import StudyDesign


@dataclass(frozen=True)
class SweepPlan:
    """The combinations of a design. left_out: why each impossible combination was left out."""

    combinations: tuple[Combination, ...]
    left_out: tuple[str, ...]


def plan_of(design: StudyDesign) -> SweepPlan:
    """Return the combinations of the design, each once. Raises: ConfigurationError for an unusable level."""
    found: dict[tuple[object, ...], Combination] = {}
    left_out: list[str] = []
    for combination in _combinations(design):
        if isinstance(combination, Impossible):
            left_out.append(str(combination))
        else:
            # "own" and what an alternative does by itself are one combination.
            found.setdefault(combination.key, combination)
    if not found:
        raise ConfigurationError(f"factors: no combination can be run: {'; '.join(dict.fromkeys(left_out))}")
    return SweepPlan(tuple(found.values()), tuple(dict.fromkeys(left_out)))


def _combinations(design: StudyDesign) -> Iterator[Combination | Impossible]:
    factors = design.factors
    with naming_factor("workload"):
        for workload in factors.workload:
            workload_kind(workload)
    with naming_factor("adoption"):
        for share in factors.adoption:
            checked_adoption(share)
    with naming_factor("decision_timeout_s"):
        for level_s in factors.decision_timeout_s:
            require_seconds("decision timeout", level_s)
    kinds = [workload_kind(name) for name in factors.workload]
    faults = faults_of(factors)
    if design.is_of_own_graph:
        with naming_factor("fault"):
            faults = [faults_in(kinds[0], level.split("+"), is_own=True) for level in factors.fault]
        with naming_factor("alternative"):
            require_whole_budget(alternatives_of(factors))
    # The budgets vary fastest but for the arms, and what costs a worker a new system varies slowest.
    for (
        (clock, workload),
        injection,
        mode,
        retries,
        profile,
        fault,
        ((stops, behaviour), adoption),
        (timeout_s, budget),
        (propagation, policies, alternative),
    ) in itertools.product(
        itertools.product(factors.clock, factors.workload),
        factors.router_injection,
        factors.node_mode,
        factors.retries,
        profiles_of(factors),
        faults,
        itertools.product(behaviours_of(factors), factors.adoption),
        itertools.product(factors.decision_timeout_s, budgets_of(factors, design.price)),
        itertools.product(factors.deadline_propagation, policies_of(factors), alternatives_of(factors)),
    ):
        try:
            arm = _with_policies(_with_propagation(alternative, propagation), policies)
            node_mode = _node_mode(arm, mode)
            if adoption and not workload_kind(workload).has_hops:
                raise Impossible(
                    f"{workload} with adoption={adoption:g}: it calls no services that could adopt a deadline"
                )
        except Impossible as reason:
            yield reason
            continue
        tries = None if retries == "own" else retries
        if design.replay is not None:
            yield _replayed(design, workload, arm, timeout_s, budget, tries)
            continue
        yield Combination(
            Comparison(
                decision_timeout_s=timeout_s,
                runs=design.repeats,
                seed=design.seed,
                alternatives=parse_alternatives([arm], tries, budgeted_retries=Settings().agents.max_retries),
                profile=profile,
                faults=fault,
                stops_on_disconnect=stops,
                server_behaviour=behaviour,
                adoption=adoption,
                client_retries=tries,
                horizon_factor=design.horizon_factor,
                side_by_side=design.side_by_side,
                router_injection=injection,
                clock=clock,
                documents=design.library,
                node_mode=node_mode,
                workload=workload,
                budget=budget,
                cpu_charge=design.cpu_charge if clock == "virtual" else 0.0,
                model_variation=design.model_variation,
                model_under_pressure=design.model_under_pressure,
            )
        )


def _replayed(
    design: StudyDesign,
    workload: str,
    alternative: Alternative,
    timeout_s: float,
    budget: Budget | None,
    retries: int | None,
) -> Combination:
    """Return the combination that plays the design's recording again."""
    assert design.replay is not None
    recording = recording_in(design.replay)
    own = OwnGraph(workload, design.documents, 0) if design.is_of_own_graph else None
    named = {"documents": design.documents, "questions": design.questions or None}
    if own is not None:
        system: System = own_system_of({**dict(design), "documents": "", "factors": {}})
    elif has_own_documents(recording.design):
        system = system_of_kind(workload, **named)
    else:
        system = DocMind() if workload in WORKLOADS else system_of_kind(workload)
    if isinstance(system, LabSystem):
        system = dataclasses.replace(system, retries=retries)
    return Combination(
        replayed_comparison(
            recording,
            dataclasses.replace(system, budget=budget),
            Settings(),
            own=own,
            decision_timeout_s=timeout_s,
            alternatives=[alternative],
            runs=design.repeats,
        )
    )
