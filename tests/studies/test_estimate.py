"""What a study will take: from runs that really ran."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.experiments.sweeps.estimate import _choose, estimate
from docmind_lab.experiments.sweeps.runner import benches_of, sweep

SMALL = {"documents": "handbook", "repeats": 30, "factors": {"alternative": "A,B", "decision_timeout_s": [5, 20]}}


def pilot_of(values: dict[str, object]) -> list[tuple[str, float]]:
    cells = [cell for bench in benches_of(StudyDesign.of(values), Settings()) for cell in bench.cells]
    return [(o.facts.alternative, o.facts.decision_timeout_s) for chosen in _choose(cells) for o, _ in chosen]


def test_an_estimate_is_of_a_pilot_that_ran() -> None:
    found = estimate(StudyDesign.of(SMALL), Settings(), workers=2)
    assert (found.runs, found.cells, found.cores) == (120, 12, 2)
    assert found.seconds > 0
    assert found.bytes is not None
    assert 12 * 5_000 < found.bytes < 12 * 1_000_000
    text = r"about \d+ (s|minutes) on 2 cores, \d+ (kB|MB) \(from a pilot of 6 runs\)"
    assert re.fullmatch(text, str(found))


def test_a_pilot_has_a_run_of_each_arm_and_goes_over_the_budgets() -> None:
    chosen = pilot_of({**SMALL, "factors": {"alternative": "A,B,C,D", "decision_timeout_s": [5, 10, 20]}})
    assert len(chosen) == 6
    assert {arm for arm, _ in chosen} == {"cooperative", "hard_timeout", "async_cancellation", "stop_flag"}
    assert {budget_s for _, budget_s in chosen} == {5.0, 10.0, 20.0}


def test_a_pilot_is_no_longer_than_the_study_or_twelve_runs() -> None:
    assert len(pilot_of({"repeats": 1, "factors": {"alternative": "A,B"}})) == 2
    every = [
        "A",
        "A:per_read",
        "A:equal",
        "A:reserve_first",
        "A:unpropagated",
        "B",
        "B:drain",
        "B:naive",
        "C",
        "D",
        "E",
        "F",
    ]
    assert len(pilot_of({"repeats": 2, "factors": {"alternative": [*every, "D:interrupt", "F:per_step"]}})) == 12


def test_runs_on_the_wall_clock_have_a_bound_by_their_horizons() -> None:
    design = {
        "documents": "handbook",
        "repeats": 4,
        "side_by_side": 4,
        "factors": {"clock": "wall", "alternative": "A"},
    }
    found = estimate(StudyDesign.of(design), Settings())
    assert found.is_bound
    # One cell of four runs side by side: once 5 × 20 s, and what begins and ends it.
    assert 100 <= found.seconds <= 110
    assert str(found).startswith("at most 2 minutes, ")


def test_live_endpoints_leave_the_size_unknown() -> None:
    settings = Settings(llm={"base_url": "http://127.0.0.1:1/v1"})  # type: ignore[arg-type]
    design = {"documents": "handbook", "repeats": 4, "factors": {"clock": "wall", "alternative": "A"}}
    found = estimate(StudyDesign.of(design), settings)
    assert found.bytes is None
    assert "without a pilot" in str(found)
    with pytest.raises(ConfigurationError, match="live endpoint"):
        estimate(StudyDesign.of(SMALL), settings)


@pytest.mark.full
def test_an_estimate_is_within_a_factor_of_two_of_a_small_study(tmp_path: Path) -> None:
    found = estimate(StudyDesign.of(SMALL), Settings(), workers=1)
    begun, sizes = time.process_time(), []
    # The same work in this process; on a shared machine only CPU time tells what it took.
    from docmind_lab.experiments.batch.workers import InThisProcess

    def look(done: int, total: int) -> None:
        sizes.append(sum(path.stat().st_size for path in (tmp_path / "cells").glob("*.parquet")))

    sweep(SMALL, out=tmp_path, executor=InThisProcess(), progress=look)
    took_s = time.process_time() - begun
    assert took_s / 2 < found.seconds < took_s * 2
    assert found.bytes is not None
    assert max(sizes) / 2 < found.bytes < max(sizes) * 2
