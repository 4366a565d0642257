"""The cells of a study: runs that one worker computes and one file holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell
from docmind_lab.experiments.batch.cells import RUNS_PER_CELL, Simulated, cells_of
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.replays import without_live_endpoints
from docmind_lab.experiments.comparison.run import check_settings
from docmind_lab.experiments.comparison.virtual import replaying, require_simulated, simulated
from docmind_lab.experiments.comparison.wall import has_server_log
from docmind_lab.experiments.measurement.run import RunOrder
from docmind_lab.experiments.sweeps.design import StudyDesign


@dataclass(frozen=True)
class SweepBench:
    """Cells that need the same services. comparison: one of the comparisons in them; they share its clock."""

    comparison: Comparison
    settings: Settings
    cells: tuple[Cell, ...]


def benches_of(design: StudyDesign, settings: Settings) -> list[SweepBench]:
    """Group every run of the study into cells by the services they need, in an order fixed by the design.

    Within a bench the repeats go round the combinations, so that a study that is stopped has some of each; on the wall
    clock the order is drawn, so that a drift of the machine strikes no alternative alone.
    Raises: ConfigurationError for settings that cannot be used with the design.
    """
    replay = None if design.replay is None else Path(design.replay)
    if replay is not None:
        settings = without_live_endpoints(settings)
    grouped: dict[tuple[str, Simulated], list[tuple[Comparison, int, RunOrder]]] = {}
    for number, combination in enumerate(design.plan.combinations):
        comparison = combination.comparison
        own = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
        check_settings(comparison, own)
        if comparison.clock == "virtual":
            require_simulated(own)
        orders = combination.orders(
            design.study_id, number, has_server_log=comparison.clock == "virtual" or has_server_log(own)
        )
        bench = grouped.setdefault((comparison.clock, replaying(simulated(comparison, own), replay)), [])
        bench += [(comparison, repeat, order) for repeat, order in enumerate(orders)]
    return list(_benches(design, grouped))


def _benches(
    design: StudyDesign, grouped: dict[tuple[str, Simulated], list[tuple[Comparison, int, RunOrder]]]
) -> Iterator[SweepBench]:
    numbers = itertools.count()
    for (clock, system), members in grouped.items():
        if clock == "wall":
            members.sort(key=lambda member: keyed_uniform(design.seed, "order", member[2].facts.run_id))
        else:
            members.sort(key=lambda member: member[1])
        orders = [order for _, _, order in members]
        cells = cells_of(orders, system, RUNS_PER_CELL, prefix=f"{next(numbers):02}-")
        yield SweepBench(members[0][0], system.settings, tuple(cells))
