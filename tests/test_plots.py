import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from drawn_figures import assert_dark_on_white, assert_words_apart, described
from golden import assert_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_calls import call as made_up_call
from sample_runs import sample_run, study_of

from docmind_lab.core.alternative_catalogue import default_alternatives, label_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.findings.agreement import agreement
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.frames import to_frame
from docmind_lab.views import plots
from docmind_lab.views.plots.frontiers import MEASURES, frontier, frontier_frame

NAMES = ("unguarded", "cooperative", "hard_timeout", "async_cancellation", "stop_flag")
ROLES = ("supervisor", "router", "planner", "retrieval", "synthesis", "validation")
# Building a frame takes milliseconds, and a first one longer than Hypothesis expects of an example.
FRAMES = settings(max_examples=15, deadline=None)
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


def call(of, begun_at_s, ended_at_s, seen_from="client", **changes):
    row = {"call_id": "c1", "role": "synthesis", "alternative": of.alternative, "seen_from": seen_from}
    row |= {"started_after_deadline": begun_at_s > of.decision_timeout_s} | changes
    return made_up_call(of.run_id, row.pop("role"), begun_at_s, ended_at_s, **row)


def late_study():
    """The control answers at 5 s; B leaves at 2 s and its work goes on to 5 s; A is cut at the deadline."""
    control = run("unguarded", returned_at_s=5.0, quiescent_at_s=5.0, busy_after_deadline_s=3.0)
    hard = run("hard_timeout", returned_at_s=2.0, quiescent_at_s=5.0, busy_after_deadline_s=3.0, outcome="timed_out")
    cooperative = run("cooperative", returned_at_s=2.01, quiescent_at_s=2.0, outcome="partial")
    calls = [call(each, 1.0, 5.0, seen) for each in (control, hard) for seen in ("client", "server")]
    calls += [call(cooperative, 1.0, 2.0, seen) for seen in ("client", "server")]
    calls.append(call(cooperative, 0.5, 0.6, call_id="r1", kind="retrieval", role="retrieval"))
    calls.append(call(cooperative, 2.005, 2.005, call_id="c2", role="validation", outcome="refused"))
    return study_of([hard, cooperative, control], calls)


def full_study():
    """All alternatives, all roles, a question each of whose runs goes through every role."""
    runs = [run(name, returned_at_s=3.0, quiescent_at_s=3.0, busy_after_deadline_s=1.0) for name in NAMES]
    calls = [
        call(each, 0.3 * step, 0.3 * step + 0.25, call_id=role, role=role)
        for each in runs
        for step, role in enumerate(ROLES)
    ]
    return study_of(runs, calls)


# ---- names and colours


def test_two_modes_of_the_nodes_of_one_alternative_have_rows_of_their_own():
    runs = [run(seed=seed, node_mode=mode) for mode in ("sync", "own") for seed in (7, 8)]
    labels = plots.overrun_frame(study_of(runs)).drop_duplicates("group")["label"]
    assert list(labels) == ["A  cooperative, node mode own", "A  cooperative, node mode sync"]


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


# ---- timeline: which question


def test_by_default_the_question_with_the_most_late_work_is_shown_and_the_least_seed_of_equals():
    busy = [(11, 1.0), (11, 1.5), (9, 2.5), (4, 2.0), (3, NAN)]
    runs = [run(seed=s, run_id=str(n), busy_after_deadline_s=b) for n, (s, b) in enumerate(busy)]
    assert set(plots.lanes_frame(study_of(runs))["seed"]) == {9}
    assert set(plots.lanes_frame(study_of(runs[:1] + runs[3:]))["seed"]) == {4}
    assert set(plots.lanes_frame(study_of(runs[:2] + runs[4:]))["seed"]) == {11}
    assert set(plots.lanes_frame(study_of(runs), seed=3)["seed"]) == {3}


def test_an_unknown_seed_is_refused_with_those_there_are():
    two = study_of([run(seed=4), run(seed=9)])
    with pytest.raises(ConfigurationError, match=r"seed 5 .* 4, 9"):
        plots.timeline(two, seed=5)
    assert not plt.get_fignums()


# ---- timeline: invariants of the frame

SPANS = st.lists(st.tuples(st.floats(0, 9), st.floats(0.001, 4), st.sampled_from(ROLES[:2])), min_size=1, max_size=12)


@FRAMES
@given(SPANS)
def test_calls_of_a_role_that_overlap_never_share_a_place(spans):
    own = run(horizon_s=20.0)
    calls = [call(own, at, at + s, call_id=str(n), role=role) for n, (at, s, role) in enumerate(spans)]
    frame = plots.timeline_frame(study_of([own], calls))
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
    frame = plots.timeline_frame(study_of([own], calls))
    assert set(frame["mark"]) <= {"late", "abandoned"}
    ends = [10.0 if math.isnan(each.ended_at_s) else each.ended_at_s for each in calls]
    busy_s = sum(max(0.0, end - max(each.started_at_s, 2.0)) for each, end in zip(calls, ends, strict=True))
    assert (frame["ended_at_s"] - frame["begun_at_s"]).sum() == pytest.approx(busy_s, abs=1e-9)


# ---- overrun


def overrun_study():
    runs = [run("cooperative", seed, returned_at_s=2.0 + 0.001 * seed, quiescent_at_s=2.002) for seed in (1, 2, 3)]
    runs += [run("unguarded", seed, returned_at_s=2.0 + seed, quiescent_at_s=2.0 + seed) for seed in (1, 2)]
    runs.append(run("unguarded", 3, returned_at_s=NAN, quiescent_at_s=10.0, work_censored=True))
    return study_of(runs)


@pytest.mark.parametrize("plot", [plots.overrun, plots.completion])
@pytest.mark.parametrize(
    ("column", "value"), [("decision_timeout_s", 5.0), ("fault", "hang"), ("latency_profile", "fast"), ("clock", "x")]
)
def test_runs_under_several_conditions_are_not_pooled(plot, column, value):
    with pytest.raises(ConfigurationError, match=column):
        plot(study_of([run(seed=1), run(seed=2, **{column: value})]))


@pytest.mark.parametrize("plot", [plots.timeline, plots.overrun, plots.completion])
def test_a_study_without_runs_is_refused(plot):
    with pytest.raises(ConfigurationError, match="runs is empty"):
        plot(study_of([]))


# ---- completion


def completion_study():
    runs = [run("unguarded", seed, returned_at_s=1.0 + seed) for seed in (0, 1, 2)]
    runs.append(run("unguarded", 3, returned_at_s=NAN))
    runs.append(run("cooperative", 0, returned_at_s=1.0))
    runs += [run("cooperative", seed, returned_at_s=2.0, outcome="partial") for seed in (1, 2, 3)]
    return study_of(runs)


# ---- agreement


def both_clocks(*wall_s, virtual_s=1.6, names=("cooperative",)):
    """Runs that were back at 1.6 s in virtual time, and at these instants on the wall clock."""
    sides = {
        clock: study_of(
            [
                run(name, seed, clock=clock, returned_at_s=at_s, outcome="answered" if at_s <= 2.0 else "partial")
                for name in names
                for seed, at_s in enumerate(returns_s)
            ]
        )
        for clock, returns_s in (("virtual", [virtual_s] * len(wall_s)), ("wall", wall_s))
    }
    return agreement(sides["virtual"], sides["wall"])


def test_pairs_without_a_return_are_refused():
    with pytest.raises(ConfigurationError, match="pairs has no run that returned"):
        plots.agreement(both_clocks(math.nan, virtual_s=math.nan))


# ---- frontier

BUDGETS_S = (10.0, 20.0, 40.0)


def swept(*names, seeds=8, **changes):
    """Each budget answers two more of eight; recall is ½ where there is no answer."""
    records = []
    for name in names or ("unguarded", "cooperative", "hard_timeout"):
        for place, budget_s in enumerate(BUDGETS_S):
            for seed in range(seeds):
                in_time = seed < 2 * (place + 1)
                values = {"decision_timeout_s": budget_s, "horizon_s": 5 * budget_s, "answered_in_time": in_time}
                values |= {"source_recall": 1.0 if in_time else 0.5, "outcome": "answered" if in_time else "partial"}
                records.append(sample_run(name, seed, run_id=f"{name}-{budget_s}-{seed}", **(values | changes)))
    return SimpleNamespace(runs=to_frame("runs", records), calls=to_frame("calls", []), events=to_frame("events", []))


def test_a_point_is_the_share_of_all_runs_with_wilson_s_interval():
    frame = frontier_frame(swept("cooperative"))
    assert frame["mean"].tolist() == [0.25, 0.5, 0.75]
    assert frame["decision_timeout_s"].tolist() == list(BUDGETS_S)
    found = share_interval(2, 8)
    assert (frame["low"].iloc[0], frame["high"].iloc[0]) == pytest.approx((found.low, found.high))
    assert set(frame["runs"]) == {8}
    # A recall that is all or nothing is a share.
    runs = swept("cooperative").runs
    all_or_nothing = SimpleNamespace(runs=runs.assign(source_recall=runs["answered_in_time"].astype("float64")))
    frame = frontier_frame(all_or_nothing, "source_recall")
    assert (frame["low"].iloc[0], frame["high"].iloc[0]) == pytest.approx((found.low, found.high))


def test_the_interval_of_a_recall_keeps_its_width_when_all_runs_are_alike():
    alike = frontier_frame(swept("cooperative", source_recall=1.0), "source_recall")
    assert alike["high"].to_numpy() == pytest.approx(1.0)
    assert (alike["low"] < 0.7).all()


def test_runs_that_make_no_frontier_are_refused_by_name():
    study = swept()
    with pytest.raises(ConfigurationError, match="measure must be one of answered_in_time"):
        frontier(study, "answer")
    with pytest.raises(ConfigurationError, match="several values of decision_timeout_s"):
        frontier(SimpleNamespace(runs=study.runs[study.runs["decision_timeout_s"] == 10.0]))
    with pytest.raises(ConfigurationError, match="several values of fault"):
        frontier(SimpleNamespace(runs=study.runs.assign(fault=["none", "hang"] * (len(study.runs) // 2))))
    with pytest.raises(ConfigurationError, match="source_recall is not known for 72 runs"):
        frontier(SimpleNamespace(runs=study.runs.assign(source_recall=math.nan)), "source_recall")
    assert not plt.get_fignums()


# ---- what is drawn

HUNG = run("stop_flag", returned_at_s=NAN, quiescent_at_s=10.0, work_censored=True, busy_after_deadline_s=8.0)
LIVE = run(returned_at_s=3.0, quiescent_at_s=3.0, busy_after_deadline_s=NAN, latency_profile="")
VARIANTS = [
    run("hard_timeout", run_id="naive", alternative_options='{"naive": true}'),
    run("hard_timeout"),
    *(run(run_id=name) for name in ("one", "two")),
]
# Trust 9: the mean of 0 and 1.691 is an overrun that no run had.
MOSTLY_IN_TIME = [
    run("hard_timeout", seed, returned_at_s=1.0, quiescent_at_s=1.0 + 2 * (seed == 3)) for seed in (1, 2, 3)
]


def test_what_each_figure_draws():
    """What a person has looked at and found right: colours, hatches, marks, words, and where all of it stands."""
    hung = study_of([HUNG], [call(HUNG, 1.2, NAN), call(HUNG, 1.2, NAN, "server")])
    live = study_of([LIVE], [call(LIVE, 1.0, 3.0)])
    figures = {
        "timeline, late work": plots.timeline(late_study()),
        "timeline, no answer by the horizon": plots.timeline(hung),
        "timeline, a live endpoint": plots.timeline(live),
        "timeline, variants": plots.timeline(study_of(VARIANTS)),
        "overrun": plots.overrun(overrun_study()),
        "overrun, most runs in time": plots.overrun(study_of(MOSTLY_IN_TIME)),
        "completion": plots.completion(completion_study()),
        "agreement": plots.agreement(both_clocks(1.6, 2.0, 1.28, 3.2)),
        "agreement, two alternatives": plots.agreement(both_clocks(1.61, 1.62, names=("stop_flag", "unguarded"))),
    }
    figures |= {f"frontier, {measure}": frontier(swept(), measure) for measure in MEASURES}
    frames = {
        "bars of a timeline": plots.timeline_frame(hung),
        "rows of an overrun": plots.overrun_summary(plots.overrun_frame(overrun_study())),
        "rows of an overrun, half at the horizon": plots.overrun_summary(
            plots.overrun_frame(study_of([run(seed=1), run(seed=2, returned_at_s=NAN, quiescent_at_s=2.5)]))
        ),
        "steps of completion": plots.completion_frame(completion_study()),
    }
    texts = {name: described(ax) for name, ax in figures.items()}
    texts |= {name: frame.to_csv(index=False, float_format="%.4g") for name, frame in frames.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


# ---- every figure


def agreement_of_all(_, *, ax=None):
    """The figure of agreement, like the others a function of a study; its own runs have points near and far."""
    return plots.agreement(both_clocks(1.605, 1.62, 1.9, 2.4, names=default_alternatives()), ax=ax)


PLOTS = (plots.timeline, plots.overrun, plots.completion, agreement_of_all)


@pytest.mark.parametrize("plot", PLOTS)
def test_axes_that_are_handed_in_come_back_dark_on_white_even_under_a_dark_style(plot):
    assert_dark_on_white(plot, full_study())


def test_a_frontier_is_dark_on_white_and_its_words_are_apart_with_every_alternative():
    assert_dark_on_white(frontier, swept())
    assert_words_apart(frontier(swept(*default_alternatives()), "source_recall"))


@pytest.mark.parametrize("plot", PLOTS)
def test_text_is_of_8_pt_at_least_and_none_covers_another_or_the_data(plot):
    ax = plot(full_study())
    assert_words_apart(ax)
    assert ax.get_legend().get_window_extent().y1 < ax.bbox.y0


# ---- files


def test_save_figures_writes_whole_pngs_and_leaves_nothing_else(tmp_path):
    folder = tmp_path / "new" / "figures"
    paths = plots.save_figures(late_study(), str(folder))
    assert [path.name for path in paths] == ["timeline.png", "overrun.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000 for path in paths)
    assert sorted(path.name for path in folder.iterdir()) == ["overrun.png", "timeline.png"]
    assert plt.get_fignums() == []


def test_save_figures_writes_nothing_when_one_picture_cannot_be_drawn(tmp_path):
    mixed = study_of([run(seed=1), run(seed=2, fault="hang")])
    with pytest.raises(ConfigurationError, match="fault"):
        plots.save_figures(mixed, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_renamed_leaves_no_temporary_one(tmp_path):
    (tmp_path / "timeline.png").mkdir()
    with pytest.raises(OSError, match=r"timeline\.png"):
        plots.save_figures(late_study(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["timeline.png"]


@pytest.mark.full
def test_importing_plots_does_not_import_pyplot():
    code = "import sys, docmind_lab.views.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
