"""What changed between two studies: fields, effects with a known size, and what cannot be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_runs import MANIFEST, sample_run, study_of

from docmind_lab.analysis.diff import diff
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.records import RunRecord
from docmind_lab.core.levels import NAN

Change = Callable[[int], dict[str, Any]]
LATE = {"outcome": "timed_out", "answered_in_time": False, "returned_at_s": 2.0}


def runs_of(level: str, repeats: range, change: Change = lambda repeat: {}, **all_of_them: Any) -> list[RunRecord]:
    return [sample_run(level, repeat, **{**all_of_them, **change(repeat)}) for repeat in repeats]


def study(*groups: list[RunRecord], **manifest: Any) -> Study:
    plain = study_of([run for group in groups for run in group])
    return Study(plain.runs, plain.calls, plain.events, {**MANIFEST, **manifest})


def late_every(number: int) -> Change:
    return lambda repeat: LATE if repeat % number == 0 else {}


def test_a_study_against_itself_has_no_differences() -> None:
    one = study(runs_of("cooperative", range(20), late_every(3)), runs_of("hard_timeout", range(20)))
    found = diff(one, one)
    assert found.fields.empty
    assert (found.only_before, found.only_after, found.not_compared) == ((), (), ())
    assert not found.regressed
    assert found.sentences == ("No difference in any of 8 comparisons.",)


def test_what_is_worse_is_told_first_with_its_interval() -> None:
    before = study(runs_of("cooperative", range(40), late_every(4)))
    after = study(runs_of("cooperative", range(40), late_every(1)))
    found = diff(before, after)
    assert found.regressed
    row = found.effects.iloc[0]
    assert (row["before"], row["after"], row["difference"]) == (0.75, 0.0, -0.75)
    assert row["low"] < -0.75 < row["high"] < 0
    assert row["paired"]
    assert found.sentences[0].startswith("A cooperative: answered in time 0.75 → 0.00, −0.75 [−")
    assert ", worse (corrected p < 0.001)." in found.sentences[0]


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


def test_less_overrun_of_runs_that_failed_is_said_to_be_no_gain() -> None:
    late = study(runs_of("cooperative", range(20), **LATE, caller_overrun_s=1.0))
    failing = study(runs_of("cooperative", range(20), **FAILED, caller_overrun_s=0.0))
    found = diff(late, failing)
    assert any("caller overrun 1.000 → 0.000 s" in line and ", better" in line for line in found.sentences)
    assert found.sentences[-1] == (
        "A cooperative: runs that failed: 0 of 20 → 20 of 20 (ValueError in node work). A run that ends so waits less "
        "and leaves less work, which is no gain."
    )
    waiting = study(runs_of("cooperative", range(20), **(FAILED | {"outcome": "interrupted", "error_type": ""})))
    assert "runs that stopped to wait for a person: 0 of 20 → 20 of 20" in diff(late, waiting).sentences[-1]


def test_a_mean_with_runs_that_were_not_over_at_the_horizon_is_said_to_be_a_lower_bound() -> None:
    back = study(runs_of("hard_timeout", range(20), **LATE, caller_overrun_s=0.5))
    lost = {"outcome": "unfinished", "answered_in_time": False, "returned_at_s": NAN, "caller_overrun_s": NAN}
    gone = study(runs_of("hard_timeout", range(20), **lost))
    (overrun,) = [line for line in diff(back, gone).sentences if "caller overrun" in line]
    assert overrun.endswith("These are lower bounds: 0 of 20 and 20 of 20 runs were not over at the horizon.")
    busy = study(runs_of("hard_timeout", range(20), **LATE, busy_after_deadline_s=3.0, work_censored=True))
    (work,) = [line for line in diff(back, busy).sentences if "late server seconds" in line]
    assert work.endswith("0 of 20 and 20 of 20 runs were not over at the horizon.")


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


def test_conditions_are_matched_by_what_varies_within_a_study() -> None:
    budgets = [runs_of("cooperative", range(5), decision_timeout_s=s, run_id=f"{s}") for s in (1.6, 2.0)]
    found = diff(study(*budgets), study(budgets[1]))
    assert list(found.effects["decision_timeout_s"].unique()) == [2.0]
    assert found.only_before == ("A cooperative (1.6 s decision timeout)",)


def test_what_differs_as_a_whole_is_a_field_and_arms_are_compared_across_it() -> None:
    before = study(runs_of("cooperative", range(5), latency_profile="typical/6"))
    after = study(runs_of("cooperative", range(5), latency_profile="fast", decision_timeout_s=1.6))
    found = diff(before, after)
    assert len(found.effects) == 4
    fields = found.fields.set_index("field")
    assert tuple(fields.loc["latency_profile", ["before", "after"]]) == ("typical/6", "fast")
    assert tuple(fields.loc["decision_timeout_s", ["before", "after"]]) == ("2", "1.6")


def test_settings_versions_and_machine_are_compared_field_by_field() -> None:
    runs = runs_of("cooperative", range(3))
    before = study(runs, settings={"agents": {"max_retries": 1}}, versions={"python": "3.11.2", "pandas": "3.1"})
    after = study(runs, settings={"agents": {"max_retries": 2}}, versions={"python": "3.12.1", "pandas": "3.1"})
    rows = diff(before, after).fields.to_dict("records")
    assert rows == [
        {"section": "settings", "field": "agents.max_retries", "before": "1", "after": "2"},
        {"section": "versions", "field": "python", "before": "3.11.2", "after": "3.12.1"},
    ]


def test_arms_of_one_study_alone_are_named() -> None:
    found = diff(study(runs_of("cooperative", range(3))), study(runs_of("hard_timeout", range(3))))
    assert found.only_before == ("A cooperative",)
    assert found.only_after == ("B hard timeout",)
    assert found.sentences == ("No arm and condition is in both studies: there is no effect to compare.",)
    assert not found.regressed


def test_what_is_not_known_for_every_run_is_not_compared_and_named() -> None:
    known = study(runs_of("cooperative", range(4)))
    live = study(runs_of("cooperative", range(4), busy_after_deadline_s=NAN))
    found = diff(known, live)
    assert found.not_compared == ("A cooperative: late server seconds per run: not known for every run",)
    assert "busy_after_deadline_s" not in set(found.effects["measure"])


def test_an_unfinished_run_counts_with_its_horizon() -> None:
    never = {"outcome": "unfinished", "returned_at_s": NAN, "caller_overrun_s": NAN, "answered_in_time": False}
    found = diff(study(runs_of("unguarded", range(20))), study(runs_of("unguarded", range(20), **never)))
    overrun = found.effects.set_index("measure").loc["caller_overrun_s"]
    assert overrun["after"] == 8.0
    assert overrun["worse"]


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the command alone: its registration is looked at where all commands are."""
    import typer
    from typer.testing import CliRunner

    from docmind_lab.interfaces.cli.diff import diff as command

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, words)
    run_command.output = result.output  # type: ignore[attr-defined]
    return result.exit_code


def test_the_command_fails_on_a_regression_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = str(study(runs_of("cooperative", range(30))).save(tmp_path / "good"))
    bad = str(study(runs_of("cooperative", range(30), late_every(1))).save(tmp_path / "bad"))
    assert run_command([good, good, "--fail-on-regression"], monkeypatch) == 0
    assert "are the same" in run_command.output  # type: ignore[attr-defined]
    assert run_command([good, bad], monkeypatch) == 0
    assert "A cooperative: answered in time 1.00 → 0.00" in run_command.output  # type: ignore[attr-defined]
    assert run_command([good, bad, "--fail-on-regression"], monkeypatch) == 1
    assert run_command([bad, good, "--fail-on-regression"], monkeypatch) == 0
    assert run_command([good, bad, "--json"], monkeypatch) == 0
    told = json.loads(run_command.output)  # type: ignore[attr-defined]
    assert told["regressed"] is True


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


def test_too_few_runs_are_no_acquittal() -> None:
    before, after = (study(runs_of("cooperative", range(4), change)) for change in (late_every(9), late_every(1)))
    found = diff(before, after)
    assert not found.regressed
    assert found.verdict == "cannot tell"
    assert (
        found.verdict_text
        == "Cannot tell whether anything got worse: 2 more runs of each arm would be needed to show it."
    )
    more = diff(*(study(runs_of("cooperative", range(6), change)) for change in (late_every(9), late_every(1))))
    assert more.verdict in ("regressed", "no regression shown")


def test_no_regression_shown_says_how_large_a_fall_may_be() -> None:
    one = study(runs_of("cooperative", range(40), late_every(3)))
    found = diff(one, one)
    assert found.verdict == "no regression shown"
    assert "answered in time fell by at most 0.07 (A cooperative)" in found.verdict_text


@pytest.mark.full
def test_chance_alone_seldom_regresses() -> None:
    """Both studies have one truth and other seeds or noise; 5 % of such diffs may be called a regression."""
    rng = np.random.default_rng(4)

    def made() -> Study:
        columns = [{"caller_overrun_s": float(rng.exponential(2.0) * (rng.random() < 0.3))} for _ in range(20)]
        late = [LATE if rng.random() < 0.4 else {} for _ in range(20)]
        return study(
            *(runs_of(level, range(20), lambda n: {**columns[n], **late[n]}) for level in ("cooperative", "hybrid"))
        )

    assert sum(diff(made(), made()).regressed for _ in range(40)) <= 5
