"""Measures of a made-up crowd, against what can be worked out by hand."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from sample_calls import call
from sample_runs import sample_run
from scipy import stats

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.experiments.load.crowd import Query, QueryResult
from docmind_lab.experiments.load.load_study import LoadStudy, rows_of_query
from docmind_lab.experiments.load.measures import goodput_differences, load_summary, mean_interval
from docmind_lab.statistics.means import bounded_mean_interval
from docmind_lab.statistics.shares import share_interval

# Budget 2 s; queries arrive at 0, 10, 12, 14, 16; those from 10 on and before 18 are counted, over 8 s, with 2 slots.
WINDOW = {"window_from_s": 10.0, "window_until_s": 18.0}


def query_rows(number, *, scheduled_at_s, waited_s=0.0, returned_at_s=1.5, outcome="answered", stretches=(), **changes):
    """A query and its requests. stretches: of each request, when it was received, served and left; NaN for never."""
    alternative, replicate = changes.get("alternative", "hard_timeout"), changes.get("replicate", 0)
    started_at_s = scheduled_at_s + waited_s
    run = sample_run(
        alternative,
        number,
        run_id=f"{alternative}-{replicate}-{number}",
        returned_at_s=returned_at_s,
        outcome=outcome,
        answered_in_time=outcome == "answered" and returned_at_s <= 2.0,
        clock="virtual",
    )
    seen = {"seen_from": "server", "input_tokens": 40.0, "output_tokens": 2.0}
    calls = [
        call(
            run.run_id,
            "planner",
            received_at_s - started_at_s,
            left_at_s - started_at_s,
            # As long as it was there, where it never had a slot.
            queue_wait_s=(left_at_s if math.isnan(served_at_s) else served_at_s) - received_at_s,
            **seen,
        )
        for received_at_s, served_at_s, left_at_s in stretches
    ]
    attended = QueryResult(
        Query(None, scheduled_at_s),
        number,
        started_at_s,
        SimpleNamespace(run=run, calls=[*calls, call(run.run_id, "planner", 0.0, 1.0)]),
    )
    of_load = {"arrivals": "poisson", "offered_per_s": 0.5, "slots": changes.get("slots", 2), "callers": None}
    return rows_of_query(attended, **WINDOW, **of_load, replicate=replicate)


def made_up(**changes):
    """Five queries: one of the warm-up, one in time, one that waited too long for a caller, one abandoned, one hung."""
    return [
        query_rows(0, scheduled_at_s=0.0, stretches=[(0.0, 0.0, 1.0)], **changes),
        query_rows(1, scheduled_at_s=10.0, stretches=[(10.0, 10.5, 11.5)], **changes),
        query_rows(2, scheduled_at_s=12.0, waited_s=1.0, stretches=[(13.0, 13.0, 14.5)], **changes),
        # Its caller left at 16; of two requests one was served until 17, the other never had a slot.
        query_rows(
            3,
            scheduled_at_s=14.0,
            returned_at_s=2.0,
            outcome="timed_out",
            stretches=[(14.0, 15.0, 17.0), (17.0, NAN, 19.0)],
            **changes,
        ),
        # Nobody was back by the horizon of 10 s, and the slot was held until then; the window sees 2 s of it.
        query_rows(
            4, scheduled_at_s=16.0, returned_at_s=NAN, outcome="unfinished", stretches=[(16.0, 16.0, NAN)], **changes
        ),
    ]


def measured(rows, counted_from="arrival"):
    return LoadStudy.of(rows).replicates(counted_from)


def replicates_of(good, **changes):
    """Replicates of four counted queries each: all answered in time in the first `good` of them, none in the others."""
    return [
        query_rows(
            number, scheduled_at_s=10.0 + number, replicate=place, returned_at_s=1.5 if is_good else 2.5, **changes
        )
        for place, is_good in enumerate(good)
        for number in range(4)
    ]


CAPACITY_S = 2 * 8.0
MEASURED = {
    "arrival": (
        {},
        {
            "counted": 4,
            "window_s": 8.0,
            "arrived_per_s": 0.5,
            "goodput_per_s": 1 / 8,
            "share_in_time": 1 / 4,
            # 1.5, 2.5, 2.0 and never.
            "response_median_s": 2.25,
            # Too few queries for these quantiles.
            "response_p90_s": NAN,
            "response_p99_s": NAN,
            "busy_share": (1.0 + 1.5 + 2.0 + 2.0) / CAPACITY_S,
            # Query 2 was late from 14 on, by its arrival; 3 was given up at 16; 4 is due at 18, where the window ends.
            "abandoned_share": (0.5 + 1.0) / CAPACITY_S,
            # 0.5, 0, 1 and 0 s; the request of 17 came when its caller had left.
            "live_queue_wait_s": 1.5 / 4,
        },
    ),
    # A system that does not keep up looks better.
    "start": ({}, {"goodput_per_s": 2 / 8, "response_median_s": 1.75, "abandoned_share": (0.0 + 1.0) / CAPACITY_S}),
    "arrival, no limit of slots": (
        {"slots": None},
        {"busy_share": NAN, "abandoned_share": NAN, "goodput_per_s": 1 / 8},
    ),
}


@pytest.mark.parametrize("case", MEASURED)
def test_a_crowd_is_measured_in_its_window_from_the_arrival_or_the_start_of_each_query(case):
    changes, expected = MEASURED[case]
    (row,) = measured(made_up(**changes), case.partition(",")[0]).to_dict("records")
    assert {name: row[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_quantiles_are_given_with_enough_queries_behind_them():
    rows = [query_rows(number, scheduled_at_s=10.0 + number / 100, returned_at_s=number / 100) for number in range(459)]
    few, enough = (measured(some).iloc[0] for some in (rows[:44], rows))
    assert (few["response_p90_s"], math.isnan(few["response_p99_s"])) == (0.39, True)
    assert (enough["response_p90_s"], enough["response_p99_s"]) == (4.13, 4.54)
    assert "p99" in repr(LoadStudy.of(rows))


def test_a_way_of_counting_and_a_reference_that_there_are_not_are_refused():
    with pytest.raises(ConfigurationError, match="counted_from"):
        measured(made_up(), "finish")
    with pytest.raises(ConfigurationError, match="reference must be an arm"):
        goodput_differences(measured(made_up()), "Z")


def test_intervals_go_over_replicates_and_fewer_than_four_have_none():
    few = replicates_of([True] * 3)
    assert load_summary(measured(few))["goodput_low_per_s"].isna().all()
    assert "too few: 3 of 4" in repr(LoadStudy.of(few))
    (row,) = load_summary(measured(replicates_of([True] * 4 + [False] * 2))).to_dict("records")
    assert (row["replicates"], row["counted"]) == (6, 24)
    assert row["goodput_per_s"] == pytest.approx(4 / 6 * 4 / 8)
    # All values are 0 or the most there can be, so the bounds are those of the exact interval of 4 of 6.
    exact = stats.binomtest(4, 6).proportion_ci(method="exact")
    bounds = row["goodput_low_per_s"], row["goodput_high_per_s"]
    assert bounds == pytest.approx((exact.low / 2, exact.high / 2), abs=0.01)
    # Equal replicates have an interval with width.
    (row,) = load_summary(measured(replicates_of([True] * 8))).to_dict("records")
    assert row["goodput_low_per_s"] < 0.35
    assert row["goodput_high_per_s"] == 0.5
    assert row["abandoned_high_share"] > 0.0


def test_a_replicate_that_answers_fewer_than_half_in_time_has_collapsed():
    rows = replicates_of([False] * 7 + [True])
    (row,) = load_summary(measured(rows)).to_dict("records")
    wilson = share_interval(7, 8)
    assert (row["collapsed"], row["collapsed_low_share"], row["collapsed_high_share"]) == (7, wilson.low, wilson.high)
    assert "7 of 8" in repr(LoadStudy.of(rows))


def test_the_interval_of_a_mean_stays_within_what_is_possible():
    low, high = mean_interval([0.0, 0.0, 0.4, 0.4, 0.4], least=0.0, most=0.5)
    assert 0.0 <= low < 0.24 < high <= 0.5
    assert all(math.isnan(bound) for bound in mean_interval([0.1, 0.2, 0.3], least=0.0, most=0.5))
    assert all(math.isnan(bound) for bound in mean_interval([math.nan] * 8, least=0.0, most=1.0))


def test_differences_are_taken_within_a_replicate():
    rows = [
        query_rows(
            number,
            scheduled_at_s=10.0 + number,
            returned_at_s=1.5 if number < good + more else 2.5,
            alternative=alternative,
            replicate=replicate,
        )
        for replicate, good in enumerate((3, 1, 3, 1, 3, 1, 3, 1))
        for alternative, more in (("hard_timeout", 0), ("async_cancellation", 1))
        for number in range(5)
    ]
    replicates = measured(rows)
    (row,) = goodput_differences(replicates, "B  hard timeout").to_dict("records")
    assert row["arm"] == "C  async cancellation"
    # The replicates are far apart, and C is one answer better in each: an interval of the difference that took them
    # for independent samples would be wider than this one, which has what the bounds leave open.
    assert row["difference_per_s"] == pytest.approx(1 / 8)
    most = replicates["arrived_per_s"].max()
    expected = bounded_mean_interval([1 / 8] * 8, least=-most, most=most)
    assert (row["low_per_s"], row["high_per_s"]) == pytest.approx((expected.low, expected.high))
    # Of 256 ways to flip eight signs, two are as extreme.
    assert (row["more_in"], row["p_value"]) == (8, pytest.approx(2 / 256))


def test_a_study_reads_back_what_it_wrote_and_what_older_versions_wrote(tmp_path):
    study = LoadStudy.of(made_up(), {"schema_version": 1})
    queries, servings = study.queries, study.servings
    again = LoadStudy.load(study.save(tmp_path / "study"))
    pd.testing.assert_frame_equal(again.queries, queries)
    pd.testing.assert_frame_equal(again.servings, servings)
    assert again.manifest == study.manifest
    assert again.text().splitlines()[-1].split()[:6] == ["0.5", "B", "hard", "timeout", "0.125", "one"]
    (tmp_path / "study" / "servings.parquet").unlink()
    with pytest.raises(RecordError, match=r"servings\.parquet cannot be read"):
        LoadStudy.load(tmp_path / "study")
    with pytest.raises(RecordError, match="holds no study"):
        LoadStudy.load(tmp_path)
    # Once nobody counted tokens, and on the wall clock queries began late.
    old = LoadStudy(queries.assign(late_s=0.1), servings.drop(columns="tokens"), {"schema_version": 1})
    read = LoadStudy.load(old.save(tmp_path / "old"))
    pd.testing.assert_frame_equal(read.queries, queries)
    assert read.servings["tokens"].isna().all()


def test_queries_are_in_the_order_of_their_runs_whatever_order_their_crowds_ended_in():
    late, early = made_up(), made_up(replicate=1, alternative="cooperative")
    assert LoadStudy.of([*late, *early]).queries["run_id"].is_monotonic_increasing


def test_a_request_that_was_cut_at_the_horizon_held_its_slot_until_then_and_one_that_waited_held_none():
    study = LoadStudy.of(made_up())
    queries, servings = study.queries, study.servings
    assert servings["served_from_s"].isna().tolist() == [False, False, False, False, True, False]
    assert servings["left_at_s"].tolist() == [1.0, 11.5, 14.5, 17.0, 19.0, 26.0]
    assert set(servings["tokens"]) == {42.0}, "the server's rows alone"
    assert queries["response_s"].isna().tolist() == [False, False, False, False, True]
    assert not queries["in_time"].iloc[4]
