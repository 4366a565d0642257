"""What changed between two studies: fields, effects with a known size, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import assert_golden
from sample_runs import MANIFEST, sample_run, study_of
from typer.testing import CliRunner

from docmind_lab.core.levels import NAN
from docmind_lab.findings.diff import StudyDiff, diff
from docmind_lab.findings.study import Study
from docmind_lab.tables.records import RunRecord
from docmind_lab.views.cli.app import app

Change = Callable[[int], dict[str, Any]]
LATE = {"outcome": "timed_out", "answered_in_time": False, "returned_at_s": 2.0}


def runs_of(level: str, repeats: range, change: Change = lambda repeat: {}, **all_of_them: Any) -> list[RunRecord]:
    return [sample_run(level, repeat, **{**all_of_them, **change(repeat)}) for repeat in repeats]


def study(*groups: list[RunRecord], **manifest: Any) -> Study:
    plain = study_of([run for group in groups for run in group])
    return Study(plain.runs, plain.calls, plain.events, {**MANIFEST, **manifest})


def late_every(number: int) -> Change:
    return lambda repeat: LATE if repeat % number == 0 else {}


@pytest.mark.parametrize(
    ("column", "worse"), [("caller_overrun_s", 1.0), ("busy_after_deadline_s", 1.0), ("source_recall", -0.5)]
)
def test_more_is_worse_or_better_as_the_measure_has_it(column: str, worse: float) -> None:
    draws = np.random.default_rng(1).normal(0, 0.05, 30)
    middle = 0.6

    def at(shift: float) -> Study:
        return study(runs_of("cooperative", range(30), lambda repeat: {column: middle + shift + draws[repeat] * shift}))

    assert diff(at(0), at(worse)).regressed
    assert not diff(at(worse), at(0)).regressed


FAILED = {
    "outcome": "failed",
    "stop_reason": "error",
    "answered_in_time": False,
    "returned_at_s": 0.1,
    "error_type": "ValueError",
    "error_node": "work",
}


LOST = {"outcome": "unfinished", "answered_in_time": False, "returned_at_s": NAN, "caller_overrun_s": NAN}
GOOD, WORSE = study(runs_of("cooperative", range(40), late_every(4))), study(runs_of("cooperative", range(40), **LATE))
BACK = study(runs_of("hard_timeout", range(20), **LATE, caller_overrun_s=0.5))
LATE_BY_A_SECOND = study(runs_of("cooperative", range(20), **LATE, caller_overrun_s=1.0))
BUDGETS = [runs_of("cooperative", range(5), decision_timeout_s=s, run_id=f"{s}") for s in (1.6, 2.0)]
FEW = runs_of("cooperative", range(3))
DIFFS = {
    "a study against itself": (GOOD, GOOD),
    "worse": (GOOD, WORSE),
    "less overrun of runs that failed is no gain": (
        LATE_BY_A_SECOND,
        study(runs_of("cooperative", range(20), **FAILED, caller_overrun_s=0.0)),
    ),
    "nor is that of runs that wait for a person": (
        LATE_BY_A_SECOND,
        study(runs_of("cooperative", range(20), **(FAILED | {"outcome": "interrupted", "error_type": ""}))),
    ),
    "an unfinished run counts with its horizon, a lower bound": (
        BACK,
        study(runs_of("hard_timeout", range(20), **LOST)),
    ),
    "work that went on at the horizon is a lower bound": (
        BACK,
        study(runs_of("hard_timeout", range(20), **LATE, busy_after_deadline_s=3.0, work_censored=True)),
    ),
    "conditions are matched by what varies within a study": (study(*BUDGETS), study(BUDGETS[1])),
    "what differs as a whole is a field, and arms are compared across it": (
        study(runs_of("cooperative", range(5), latency_profile="typical/6")),
        study(runs_of("cooperative", range(5), latency_profile="fast", decision_timeout_s=1.6)),
    ),
    "settings and versions are compared field by field": (
        study(FEW, settings={"agents": {"max_retries": 1}}, versions={"python": "3.11.2", "pandas": "3.1"}),
        study(FEW, settings={"agents": {"max_retries": 2}}, versions={"python": "3.12.1", "pandas": "3.1"}),
    ),
    "arms of one study alone": (study(FEW), study(runs_of("hard_timeout", range(3)))),
    "one run each": (study(runs_of("cooperative", range(1))), study(runs_of("cooperative", range(1)))),
    "what is not known for every run": (study(FEW), study(runs_of("cooperative", range(3), busy_after_deadline_s=NAN))),
    "too few runs are no acquittal": (
        study(runs_of("cooperative", range(4))),
        study(runs_of("cooperative", range(4), **LATE)),
    ),
    "six can tell": (study(runs_of("cooperative", range(6))), study(runs_of("cooperative", range(6), **LATE))),
}


def told(found: StudyDiff) -> str:
    """The verdict, sentences and fields of a comparison, and its effects with the numbers that decide."""
    numbers = ["measure", "before", "after", "difference", "low", "high", "runs_before", "runs_after", "paired"]
    effects = found.effects[[*found.apart, "arm", *numbers, "p_corrected", "worse", "runs_missing"]]
    tables = [frame.to_csv(index=False, float_format="%.4g") for frame in (found.fields, effects) if len(frame)]
    alone = {"only before": found.only_before, "only after": found.only_after, "not compared": found.not_compared}
    lines = [f"{name}: {each}" for name, those in alone.items() for each in those]
    return "\n".join([f"{found.verdict}: {found.verdict_text}", *found.sentences, *lines, "", *tables])


def test_what_is_said_of_two_studies() -> None:
    """Worse is said first, with its interval; no gain where runs failed; lower bounds are said to be such."""
    texts = {name: told(diff(before, after)) for name, (before, after) in DIFFS.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_runs_are_paired_over_the_seeds_that_both_met_with_one_question() -> None:
    before = study(runs_of("cooperative", range(10)))
    more = study(runs_of("cooperative", range(30)))
    paired = diff(before, more).effects
    assert paired["paired"].all()
    assert set(paired["runs_after"]) == {10}
    other_seeds = study(runs_of("cooperative", range(100, 130)))
    apart = diff(before, other_seeds).effects
    assert not apart["paired"].any()
    assert set(apart["runs_after"]) == {30}
    other_questions = study(runs_of("cooperative", range(10), lambda repeat: {"question_id": f"other{repeat}"}))
    assert not diff(before, other_questions).effects["paired"].any()


def test_a_difference_of_pairs_is_seen_where_independent_runs_would_hide_it() -> None:
    noise = np.random.default_rng(2).exponential(10.0, 30)

    def at(shift: float, seeds: range) -> Study:
        change = lambda repeat: {"busy_after_deadline_s": noise[repeat % 100] + shift + 0.01 * (repeat % 5)}  # noqa: E731
        return study(runs_of("hard_timeout", seeds, change))

    assert diff(at(0.0, range(30)), at(0.5, range(30))).regressed
    assert not diff(at(0.0, range(30)), at(0.5, range(100, 130))).regressed


def test_p_values_are_corrected_for_all_that_is_compared() -> None:
    before = study(
        *(runs_of(level, range(20), late_every(3)) for level in ("cooperative", "hard_timeout", "stop_flag"))
    )
    after = study(*(runs_of(level, range(20), late_every(2)) for level in ("cooperative", "hard_timeout", "stop_flag")))
    effects = diff(before, after).effects
    assert len(effects) == 12
    smallest = effects["p_value"].idxmin()
    assert effects.loc[smallest, "p_corrected"] == min(1.0, 12 * effects.loc[smallest, "p_value"])


def test_the_command_fails_on_a_regression_only_when_asked(tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["diff", *words])
        return result.exit_code, result.output

    good = str(study(runs_of("cooperative", range(30))).save(tmp_path / "good"))
    bad = str(study(runs_of("cooperative", range(30), late_every(1))).save(tmp_path / "bad"))
    code, output = run(good, good, "--fail-on-regression")
    assert (code, "are the same" in output) == (0, True)
    code, output = run(good, bad)
    assert (code, "A cooperative: answered in time 1.00 → 0.00" in output) == (0, True)
    assert run(good, bad, "--fail-on-regression")[0] == 1
    assert run(bad, good, "--fail-on-regression")[0] == 0
    code, output = run(good, bad, "--json")
    assert (code, json.loads(output)["regressed"]) == (0, True)


def test_ten_pairs_of_seven_arms_can_show_a_regression() -> None:
    """Trust 15: 68 s worse with nobody answered passed, since ten pairs corrected over 28 tests cannot reach 5 %."""
    levels = ("unguarded", "cooperative", "hard_timeout", "async_cancellation", "stop_flag", "hybrid", "native")
    before = study(*(runs_of(level, range(10)) for level in levels))
    draws = np.random.default_rng(3).normal(68.0, 5.0, 10)
    worse = [
        runs_of(level, range(10), lambda repeat: {"caller_overrun_s": float(draws[repeat])}, **LATE) for level in levels
    ]
    found = diff(before, study(*worse))
    assert found.verdict == "regressed"
    assert set(found.effects.loc[found.effects["worse"], "measure"]) == {"answered_in_time", "caller_overrun_s"}
