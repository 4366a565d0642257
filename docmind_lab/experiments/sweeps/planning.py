"""The combinations that follow from a design, and those that cannot be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.request import DEFAULT_WORKLOAD, CompareRequest
from docmind_lab.experiments.sweeps.combinations import Combination, Impossible, with_node_mode, with_propagation
from docmind_lab.experiments.sweeps.factors import alternatives_of, budgets_of, faults_of, naming, profiles_of
from docmind_lab.experiments.sweeps.replays import replayed
from docmind_lab.workloads.kinds import WORKLOADS, workload_kind

if TYPE_CHECKING:
    from docmind_lab.experiments.sweeps.design import StudyDesign


@dataclass(frozen=True)
class Planned:
    """The combinations of a design. left_out: those that cannot be, each with its reason."""

    combinations: tuple[Combination, ...]
    left_out: tuple[str, ...]


def planned(design: StudyDesign) -> Planned:
    """The combinations of the design, each once. Raises: ConfigurationError for a level that cannot be used."""
    found: dict[tuple[object, ...], Combination] = {}
    left_out: list[str] = []
    for combination in _combinations(design):
        if isinstance(combination, Impossible):
            left_out.append(combination.reason)
        else:
            # "own" and what an alternative does by itself are one combination.
            found.setdefault(combination.key, combination)
    if not found:
        raise ConfigurationError(f"factors: no combination can be run: {'; '.join(dict.fromkeys(left_out))}")
    return Planned(tuple(found.values()), tuple(dict.fromkeys(left_out)))


def _combinations(design: StudyDesign) -> Iterator[Combination | Impossible]:
    factors = design.factors
    with naming("workload"):
        for workload in factors.workload:
            workload_kind(workload)
    with naming("decision_timeout_s"):
        for level_s in factors.decision_timeout_s:
            require_seconds("decision timeout", level_s)
    # The budgets vary fastest but for the arms, and what costs a worker a new system varies slowest.
    for (
        (clock, workload),
        injection,
        colour,
        retries,
        profile,
        fault,
        stops,
        (timeout_s, budget),
        propagation,
        alternative,
    ) in itertools.product(
        list(itertools.product(factors.clock, factors.workload)),
        factors.router_injection,
        factors.node_colour,
        factors.retries,
        profiles_of(factors),
        faults_of(factors),
        factors.stops_on_disconnect,
        list(itertools.product(factors.decision_timeout_s, budgets_of(factors, design.price))),
        factors.deadline_propagation,
        alternatives_of(factors),
    ):
        chosen = with_propagation(alternative, propagation)
        node_colour = with_node_mode(alternative, colour)
        if isinstance(chosen, Impossible):
            yield chosen
            continue
        if isinstance(node_colour, Impossible):
            yield node_colour
            continue
        tries = None if retries == "own" else retries
        if design.replay is not None:
            again = DEFAULT_WORKLOAD if workload in WORKLOADS else workload
            request = CompareRequest(
                timeout_s,
                design.repeats,
                alternatives=[chosen],
                retries=tries,
                budget=budget,
                workload=again,
                cpu_charge=design.cpu_charge,
                model_variation=design.model_variation,
            )
            yield Combination(replayed(design.replay, request, design.documents, design.questions))
            continue
        yield Combination(
            Comparison(
                decision_timeout_s=timeout_s,
                runs=design.repeats,
                seed=design.seed,
                alternatives=parse_alternatives([chosen], tries, budgeted_retries=Settings().agents.max_retries),
                profile=profile,
                faults=fault,
                stops_on_disconnect=stops,
                client_retries=tries,
                horizon_factor=design.horizon_factor,
                side_by_side=design.side_by_side,
                router_injection=injection,
                clock=clock,
                corpus=design.library.corpus,
                own_questions=design.library.questions,
                node_colour=node_colour,
                workload=workload,
                budget=budget,
                cpu_charge=design.cpu_charge if clock == "virtual" else 0.0,
                model_variation=design.model_variation,
            )
        )
