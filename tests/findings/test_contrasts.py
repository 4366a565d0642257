"""Every arm against one: paired by seed, corrected, and by the names that people use."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pandas as pd
import pytest
from golden import assert_golden
from sample_runs import sample_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.contrasts import MEASURES, contrasts
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.records import RunRecord


def runs_of(*records: RunRecord) -> pd.DataFrame:
    return to_frame("runs", records)


def thirty(alternative: str, **changes: object) -> list[RunRecord]:
    return [sample_run(alternative, repeat, **changes) for repeat in range(30)]


LATE = {"outcome": "timed_out", "answered_in_time": False, "returned_at_s": 2.0, "source_recall": 0.0}


def test_each_arm_is_compared_with_the_reference_in_every_measure() -> None:
    frame = contrasts(runs_of(*thirty("cooperative"), *thirty("hard_timeout"), *thirty("stop_flag")), "A")
    assert set(frame["reference"]) == {"A  cooperative"}
    assert set(zip(frame["arm"], frame["measure"], strict=True)) == {
        (arm, measure) for arm in ("B  hard timeout", "D  stop flag") for measure in MEASURES
    }


UNFINISHED = {
    "outcome": "unfinished",
    "answered_in_time": False,
    "returned_at_s": math.nan,
    "caller_overrun_s": math.nan,
}


def test_every_difference_is_the_one_that_was_read() -> None:
    """An arm minus the reference, over the seeds of both; an unfinished run with its horizon; not what is not known."""
    # B is late in every second run: half as many in time, and 0.25 s longer to an answer on average.
    late = [sample_run("hard_timeout", repeat, **(LATE if repeat % 2 else {})) for repeat in range(30)]
    others = {
        "half of them late": late,
        "of twenty seeds": thirty("hard_timeout")[10:],
        "not over at the horizon": thirty("unguarded", **UNFINISHED),
        "what its server did is not known": thirty("hard_timeout", busy_after_deadline_s=math.nan),
    }
    texts = {
        name: contrasts(runs_of(*thirty("cooperative"), *arm), "A").to_csv(index=False, float_format="%.4g")
        for name, arm in others.items()
    }
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_conditions_are_compared_apart_and_corrected_together() -> None:
    records = [
        dataclasses.replace(
            sample_run(level, repeat, **(LATE if level == "hard_timeout" and repeat < 6 else {})),
            decision_timeout_s=timeout_s,
            horizon_s=5 * timeout_s,
            run_id=f"{level}-{timeout_s}-{repeat}",
        )
        for level in ("cooperative", "hard_timeout")
        for timeout_s in (2.0, 4.0)
        for repeat in range(30)
    ]
    frame = contrasts(runs_of(*records), "A", measures=("answered_in_time",))
    assert list(frame["decision_timeout_s"]) == [2.0, 4.0]
    # Holm over two equal p values of 1/32: the smaller is doubled, and the other is no smaller.
    assert list(frame["p_value"]) == pytest.approx([1 / 32] * 2)
    assert list(frame["p_corrected"]) == pytest.approx([1 / 16] * 2)


@pytest.mark.parametrize("name", ["B:naive", "hard_timeout:naive", "B  hard timeout (naive)"])
def test_the_reference_goes_by_a_variants_name_or_its_label(name: str) -> None:
    naive = thirty("hard_timeout", alternative_options='{"naive": true}')
    renamed = [dataclasses.replace(run, run_id=f"naive-{run.run_id}") for run in naive]
    frame = contrasts(runs_of(*thirty("cooperative"), *thirty("hard_timeout"), *renamed), name)
    assert set(frame["reference"]) == {"B  hard timeout (naive)"}
    assert set(frame["arm"]) == {"A  cooperative", "B  hard timeout"}


def test_a_reference_that_was_not_run_is_refused_with_those_that_were() -> None:
    with pytest.raises(
        ConfigurationError, match="no arm is called 'C'; name one of 'A cooperative' or 'B hard timeout'"
    ):
        contrasts(runs_of(*thirty("cooperative"), *thirty("hard_timeout")), "C")


def test_an_unknown_measure_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="no measure is named 'speed'; there are answered_in_time"):
        contrasts(runs_of(*thirty("cooperative")), "A", measures=("speed",))
