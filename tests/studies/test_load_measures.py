"""Measures of a made-up crowd, against what can be worked out by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from sample_runs import sample_run
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.experiments.load.measures import goodput_differences, load_summary, mean_interval, replicate_measures
from docmind_lab.experiments.load.study import LoadStudy
from docmind_lab.experiments.load.tables import LoadColumns, QueryRows, ServingRecord, frames_of, rows_of_query
from docmind_lab.statistics.means import bounded_mean_interval
from docmind_lab.statistics.shares import share_interval

# Budget 2 s; queries arrive at 0, 10, 12, 14, 16; those from 10 on and before 18 are counted, over 8 s, with 2 slots.
WINDOW = {"window_from_s": 10.0, "window_until_s": 18.0}


def query_rows(number, *, scheduled_at_s, waited_s=0.0, returned_at_s=1.5, outcome="answered", stretches=(), **changes):
    alternative, replicate = changes.get("alternative", "hard_timeout"), changes.get("replicate", 0)
    run = sample_run(
        alternative,
        number,
        run_id=f"{alternative}-{replicate}-{number}",
        returned_at_s=returned_at_s,
        outcome=outcome,
        answered_in_time=outcome == "answered" and returned_at_s <= 2.0,
        clock="virtual",
    )
    response_s = waited_s + returned_at_s
    load = LoadColumns(
        arrivals="poisson",
        offered_per_s=changes.get("offered_per_s", 0.5),
        slots=changes.get("slots", 2),
        callers=None,
        replicate=replicate,
        query=number,
        **WINDOW,
        scheduled_at_s=scheduled_at_s,
        started_at_s=scheduled_at_s + waited_s,
        late_s=changes.get("late_s", 0.0),
        waited_for_caller_s=waited_s,
        response_s=response_s,
        in_time=outcome == "answered" and response_s <= 2.0,
    )
    servings = tuple(
        ServingRecord("made-up", run.run_id, f"llm/{place}", 1, "planner", "ok", *instants)
        for place, instants in enumerate(stretches)
    )
    return QueryRows(run, load, servings)


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
            4, scheduled_at_s=16.0, returned_at_s=NAN, outcome="unfinished", stretches=[(16.0, 16.0, 26.0)], **changes
        ),
    ]


def measured(rows, counted_from="arrival"):
    return replicate_measures(*frames_of(rows), counted_from)


def test_goodput_counts_what_arrived_in_the_window_and_was_answered_in_time_of_its_arrival():
    (row,) = measured(made_up()).to_dict("records")
    assert (row["counted"], row["window_s"], row["arrived_per_s"]) == (4, 8.0, 0.5)
    assert row["goodput_per_s"] == 1 / 8
    assert row["share_in_time"] == 1 / 4
    # 1.5, 2.5, 2.0 and never.
    assert row["response_median_s"] == 2.25


def test_counted_from_the_start_a_system_that_does_not_keep_up_looks_better():
    (row,) = measured(made_up(), "start").to_dict("records")
    assert row["goodput_per_s"] == 2 / 8
    assert row["response_median_s"] == 1.75


def test_shares_of_capacity_are_slot_seconds_within_the_window():
    (row,) = measured(made_up()).to_dict("records")
    capacity_s = 2 * 8.0
    assert row["busy_share"] == pytest.approx((1.0 + 1.5 + 2.0 + 2.0) / capacity_s)
    # Query 2 was late from 14 on, by its arrival; 3 was given up at 16; 4 is due at 18, where the window ends.
    assert row["abandoned_share"] == pytest.approx((0.5 + 1.0) / capacity_s)
    (row,) = measured(made_up(), "start").to_dict("records")
    assert row["abandoned_share"] == pytest.approx((0.0 + 1.0) / capacity_s)


def test_a_live_request_waits_until_it_has_a_slot_or_nobody_wants_it():
    (row,) = measured(made_up()).to_dict("records")
    # 0.5, 0, 1 and 0 s; the request of 17 came when its caller had left.
    assert row["live_queue_wait_s"] == pytest.approx(1.5 / 4)


def test_without_a_limit_of_slots_there_is_no_share_of_capacity():
    (row,) = measured(made_up(slots=None)).to_dict("records")
    assert math.isnan(row["busy_share"])
    assert math.isnan(row["abandoned_share"])
    assert row["goodput_per_s"] == 1 / 8


def test_another_way_of_counting_is_refused():
    with pytest.raises(ConfigurationError, match="counted_from"):
        measured(made_up(), "finish")


def healthy(replicate, **changes):
    """A replicate whose four counted queries are all answered in time."""
    return [query_rows(number, scheduled_at_s=10.0 + number, replicate=replicate, **changes) for number in range(4)]


def collapsed(replicate, **changes):
    """A replicate that answers none in time."""
    return [
        query_rows(number, scheduled_at_s=10.0 + number, replicate=replicate, returned_at_s=2.5, **changes)
        for number in range(4)
    ]


def test_intervals_go_over_replicates_and_fewer_than_four_have_none():
    few = load_summary(measured(made_up() + healthy(1) + healthy(2)))
    assert few["goodput_low_per_s"].isna().all()
    rows = [row for replicate in range(6) for row in (collapsed if replicate < 2 else healthy)(replicate)]
    (row,) = load_summary(measured(rows)).to_dict("records")
    assert (row["replicates"], row["counted"]) == (6, 24)
    assert row["goodput_per_s"] == pytest.approx(4 / 6 * 4 / 8)
    # All values are 0 or the most there can be, so the bounds are those of the exact interval of 4 of 6.
    exact = stats.binomtest(4, 6).proportion_ci(method="exact")
    found = row["goodput_low_per_s"], row["goodput_high_per_s"]
    assert found == pytest.approx((exact.low / 2, exact.high / 2), abs=0.01)


def test_a_replicate_that_answers_fewer_than_half_in_time_has_collapsed():
    rows = [row for replicate in range(8) for row in (collapsed if replicate < 7 else healthy)(replicate)]
    summary = load_summary(measured(rows))
    (row,) = summary.to_dict("records")
    wilson = share_interval(7, 8)
    assert (row["collapsed"], row["collapsed_low_share"], row["collapsed_high_share"]) == (7, wilson.low, wilson.high)
    shown = repr(LoadStudy(*frames_of(rows)))
    assert "7 of 8" in shown


def test_equal_replicates_have_an_interval_with_width():
    rows = [row for replicate in range(8) for row in healthy(replicate)]
    (row,) = load_summary(measured(rows)).to_dict("records")
    assert row["goodput_low_per_s"] < 0.35
    assert row["goodput_high_per_s"] == 0.5
    assert row["abandoned_high_share"] > 0.0


def test_a_table_of_few_replicates_says_so_in_place_of_an_interval():
    rows = made_up() + healthy(1)
    assert "too few: 2 of 4" in repr(LoadStudy(*frames_of(rows)))


def test_queries_that_began_late_are_named_only_when_it_matters():
    on_time = LoadStudy(*frames_of(healthy(0, late_s=0.01)))
    assert on_time.lateness == ""
    late = LoadStudy(*frames_of(healthy(0) + healthy(1, late_s=0.3)))
    assert "0.30 s" in late.lateness
    assert late.lateness in repr(late)
    assert "0.30 s" in late._repr_html_()
    assert late.summary()["late_max_s"].tolist() == [0.3]


def test_a_study_that_was_written_before_there_was_a_wall_clock_began_no_query_late(tmp_path):
    queries, servings = frames_of(made_up())
    LoadStudy(queries.drop(columns="late_s"), servings, {"schema_version": 1}).save(tmp_path / "study")
    assert LoadStudy.load(tmp_path / "study").queries["late_s"].eq(0.0).all()


def test_the_interval_of_a_mean_stays_within_what_is_possible():
    low, high = mean_interval([0.0, 0.0, 0.4, 0.4, 0.4], least=0.0, most=0.5)
    assert 0.0 <= low < 0.24 < high <= 0.5
    assert all(math.isnan(bound) for bound in mean_interval([0.1, 0.2, 0.3], least=0.0, most=0.5))
    assert all(math.isnan(bound) for bound in mean_interval([math.nan] * 8, least=0.0, most=1.0))


def test_differences_are_taken_within_a_replicate():
    rows = []
    for replicate, good in enumerate((3, 1, 3, 1, 3, 1, 3, 1)):
        for alternative, more in (("hard_timeout", 0), ("async_cancellation", 1)):
            for number in range(5):
                back_s = 1.5 if number < good + more else 2.5
                rows.append(
                    query_rows(
                        number,
                        scheduled_at_s=10.0 + number,
                        returned_at_s=back_s,
                        alternative=alternative,
                        replicate=replicate,
                    )
                )
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
    with pytest.raises(ConfigurationError, match="reference must be an arm"):
        goodput_differences(replicates, "Z")


def test_a_study_reads_back_what_it_wrote_and_shows_its_goodput(tmp_path):
    queries, servings = frames_of(made_up())
    study = LoadStudy(queries, servings, {"schema_version": 1})
    again = LoadStudy.load(study.save(tmp_path / "study"))
    pd.testing.assert_frame_equal(again.queries, queries)
    pd.testing.assert_frame_equal(again.servings, servings)
    assert again.manifest == study.manifest
    assert repr(again).splitlines()[-1].split()[:6] == ["0.5", "B", "hard", "timeout", "0.125", "one"]
    assert "2 s decision timeout" in again.title
    assert "<table" in again._repr_html_()


def test_cells_are_joined_in_the_order_of_their_queries_whatever_their_levels():
    early, late = frames_of(made_up()), frames_of(made_up(replicate=1, alternative="cooperative"))
    cells = [SimpleNamespace(queries=queries, servings=servings) for queries, servings in (late, early)]
    study = LoadStudy.of(cells, {})
    assert study.queries["run_id"].is_monotonic_increasing
    assert set(study.queries["alternative"].cat.categories) == {"cooperative", "hard_timeout"}
    assert len(study.servings) == 2 * len(early[1])


def test_a_request_that_was_cut_at_the_horizon_held_its_slot_until_then_and_one_that_waited_held_none():
    call = SimpleNamespace(
        study_id="s", run_id="r", call_id="c", attempt=1, role="planner", outcome="abandoned", seen_from="server",
        kind="llm", started_at_s=1.0, queue_wait_s=2.0, ended_at_s=NAN, input_tokens=40.0, output_tokens=2.0,
    )  # fmt: skip
    never = SimpleNamespace(**{**vars(call), "queue_wait_s": 9.0})
    run = replace(sample_run("hard_timeout", 0), returned_at_s=NAN, outcome="unfinished")
    attended = SimpleNamespace(
        query=SimpleNamespace(scheduled_at_s=100.0),
        number=0,
        started_at_s=100.5,
        late_s=0.0,
        waited_for_caller_s=0.5,
        measured=SimpleNamespace(run=run, calls=[call, never]),
    )
    same = {"arrivals": "poisson", "offered_per_s": 0.5, "slots": 2, "callers": 1, "replicate": 0}
    made = rows_of_query(attended, **same, **WINDOW)
    held, waited = made.servings
    assert (held.received_at_s, held.served_from_s, held.left_at_s) == (101.5, 103.5, 110.5)
    assert held.tokens == 42.0
    assert math.isnan(waited.served_from_s)
    assert waited.left_at_s == 110.5
    assert math.isnan(made.load.response_s)
    assert not made.load.in_time
