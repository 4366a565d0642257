"""A run that leaves virtual time costs its worker, and nothing else."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import cloudpickle
import pytest

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.base import Outcome, SyncOrAsync
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, Simulated, Workers, processes, run_cells
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.server import ServiceOptions


@dataclass(frozen=True)
class Spinning:
    """Computes for ever, which no virtual time can pass."""

    name: ClassVar[str] = "spinning"
    letter: ClassVar[str] = "?"
    propagates: ClassVar[bool] = False
    node_mode: ClassVar[SyncOrAsync] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Any, inputs: Any, deadline: Any, recorder: Any) -> Outcome:
        while True:
            pass


@pytest.mark.full
def test_a_stalled_run_is_named_its_worker_replaced_and_every_other_cell_computed() -> None:
    # The workers do not know this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    profile = LatencyProfile.named("typical")
    system = Simulated(Settings(), ServiceOptions(profile=profile), corpus="handbook")
    (order,) = Comparison(
        runs=1, alternatives=(Cooperative(),), profile=profile, documents=Documents("handbook")
    ).orders()
    cells = [
        Cell(f"{number:03}", (dataclasses.replace(order, alternative=Spinning()) if number == 1 else order,), system)
        for number in range(4)
    ]
    with Workers(processes(2)) as workers:
        results = {result.cell_id: result for result in run_cells(cells, workers)}
    assert set(results) == {"000", "001", "002", "003"}
    assert order.facts.run_id in str(results["001"].error)
    for cell_id in ("000", "002", "003"):
        assert [run.run.outcome for run in results[cell_id].measured] == ["answered"], cell_id
