from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_findings import four_options, late, left_alone, table
from sample_runs import concatenated, sample_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import PerfMap
from docmind_lab.findings.scorecard import COMPONENTS, measures_of


def plain_means(runs):
    measures = measures_of(runs)
    return measures.means(np.ones((1, measures.seeds)))[0]


def means_of(runs):
    rows = zip(measures_of(runs).arms["arm"], plain_means(runs), strict=True)
    return {arm: dict(zip(COMPONENTS, row, strict=True)) for arm, row in rows}


def test_the_components_are_as_worked_out_by_hand() -> None:
    answered = {"recall_at_deadline": 1.0, "source_recall": 1.0}
    runs = table(
        sample_run("unguarded", 0, **answered),
        sample_run("unguarded", 1, **answered),
        left_alone(2, 5.0, recall_at_deadline=0.5),
        sample_run("cooperative", 0, **answered),
        late("cooperative", 1, source_recall=0.5),
        late("cooperative", 2, caller_overrun_s=0.3, busy_after_deadline_s=0.6, source_recall=0.5),
    )
    found = means_of(runs)["A  cooperative"]
    assert found == pytest.approx(
        {"answered": 1 / 2, "overrun": 0.3 / 2 / 3, "late_work": 0.6 / 2 / 3, "kept": 2 / 2.5}
    )
    control = means_of(runs)["control  unguarded"]
    assert control["answered"] == 1.0
    assert control["overrun"] == pytest.approx(3.0 / 2 / 3)


def test_an_unfinished_run_counts_with_its_whole_horizon() -> None:
    runs = table(left_alone(0, math.nan), late("cooperative", 0))
    assert means_of(runs)["control  unguarded"]["overrun"] == 4.0


def test_what_is_not_known_of_one_arm_is_not_measured_for_any_and_leaves_its_weight_to_the_others() -> None:
    runs = four_options(4)
    unknown = runs["alternative"].astype(str) == "stop_flag"
    runs.loc[unknown, "busy_after_deadline_s"] = math.nan
    means = plain_means(runs)
    assert np.isnan(means[:, 2]).all()
    assert not np.isnan(PerfMap().perf(means)).any()
    assert np.isnan(PerfMap(weights=(0, 0, 1, 0)).perf(means)).all()


def test_without_an_answer_of_the_control_in_time_nobody_is_scored_on_answers() -> None:
    runs = table(left_alone(0), late("cooperative", 0), late("hard_timeout", 0))
    assert all(math.isnan(found["answered"]) for found in means_of(runs).values())


def test_the_map_goes_in_straight_lines_and_stops_at_its_ends() -> None:
    perf_map = PerfMap(zeros=(0.5, 0.2, 2.0, 0.0))
    score = perf_map.score(np.array([[0.75, 0.1, 0.5, 0.3], [0.2, 0.9, 9.0, 1.4], [1.0, 0.0, 0.0, 1.0]]))
    assert score.tolist() == [pytest.approx([5.0, 5.0, 7.5, 3.0]), [0.0, 0.0, 0.0, 10.0], [10.0] * 4]
    heavy = PerfMap(weights=(1.0, 3.0, 1.0, 1.0))
    assert heavy.perf(np.array([1.0, 1.0, 0.0, 1.0])) == pytest.approx(10.0 / 2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"zeros": (1.0, 1.0, 1.0, 0.0)}, "that of answered must be a share"),
        ({"zeros": (0.0, 1.0, 1.0, -0.1)}, "that of kept must be a share"),
        ({"zeros": (0.0, 0.0, 1.0, 0.0)}, "that of overrun must be a number of decision timeouts above 0"),
        ({"weights": (1.0, 1.0, 1.0, -1.0)}, "weights must be four numbers, 0 or more"),
        ({"weights": (0.0,) * 4}, "one of them above 0"),
        ({"weights": (1.0,)}, "weights must be four"),
    ],
)
def test_a_map_that_cannot_be_used_is_refused_by_name(changes, named) -> None:
    with pytest.raises(ConfigurationError, match=named):
        PerfMap(**changes)


def test_arms_that_met_other_questions_are_not_compared() -> None:
    runs = four_options(4)
    with pytest.raises(ConfigurationError, match=r"D stop flag has not met 1 of the 4 seeds"):
        measures_of(runs[~((runs["seed"] == 1) & (runs["alternative"].astype(str) == "stop_flag"))])
    with pytest.raises(ConfigurationError, match="twice"):
        measures_of(table(left_alone(0), late("cooperative", 0), late("cooperative", 0)))
    with pytest.raises(ConfigurationError, match="runs has no control"):
        measures_of(table(late("cooperative", 0)))


def test_a_seed_drawn_twice_counts_as_two_of_it_would() -> None:
    measures = measures_of(four_options(6, B={"busy_after_deadline_s": 1.0}))
    assert measures.means(np.full((1, 6), 2.0)) == pytest.approx(measures.means(np.ones((1, 6))))
    first = measures.means(np.array([[2.0, 1, 1, 1, 1, 0]]))[0]
    assert first[2, 2] == pytest.approx((2 * 0 + 2 * 0.5) / 6)


def test_several_conditions_count_alike_in_multiples_of_their_budgets() -> None:
    short = four_options(4, D={"caller_overrun_s": 1.0})
    long = short.assign(decision_timeout_s=20.0, horizon_s=100.0, caller_overrun_s=short["caller_overrun_s"] * 10)
    both = concatenated("runs", [short, long])
    assert means_of(both)["D  stop flag"]["overrun"] == pytest.approx(means_of(short)["D  stop flag"]["overrun"])
