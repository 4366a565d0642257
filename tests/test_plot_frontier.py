import math
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn_figures import assert_dark_on_white, assert_words_apart, described
from golden import assert_golden
from sample_runs import sample_run

from docmind_lab.core.catalogue import default_alternatives
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.frames import to_frame
from docmind_lab.views.plots.frontiers import MEASURES, frontier, frontier_frame

BUDGETS_S = (10.0, 20.0, 40.0)


def sweep(*names, seeds=8, **changes):
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
    frame = frontier_frame(sweep("cooperative"))
    assert frame["mean"].tolist() == [0.25, 0.5, 0.75]
    assert frame["decision_timeout_s"].tolist() == list(BUDGETS_S)
    found = share_interval(2, 8)
    assert (frame["low"].iloc[0], frame["high"].iloc[0]) == pytest.approx((found.low, found.high))
    assert set(frame["runs"]) == {8}


def test_the_interval_of_a_recall_that_is_all_or_nothing_is_that_of_the_share():
    runs = sweep("cooperative").runs
    all_or_nothing = SimpleNamespace(runs=runs.assign(source_recall=runs["answered_in_time"].astype("float64")))
    frame = frontier_frame(all_or_nothing, "source_recall")
    found = share_interval(2, 8)
    assert (frame["low"].iloc[0], frame["high"].iloc[0]) == pytest.approx((found.low, found.high))


def test_the_interval_of_a_recall_keeps_its_width_when_all_runs_are_alike_and_covers_a_known_mean():
    alike = frontier_frame(sweep("cooperative", source_recall=1.0), "source_recall")
    assert alike["high"].to_numpy() == pytest.approx(1.0)
    assert (alike["low"] < 0.7).all()
    # Recalls of 0, ½ and 1: at least 95 % of 120 intervals of a seeded draw hold the mean, since they are cautious.
    generator = np.random.default_rng(5)
    runs = sweep("cooperative", seeds=20).runs
    held = 0
    for _ in range(40):
        drawn_runs = runs.assign(source_recall=generator.choice([0.0, 0.5, 1.0], len(runs), p=[0.2, 0.3, 0.5]))
        frame = frontier_frame(SimpleNamespace(runs=drawn_runs), "source_recall")
        held += int(((frame["low"] <= 0.65) & (frame["high"] >= 0.65)).sum())
    assert held >= 0.95 * 120


def test_what_a_frontier_draws():
    """The means with their bars, every run beside them, and lines that coincide a little apart."""
    figures = {measure: described(frontier(sweep(), measure)) for measure in MEASURES}
    assert_golden(Path(__file__).with_suffix(".txt"), figures)


def test_runs_that_cannot_be_drawn_are_refused_by_name():
    study = sweep()
    with pytest.raises(ConfigurationError, match="measure must be one of answered_in_time"):
        frontier(study, "answer")
    with pytest.raises(ConfigurationError, match="several values of decision_timeout_s"):
        frontier(SimpleNamespace(runs=study.runs[study.runs["decision_timeout_s"] == 10.0]))
    with pytest.raises(ConfigurationError, match="several values of fault"):
        frontier(SimpleNamespace(runs=study.runs.assign(fault=["none", "hang"] * (len(study.runs) // 2))))
    with pytest.raises(ConfigurationError, match="source_recall is not known for 72 runs"):
        frontier(SimpleNamespace(runs=study.runs.assign(source_recall=math.nan)), "source_recall")
    assert not plt.get_fignums()


def test_axes_that_are_handed_in_come_back_dark_on_white_even_under_a_dark_style():
    assert_dark_on_white(frontier, sweep())


def test_no_text_covers_another_with_every_alternative_in_the_picture():
    assert_words_apart(frontier(sweep(*default_alternatives()), "source_recall"))
