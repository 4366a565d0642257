import math
import subprocess
import sys
from itertools import combinations, pairwise
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from drawn_figures import assert_dark_on_white, assert_words_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from sample_runs import sample_run

from docmind_lab.analysis import plots
from docmind_lab.analysis.agreement import agreement
from docmind_lab.analysis.plots.look import PAPER
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.analysis.tables.records import CallRecord
from docmind_lab.core.catalogue import default_alternatives, label_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN

NAMES = ("unguarded", "cooperative", "hard_timeout", "async_cancellation", "stop_flag")
ROLES = ("supervisor", "router", "planner", "retrieval", "synthesis", "validation")
# Building a frame takes milliseconds, and a first one longer than Hypothesis expects of an example.
FRAMES = settings(max_examples=40, deadline=None)
OKABE_ITO = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}


def run(alternative="cooperative", seed=7, **given):
    """A run that was answered at 1.8 s of 2 s, unless told otherwise; what follows from the rest is worked out."""
    deadline_s = given.get("decision_timeout_s", 2.0)
    returned_at_s, quiescent_at_s = given.get("returned_at_s", 1.8), given.get("quiescent_at_s", 1.8)
    row = {
        "returned_at_s": returned_at_s,
        "quiescent_at_s": quiescent_at_s,
        "caller_overrun_s": NAN if math.isnan(returned_at_s) else max(0.0, returned_at_s - deadline_s),
        "work_overrun_s": max(0.0, quiescent_at_s - deadline_s),
        "outcome": "unfinished" if math.isnan(returned_at_s) else "answered",
        "answered_in_time": returned_at_s <= deadline_s,
    }
    return sample_run(alternative, seed, **(row | given))


def call(of, begun_at_s, ended_at_s, seen_from="client", **given):
    row = {
        "study_id": "s",
        "run_id": of.run_id,
        "call_id": "c1",
        "parent_call_id": "",
        "attempt": 1,
        "seen_from": seen_from,
        "workload": "supervisor",
        "alternative": of.alternative,
        "role": "synthesis",
        "step": "1.0.1",
        "kind": "llm",
        "started_at_s": begun_at_s,
        "first_byte_at_s": NAN,
        "ended_at_s": ended_at_s,
        "latency_s": ended_at_s - begun_at_s,
        "queue_wait_s": 0.0,
        "timeout_s": NAN,
        "remaining_at_start_s": of.decision_timeout_s - begun_at_s,
        "overrun_s": 0.0,
        "outcome": "ok",
        "started_after_deadline": begun_at_s > of.decision_timeout_s,
        "ended_after_return": False,
        "input_tokens": NAN,
        "output_tokens": NAN,
        "error_type": "",
    }
    return CallRecord(**(row | given))


def study(runs, calls=()):
    return SimpleNamespace(runs=to_frame("runs", runs), calls=to_frame("calls", calls), events=to_frame("events", []))


def late_study():
    """The control answers at 5 s; B leaves at 2 s and its work goes on to 5 s; A is cut at the deadline."""
    control = run("unguarded", returned_at_s=5.0, quiescent_at_s=5.0, busy_after_deadline_s=3.0)
    hard = run("hard_timeout", returned_at_s=2.0, quiescent_at_s=5.0, busy_after_deadline_s=3.0, outcome="timed_out")
    cooperative = run("cooperative", returned_at_s=2.01, quiescent_at_s=2.0, outcome="partial")
    calls = [call(each, 1.0, 5.0, seen) for each in (control, hard) for seen in ("client", "server")]
    calls += [call(cooperative, 1.0, 2.0, seen) for seen in ("client", "server")]
    calls.append(call(cooperative, 0.5, 0.6, call_id="r1", kind="retrieval", role="retrieval"))
    calls.append(call(cooperative, 2.005, 2.005, call_id="c2", role="validation", outcome="refused"))
    return study([hard, cooperative, control], calls)


def full_study():
    """All alternatives, all roles, a question each of whose runs goes through every role."""
    runs = [run(name, returned_at_s=3.0, quiescent_at_s=3.0, busy_after_deadline_s=1.0) for name in NAMES]
    calls = [
        call(each, 0.3 * step, 0.3 * step + 0.25, call_id=role, role=role)
        for each in runs
        for step, role in enumerate(ROLES)
    ]
    return study(runs, calls)


def drawn(ax, prefix):
    """The bars and lines whose id begins so, by id."""
    artists = [*ax.patches, *ax.lines]
    return {a.get_gid(): a for a in artists if (a.get_gid() or "").startswith(prefix)}


def extent(bar):
    return bar.get_x(), bar.get_x() + bar.get_width()


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


# ---- names and colours


def test_every_alternative_has_one_colour_of_okabe_and_ito_that_no_other_has():
    assert list(plots.COLOURS) == list(default_alternatives())
    assert len(set(plots.COLOURS.values())) == len(plots.COLOURS) == 7
    assert set(plots.COLOURS.values()) < OKABE_ITO


@pytest.mark.parametrize(
    ("alternative", "options", "label"),
    [
        ("unguarded", "{}", "control  unguarded"),
        ("async_cancellation", "{}", "C  async cancellation"),
        ("hard_timeout", '{"naive": true}', "B  hard timeout (naive)"),
        ("stop_flag", '{"grace_s": 0.5}', "D  stop flag (grace_s=0.5)"),
        ("my_own", "{}", "my own"),
    ],
)
def test_an_alternative_is_called_by_letter_words_and_options(alternative, options, label):
    assert label_of(alternative, options) == label


# ---- timeline: what is drawn


def test_lanes_are_in_the_order_of_the_alternatives_whatever_the_order_of_the_rows():
    lanes = plots.lanes_frame(late_study())
    assert lanes["label"].tolist() == ["control  unguarded", "A  cooperative", "B  hard timeout"]
    labels = [text.get_text() for text in plots.timeline(late_study()).get_yticklabels()]
    assert [label for label in labels if label not in ROLES] == lanes["label"].tolist()
    assert labels[1:4] == ["retrieval", "synthesis", "validation"]
    assert len(labels) == 3 * (1 + 3)


def test_a_clients_call_is_a_bar_from_its_start_to_its_end_in_the_colour_of_the_alternative():
    bars = drawn(plots.timeline(late_study()), "call:")
    assert extent(bars["call:hard_timeout-7:c1:1"]) == pytest.approx((1.0, 5.0))
    assert extent(bars["call:cooperative-7:c1:1"]) == pytest.approx((1.0, 2.0))
    assert to_hex(bars["call:hard_timeout-7:c1:1"].get_facecolor()).upper() == plots.COLOURS["hard_timeout"]


def test_what_a_server_does_after_the_return_is_hatched_otherwise_than_what_it_does_late():
    ax = plots.timeline(late_study())
    abandoned, late = drawn(ax, "abandoned:"), drawn(ax, "late:")
    assert list(abandoned) == ["abandoned:hard_timeout-7:c1:1"]
    assert list(late) == ["late:unguarded-7:c1:1"]
    assert extent(abandoned["abandoned:hard_timeout-7:c1:1"]) == pytest.approx((2.0, 5.0))
    assert extent(late["late:unguarded-7:c1:1"]) == pytest.approx((2.0, 5.0))
    hatches = {bar.get_hatch() for bar in [*abandoned.values(), *late.values()]}
    assert len(hatches) == 2
    assert None not in hatches
    assert all(bar.get_hatch() is None for bar in drawn(ax, "call:").values())


def test_a_refused_call_is_a_cross_where_it_would_have_started():
    marks = drawn(plots.timeline(late_study()), "refused:")
    (mark,) = marks.values()
    assert mark.get_marker() == "x"
    assert mark.get_xdata().tolist() == [2.005]
    assert not any(":c2:" in gid for gid in drawn(plots.timeline(late_study()), "call:"))


def test_markers_stand_where_the_caller_had_its_answer_and_where_work_ended():
    ax = plots.timeline(late_study())
    returned, quiescent = drawn(ax, "returned:"), drawn(ax, "quiescent:")
    assert {name: line.get_xdata()[0] for name, line in returned.items()} == {
        "returned:unguarded-7": 5.0,
        "returned:cooperative-7": 2.01,
        "returned:hard_timeout-7": 2.0,
    }
    assert quiescent["quiescent:hard_timeout-7"].get_xdata()[0] == 5.0
    above, below = returned["returned:hard_timeout-7"], quiescent["quiescent:hard_timeout-7"]
    bar = drawn(ax, "call:")["call:hard_timeout-7:c1:1"]
    assert above.get_ydata()[0] < bar.get_y() < below.get_ydata()[0]
    assert above.get_marker() != below.get_marker()


def test_a_run_without_an_answer_points_past_the_horizon_and_its_open_call_is_drawn_up_to_it():
    hung = run("stop_flag", returned_at_s=NAN, quiescent_at_s=10.0, work_censored=True, busy_after_deadline_s=8.0)
    hung_study = study([hung], [call(hung, 1.2, NAN), call(hung, 1.2, NAN, "server")])
    frame, ax = plots.timeline_frame(hung_study), plots.timeline(hung_study)
    assert frame["open"].all()
    assert frame["mark"].tolist() == ["call", "late"]
    assert extent(drawn(ax, "late:")["late:stop_flag-7:c1:1"]) == pytest.approx((2.0, 10.0))
    for prefix in ("returned:", "quiescent:"):
        (marker,) = drawn(ax, prefix).values()
        assert (marker.get_marker(), marker.get_xdata()[0]) == (">", 10.0)
    (note,) = [text for text in texts(ax) if text.startswith("unfinished")]
    assert "caller overrun > 8 s\nwork overrun > 8 s" in note


def test_a_live_endpoint_has_nothing_hatched_and_says_why():
    live = run(returned_at_s=3.0, quiescent_at_s=3.0, busy_after_deadline_s=NAN, latency_profile="")
    ax = plots.timeline(study([live], [call(live, 1.0, 3.0)]))
    assert not drawn(ax, "late:")
    assert not drawn(ax, "abandoned:")
    assert any("no server log" in text for text in texts(ax))
    assert any("live services" in text for text in texts(ax))


def test_the_deadline_is_a_labelled_line_and_the_axis_says_seconds():
    ax = plots.timeline(late_study())
    assert drawn(ax, "deadline")["deadline"].get_xdata() == [2.0, 2.0]
    assert "deadline 2 s" in texts(ax)
    assert "(s)" in ax.get_xlabel()
    context = "supervisor · 2 s decision timeout · question q07 (seed 7) · typical/6 latencies · no faults · wall clock"
    assert context in texts(ax)


def test_the_legend_explains_what_is_there_and_nothing_else():
    labels = [text.get_text() for text in plots.timeline(late_study()).get_legend().get_texts()]
    for word in ("LLM", "retrieval", "still waiting", "abandoned", "refused", "caller returned", "all work ended"):
        assert any(word in label for label in labels)
    assert not any("observation ended" in label or "peer" in label for label in labels)


def test_a_timeline_of_one_alternative_is_titled_by_its_name_and_not_as_a_comparison():
    assert plots.timeline(study([run()])).get_title(loc="left") == "One question: A cooperative"
    both = plots.timeline(study([run(), run("hard_timeout")])).get_title(loc="left")
    assert both == "One question under each way to enforce its deadline"


def test_variants_of_one_alternative_have_lanes_of_their_own():
    naive = run("hard_timeout", run_id="naive", alternative_options='{"naive": true}')
    labels = plots.lanes_frame(study([naive, run("hard_timeout")]))["label"].tolist()
    assert labels == ["B  hard timeout", "B  hard timeout (naive)"]
    twins = plots.lanes_frame(study([run(run_id="one"), run(run_id="two")]))["label"].tolist()
    assert twins == ["A  cooperative one", "A  cooperative two"]


# ---- timeline: which question


def test_by_default_the_question_with_the_most_late_work_is_shown_and_the_least_seed_of_equals():
    busy = [(11, 1.0), (11, 1.5), (9, 2.5), (4, 2.0), (3, NAN)]
    runs = [run(seed=s, run_id=str(n), busy_after_deadline_s=b) for n, (s, b) in enumerate(busy)]
    assert set(plots.lanes_frame(study(runs))["seed"]) == {9}
    assert set(plots.lanes_frame(study(runs[:1] + runs[3:]))["seed"]) == {4}
    assert set(plots.lanes_frame(study(runs[:2] + runs[4:]))["seed"]) == {11}
    assert set(plots.lanes_frame(study(runs), seed=3)["seed"]) == {3}


def test_an_unknown_seed_or_run_is_refused_with_those_there_are():
    two = study([run(seed=4), run(seed=9)])
    with pytest.raises(ConfigurationError, match=r"seed 5 .* 4, 9"):
        plots.timeline(two, seed=5)
    with pytest.raises(ConfigurationError, match=r"run_ids has no run nobody"):
        plots.timeline(two, run_ids=["nobody"])
    assert not plt.get_fignums()


# ---- timeline: invariants of the frame

SPANS = st.lists(st.tuples(st.floats(0, 9), st.floats(0.001, 4), st.sampled_from(ROLES[:2])), min_size=1, max_size=12)


@FRAMES
@given(SPANS)
def test_calls_of_a_role_that_overlap_never_share_a_place(spans):
    own = run(horizon_s=20.0)
    calls = [call(own, at, at + s, call_id=str(n), role=role) for n, (at, s, role) in enumerate(spans)]
    frame = plots.timeline_frame(study([own], calls))
    assert len(frame) == len(spans)
    assert (frame["sublane"] < frame["sublanes"]).all()
    for first, second in combinations(frame.itertuples(), 2):
        apart = first.ended_at_s <= second.begun_at_s or second.ended_at_s <= first.begun_at_s
        same_size = first.sublanes == second.sublanes
        assert apart or first.role != second.role or (first.sublane != second.sublane and same_size)


@FRAMES
@given(
    st.lists(st.tuples(st.floats(0, 9.9), st.one_of(st.just(NAN), st.floats(0, 5))), max_size=8),
    st.one_of(st.just(NAN), st.floats(2.0, 9.9)),
)
def test_late_and_abandoned_add_up_to_the_busy_seconds_of_the_runs_table(spans, returned_at_s):
    own = run(returned_at_s=returned_at_s)
    calls = [call(own, at, min(10.0, at + s), "server", call_id=str(n)) for n, (at, s) in enumerate(spans)]
    frame = plots.timeline_frame(study([own], calls))
    assert set(frame["mark"]) <= {"late", "abandoned"}
    ends = [10.0 if math.isnan(each.ended_at_s) else each.ended_at_s for each in calls]
    busy_s = sum(max(0.0, end - max(each.started_at_s, 2.0)) for each, end in zip(calls, ends, strict=True))
    assert (frame["ended_at_s"] - frame["begun_at_s"]).sum() == pytest.approx(busy_s, abs=1e-9)


# ---- overrun


def overrun_study():
    runs = [run("cooperative", seed, returned_at_s=2.0 + 0.001 * seed, quiescent_at_s=2.002) for seed in (1, 2, 3)]
    runs += [run("unguarded", seed, returned_at_s=2.0 + seed, quiescent_at_s=2.0 + seed) for seed in (1, 2)]
    runs.append(run("unguarded", 3, returned_at_s=NAN, quiescent_at_s=10.0, work_censored=True))
    return study(runs)


def test_the_median_is_of_the_runs_past_the_deadline_and_a_lower_bound_once_half_of_those_are():
    summary = plots.overrun_summary(plots.overrun_frame(overrun_study())).set_index(["alternative", "overrun"])
    control = summary.loc[("unguarded", "caller")]
    assert (control["median_s"], control["low_s"], control["high_s"]) == (2.0, 1.0, 8.0)
    assert (control["runs"], control["lower_bounds"], control["median_is_lower_bound"]) == (3, 1, False)
    half = study([run(seed=1), run(seed=2, returned_at_s=NAN, quiescent_at_s=2.5)])
    summary = plots.overrun_summary(plots.overrun_frame(half)).set_index("overrun")
    assert summary.loc["caller", "median_is_lower_bound"]
    assert not summary.loc["work", "median_is_lower_bound"]


def test_no_median_is_of_a_run_that_was_in_time():
    """Trust 9: the mean of 0 and 1.691 is an overrun that no run had."""
    runs = [run("hard_timeout", seed, returned_at_s=1.0, quiescent_at_s=1.0 + 2.0 * (seed == 3)) for seed in (1, 2, 3)]
    summary = plots.overrun_summary(plots.overrun_frame(study(runs))).set_index("overrun")
    assert (summary.loc["work", "past"], summary.loc["work", "median_s"]) == (1, 1.0)
    assert (summary.loc["caller", "past"], math.isnan(summary.loc["caller", "median_s"])) == (0, True)
    ax = plots.overrun(study(runs))
    assert {"0 of 3", "1 of 3, median 1 s"} <= set(texts(ax))
    assert set(drawn(ax, "median:")) == {"median:0:work"}


def test_every_run_is_a_point_and_those_not_over_are_triangles_at_the_horizon():
    ax = plots.overrun(overrun_study())
    points, bounds = drawn(ax, "points:"), drawn(ax, "bounds:")
    assert sorted(points["points:0:caller"].get_xdata()) == [1.0, 2.0]
    assert sorted(points["points:1:caller"].get_xdata()) == pytest.approx([0.001, 0.002, 0.003])
    assert set(bounds) == {"bounds:0:caller", "bounds:0:work"}
    assert bounds["bounds:0:caller"].get_marker() == ">"
    assert bounds["bounds:0:caller"].get_xdata().tolist() == [8.0]
    assert drawn(ax, "horizon")["horizon"].get_xdata() == [8.0, 8.0]
    assert "3 of 3, median 2 s\n1 not answered by the horizon" in texts(ax)
    assert "3 of 3, median 2 s\n1 still at work at the horizon" in texts(ax)
    assert points["points:1:caller"].get_markerfacecolor() == plots.COLOURS["cooperative"]
    assert points["points:1:work"].get_markerfacecolor() == PAPER


def test_overruns_of_milliseconds_and_of_seconds_are_both_readable_on_one_scale():
    ax = plots.overrun(overrun_study())
    places = ax.transData.transform([(0.0, 0), (0.002, 0), (2.0, 0), (8.0, 0)])[:, 0]
    width = ax.bbox.width
    assert all(later - earlier > 0.04 * width for earlier, later in pairwise(places))
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0 s", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
    assert "ms, s" in ax.get_xlabel()


@pytest.mark.parametrize("plot", [plots.overrun, plots.completion])
@pytest.mark.parametrize(
    ("column", "value"), [("decision_timeout_s", 5.0), ("fault", "hang"), ("latency_profile", "fast"), ("clock", "x")]
)
def test_runs_under_several_conditions_are_not_pooled(plot, column, value):
    with pytest.raises(ConfigurationError, match=column):
        plot(study([run(seed=1), run(seed=2, **{column: value})]))


@pytest.mark.parametrize("plot", [plots.timeline, plots.overrun, plots.completion, plots.fault_matrix])
def test_a_study_without_runs_is_refused(plot):
    with pytest.raises(ConfigurationError, match="runs is empty"):
        plot(study([]))


# ---- completion


def completion_study():
    runs = [run("unguarded", seed, returned_at_s=1.0 + seed) for seed in (0, 1, 2)]
    runs.append(run("unguarded", 3, returned_at_s=NAN))
    runs.append(run("cooperative", 0, returned_at_s=1.0))
    runs += [run("cooperative", seed, returned_at_s=2.0, outcome="partial") for seed in (1, 2, 3)]
    return study(runs)


def steps_of(frame, alternative):
    return frame[frame["alternative"] == alternative][["at_s", "share"]].to_numpy().ravel()


def test_the_share_answered_is_of_all_runs_and_counts_answers_alone():
    frame = plots.completion_frame(completion_study())
    assert steps_of(frame, "unguarded") == pytest.approx([0, 0, 1, 0.25, 2, 0.5, 3, 0.75, 10, 0.75])
    assert steps_of(frame, "cooperative") == pytest.approx([0, 0, 1, 0.25, 10, 0.25])
    assert frame[frame["alternative"] == "unguarded"]["answered"].tolist() == [0, 1, 2, 3, 3]


RETURNS = st.lists(
    st.tuples(st.sampled_from(NAMES[:2]), st.sampled_from(["answered", "partial"]), st.floats(0.1, 9.9)), min_size=1
)


@FRAMES
@given(RETURNS)
def test_a_completion_curve_only_rises_and_ends_at_the_share_of_all_runs(returns):
    runs = [run(name, n, outcome=outcome, returned_at_s=at) for n, (name, outcome, at) in enumerate(returns)]
    frame = plots.completion_frame(study(runs))
    for name, steps in frame.groupby("alternative"):
        of_name = [outcome for other, outcome, _ in returns if other == name]
        assert steps["at_s"].is_monotonic_increasing
        assert steps["share"].is_monotonic_increasing
        assert steps["share"].iloc[-1] == pytest.approx(of_name.count("answered") / len(of_name))
        assert (steps["low"] <= steps["share"] + 1e-12).all()
        assert (steps["share"] <= steps["high"] + 1e-12).all()


def test_completion_curves_are_steps_with_their_colour_dashes_and_count():
    ax = plots.completion(completion_study())
    control, cooperative = drawn(ax, "completion:").values()
    assert control.get_drawstyle() == cooperative.get_drawstyle() == "steps-post"
    assert control.get_xydata().ravel() == pytest.approx([0, 0, 1, 0.25, 2, 0.5, 3, 0.75, 10, 0.75])
    assert (control.get_color(), cooperative.get_color()) == ("#000000", "#0072B2")
    assert control.get_linewidth() > cooperative.get_linewidth()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["control  unguarded: 3 of 4 answered", "A  cooperative: 1 of 4 answered"]
    assert drawn(ax, "deadline")["deadline"].get_xdata() == [2.0, 2.0]
    assert "4 questions" in texts(ax)[-1]


def test_a_curve_ends_where_the_last_runs_of_its_arm_were_cut():
    cut = [run("hard_timeout", seed, returned_at_s=2.0, outcome="timed_out") for seed in (1, 2)]
    frame = plots.completion_frame(study([run("hard_timeout", 0, returned_at_s=1.0), *cut]))
    assert frame["at_s"].tolist() == [0.0, 1.0, 2.0]
    assert frame["share"].tolist() == pytest.approx([0.0, 1 / 3, 1 / 3])


def bands_of(ax):
    """Left and right end of each band, by id."""
    found = {}
    for band in ax.collections:
        corners = band.get_paths()[0].vertices
        found.setdefault(band.get_gid(), []).append((corners[:, 0].min(), corners[:, 0].max()))
    return found


def test_a_band_that_two_arms_share_is_drawn_once_in_the_colour_of_the_first():
    # Both arms have 1 of 4 answered at 1 s; from 2 s on the control goes its own way.
    assert bands_of(plots.completion(completion_study())) == {"band:0": [(0.0, 10.0)], "band:1": [(2.0, 10.0)]}


# ---- fault matrix


def hang_study():
    """Under a hang the control has no answer by its horizon; A returns 20 ms late, once with documents, once not."""
    hung = [run("unguarded", seed, fault="hang:synthesis", returned_at_s=NAN, run_id=f"u{seed}") for seed in (1, 2)]
    cut = [
        run("cooperative", seed, fault="hang:synthesis", returned_at_s=2.02, run_id=f"a{seed}", outcome=outcome)
        for seed, outcome in ((1, "partial"), (2, "timed_out"))
    ]
    return study(hung + cut)


def healthy_study():
    return study([run(name, seed) for name in ("cooperative", "unguarded", "hard_timeout") for seed in (1, 2)])


def matrix_cell(frame, alternative, fault):
    (row,) = frame[(frame["alternative"] == alternative) & (frame["fault"] == fault)].itertuples()
    return row


def test_a_fault_matrix_has_a_row_for_each_alternative_and_a_column_for_each_fault_in_the_order_given():
    frame = plots.fault_matrix_frame(hang_study(), healthy_study())
    assert frame.drop_duplicates("column")["fault"].tolist() == ["hang:synthesis", "none"]
    labels = frame.drop_duplicates("row").sort_values("row")["label"].tolist()
    assert labels == ["control  unguarded", "A  cooperative", "B  hard timeout"]
    assert len(frame) == 5
    turned = plots.fault_matrix_frame(healthy_study(), hang_study())
    assert turned.drop_duplicates("column")["fault"].tolist() == ["none", "hang:synthesis"]


def test_a_cell_holds_when_its_worst_caller_was_back_in_tolerance_whatever_they_got():
    frame = plots.fault_matrix_frame(healthy_study(), hang_study())
    cut = matrix_cell(frame, "cooperative", "hang:synthesis")
    assert (cut.runs, cut.answered, cut.held, cut.outcomes) == (2, 0, True, "1 partial, 1 timed out")
    assert cut.caller_overrun_median_s == pytest.approx(0.02)
    late = [run(seed=seed, returned_at_s=at, run_id=str(seed)) for seed, at in ((1, 2.0), (2, 2.0), (3, 2.5))]
    (cell,) = plots.fault_matrix_frame(study(late)).itertuples()
    assert (cell.caller_overrun_median_s, cell.held) == (0.0, False)
    assert (cell.answered, cell.answered_in_time) == (3, 2)


def test_a_cell_without_answers_by_the_horizon_counts_with_it_as_a_lower_bound():
    cell = matrix_cell(plots.fault_matrix_frame(hang_study()), "unguarded", "hang:synthesis")
    assert (cell.caller_overrun_median_s, cell.caller_overrun_worst_s, cell.lower_bound) == (8.0, 8.0, True)
    assert not cell.held
    assert "unfinished\n> +8 s" in texts(plots.fault_matrix(hang_study()))


def test_cells_are_drawn_where_their_row_and_column_are_named_and_coloured_by_held():
    ax = plots.fault_matrix(healthy_study(), hang_study())
    assert [text.get_text() for text in ax.get_xticklabels()] == ["no fault", "hang:synthesis"]
    assert [text.get_text() for text in ax.get_yticklabels()][1] == "A  cooperative"
    cells = drawn(ax, "cell:")
    assert set(cells) == {"cell:0:0", "cell:0:1", "cell:1:0", "cell:1:1", "cell:2:0"}
    assert (cells["cell:1:1"].get_x(), cells["cell:1:1"].get_y()) == (0.5, 0.5)
    held, broken = cells["cell:1:1"].get_facecolor(), cells["cell:0:1"].get_facecolor()
    assert {cell.get_facecolor() for name, cell in cells.items() if name != "cell:0:1"} == {held}
    # Apart in lightness too, for those who see no hue and for a grey print.
    assert sum(held[:3]) - sum(broken[:3]) > 0.5


def test_the_legend_names_the_tolerance_and_only_what_is_there():
    labels = [text.get_text() for text in plots.fault_matrix(healthy_study()).get_legend().get_texts()]
    assert "held: every caller was back within 150 ms of the deadline" in labels
    assert "not held" not in labels
    assert "bold: every run was answered in time" in labels


def test_a_matrix_of_other_conditions_than_faults_is_refused():
    with pytest.raises(ConfigurationError, match="decision_timeout_s"):
        plots.fault_matrix(healthy_study(), study([run(seed=3, fault="hang", decision_timeout_s=5.0)]))
    retried = study([run("hard_timeout", n, fault="hang", retries=f"sdk:{n}") for n in (0, 2)])
    with pytest.raises(ConfigurationError, match=r"B hard timeout under fault hang .* retries \(sdk:0, sdk:2\)"):
        plots.fault_matrix(retried)
    with pytest.raises(ConfigurationError, match="given twice"):
        plots.fault_matrix(healthy_study(), healthy_study())
    with pytest.raises(ConfigurationError, match="needs a study"):
        plots.fault_matrix()
    assert not plt.get_fignums()


# ---- agreement


def both_clocks(*wall_s, virtual_s=1.6, names=("cooperative",)):
    """Runs that were back at 1.6 s in virtual time, and at these instants on the wall clock."""
    sides = {
        clock: study(
            [
                run(name, seed, clock=clock, returned_at_s=at_s, outcome="answered" if at_s <= 2.0 else "partial")
                for name in names
                for seed, at_s in enumerate(returns_s)
            ]
        )
        for clock, returns_s in (("virtual", [virtual_s] * len(wall_s)), ("wall", wall_s))
    }
    return agreement(sides["virtual"], sides["wall"])


def test_each_pair_is_a_point_at_its_signed_share_and_hollow_when_the_outcome_was_another():
    ax = plots.agreement(both_clocks(1.6, 2.0, 1.28, 3.2))
    points, misses = drawn(ax, "points:")["points:0"], drawn(ax, "misses:")["misses:0"]
    assert points.get_xdata().tolist() == pytest.approx([0.0, 20.0, -25.0])
    assert misses.get_xdata().tolist() == pytest.approx([50.0])
    assert points.get_markerfacecolor() == misses.get_markeredgecolor() == plots.COLOURS["cooperative"]
    assert misses.get_markerfacecolor() == PAPER
    assert points.get_marker() != misses.get_marker()


def test_the_median_and_the_range_of_a_mean_are_drawn_and_said():
    ax = plots.agreement(both_clocks(1.6, 1.62, 1.64))
    percent = 100 * 0.02 / 1.62
    assert drawn(ax, "median:")["median:0"].get_xdata()[0] == pytest.approx(percent)
    assert {line.get_xdata()[0] for line in drawn(ax, "target:").values()} == {-1.0, 1.0}
    assert "mean error 1.2 %\nmedian 20 ms later" in texts(ax)
    assert "mean error: at most 1 %" in texts(ax)
    assert "%" in ax.get_xlabel()
    assert "2 s decision timeout · 3 questions · 100.0% of 3 pairs with the same outcome" in texts(ax)


def test_rows_are_in_the_order_of_the_alternatives_and_a_legend_names_only_what_is_there():
    found = both_clocks(1.61, 1.62, names=("stop_flag", "unguarded"))
    ax = plots.agreement(found)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["control  unguarded", "D  stop flag"]
    assert plots.agreement_frame(found).groupby("seed")["jitter"].nunique().tolist() == [1, 1]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a run on both clocks", "line: median"]


def test_pairs_without_a_return_are_refused():
    with pytest.raises(ConfigurationError, match="pairs has no run that returned"):
        plots.agreement(both_clocks(math.nan, virtual_s=math.nan))


# ---- every figure


def agreement_of_all(_, *, ax=None):
    """The figure of agreement, like the others a function of a study; its own runs have points near and far."""
    return plots.agreement(both_clocks(1.605, 1.62, 1.9, 2.4, names=default_alternatives()), ax=ax)


PLOTS = (plots.timeline, plots.overrun, plots.completion, plots.fault_matrix, agreement_of_all)


@pytest.mark.parametrize("plot", PLOTS)
def test_axes_that_are_handed_in_come_back_dark_on_white_even_under_a_dark_style(plot):
    assert_dark_on_white(plot, full_study())


@pytest.mark.parametrize("plot", PLOTS)
def test_text_is_of_8_pt_at_least_and_none_covers_another_or_the_data(plot):
    ax = plot(full_study())
    assert_words_apart(ax)
    assert ax.get_legend().get_window_extent().y1 < ax.bbox.y0


# ---- files


def test_save_figures_writes_whole_pngs_and_leaves_nothing_else(tmp_path):
    folder = tmp_path / "new" / "figures"
    paths = plots.save_figures(late_study(), folder)
    assert [path.name for path in paths] == ["timeline.png", "overrun.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000 for path in paths)
    before = paths[0].read_bytes()
    plots.save_figures(full_study(), str(folder))
    assert paths[0].read_bytes() != before
    assert sorted(path.name for path in folder.iterdir()) == ["overrun.png", "timeline.png"]
    assert plt.get_fignums() == []


def test_save_figures_writes_nothing_when_one_picture_cannot_be_drawn(tmp_path):
    mixed = study([run(seed=1), run(seed=2, decision_timeout_s=5.0)])
    with pytest.raises(ConfigurationError, match="decision_timeout_s"):
        plots.save_figures(mixed, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_renamed_leaves_no_temporary_one(tmp_path):
    (tmp_path / "timeline.png").mkdir()
    with pytest.raises(OSError, match=r"timeline\.png"):
        plots.save_figures(late_study(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["timeline.png"]


@pytest.mark.full
def test_importing_plots_does_not_import_pyplot():
    code = "import sys, docmind_lab.analysis.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
