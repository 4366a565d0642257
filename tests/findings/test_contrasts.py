"""Every arm against one: paired by seed, corrected, and by the names that people use."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from golden import assert_golden
from made_up_findings import arm, table
from sample_runs import sample_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.contrasts import contrasts
from docmind_lab.findings.criteria import time_to_answer_s

LATE = {"outcome": "timed_out", "answered_in_time": False, "returned_at_s": 2.0, "source_recall": 0.0}


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
    a, b, d = (arm(level, 30) for level in ("cooperative", "hard_timeout", "stop_flag"))
    both_timeouts = [
        dataclasses.replace(run, decision_timeout_s=timeout_s, horizon_s=5 * timeout_s)
        for run in [*a, *(sample_run("hard_timeout", repeat, **(LATE if repeat < 6 else {})) for repeat in range(30))]
        for timeout_s in (2.0, 4.0)
    ]
    runs = {
        "half of them late": [*a, *late],
        "of twenty seeds": [*a, *b[10:]],
        "not over at the horizon": [*a, *arm("unguarded", 30, **UNFINISHED)],
        "what its server did is not known": [*a, *arm("hard_timeout", 30, busy_after_deadline_s=math.nan)],
        "several arms": [*a, *b, *d],
        # Holm over two equal p values of 1/32: the smaller is doubled, and the other is no smaller.
        "conditions are compared apart and corrected together": both_timeouts,
    }
    texts = {name: contrasts(table(*each), "A").to_csv(index=False, float_format="%.4g") for name, each in runs.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_time_without_an_answer_counts_until_the_deadline_whatever_became_of_the_run() -> None:
    """Studies 6: the mean is a restricted mean, over all runs."""
    changes = (
        {"returned_at_s": 0.5},
        {"returned_at_s": 3.0},
        {"outcome": "failed", "returned_at_s": 0.1},
        LATE,
        UNFINISHED,
    )
    runs = table(*(sample_run("cooperative", repeat, **each) for repeat, each in enumerate(changes)))
    assert time_to_answer_s(runs).tolist() == [0.5, 2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["B:naive", "hard_timeout:naive", "B  hard timeout (naive)"])
def test_the_reference_goes_by_a_variants_name_or_its_label(name: str) -> None:
    naive = arm("hard_timeout", 30, alternative_options='{"naive": true}')
    frame = contrasts(table(*arm("cooperative", 30), *arm("hard_timeout", 30), *naive), name)
    assert set(frame["reference"]) == {"B  hard timeout (naive)"}
    assert set(frame["arm"]) == {"A  cooperative", "B  hard timeout"}


def test_a_reference_and_a_measure_that_are_not_there_are_refused_with_those_that_are() -> None:
    runs = table(*arm("cooperative", 30), *arm("hard_timeout", 30))
    known = "no arm is called 'C'; name one of 'A cooperative' or 'B hard timeout'"
    with pytest.raises(ConfigurationError, match=known):
        contrasts(runs, "C")
    with pytest.raises(ConfigurationError, match="no measure is named 'speed'; there are answered_in_time"):
        contrasts(runs, "A", measures=("speed",))
