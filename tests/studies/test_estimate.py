"""What a study will take: from runs that really ran."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.sweeps.estimate import estimate
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import sweep

SMALL = {"documents": "handbook", "repeats": 30, "factors": {"alternative": "A,B", "decision_timeout_s": [5, 20]}}


def test_an_estimate_is_of_a_pilot_that_ran() -> None:
    found = estimate(StudyDesign.of(SMALL), Settings(), workers=2)
    assert (found.runs, found.cells, found.cores) == (120, 12, 2)
    assert found.seconds > 0
    assert found.bytes is not None
    assert 12 * 5_000 < found.bytes < 12 * 1_000_000
    text = r"about \d+ (s|minutes) on 2 cores, \d+ (kB|MB) \(from a pilot of 4 runs\)"
    assert re.fullmatch(text, str(found))


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
