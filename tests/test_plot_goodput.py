"""Figures of load studies: what is drawn is what the tables say."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from docmind_lab.analysis.plots.goodputs import abandoned_share, goodput, goodput_frame
from docmind_lab.analysis.plots.look import COLOURS
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.load.measures import load_summary

LOADS = (0.2, 0.5)
ARMS = {"cooperative": "A  cooperative", "hard_timeout": "B  hard timeout"}


class MadeUp:
    """Measures of two arms at two loads in four replicates; nothing here was measured."""

    title = "supervisor under load · 20 s decision timeout"

    def __init__(self, replicates=4, **changes):
        rows = [
            {
                "arm": arm,
                "alternative": name,
                "arrivals": "poisson",
                "offered_per_s": load,
                "replicate": replicate,
                "slots": 4,
                "callers": pd.NA,
                "counted": 100,
                "window_s": 100.0,
                "arrived_per_s": load,
                "goodput_per_s": load - 0.1 * place - 0.01 * replicate,
                "share_in_time": 0.5,
                "response_median_s": 10.0,
                "live_queue_wait_s": 1.0,
                "busy_share": 0.9,
                "abandoned_share": 0.2 * place,
                "late_max_s": 0.0,
                **changes,
            }
            for load in LOADS
            for place, (name, arm) in enumerate(ARMS.items())
            for replicate in range(replicates)
        ]
        frame = pd.DataFrame(rows)
        self.frame = frame.assign(arm=pd.Categorical(frame["arm"], list(ARMS.values()), ordered=True))

    def replicates(self):
        return self.frame

    def summary(self):
        return load_summary(self.frame)


@pytest.fixture(autouse=True)
def no_figure_left():
    yield
    plt.close("all")


def by_gid(ax):
    return {line.get_gid(): line for line in ax.lines}


def test_every_replicate_is_a_point_and_every_arm_a_line_through_its_means():
    study = MadeUp()
    lines = by_gid(goodput(study))
    for place, name in enumerate(ARMS):
        mine = study.frame[study.frame["alternative"] == name]
        assert sorted(lines[f"replicates:{place}"].get_ydata()) == sorted(mine["goodput_per_s"])
        means, points = lines[f"means:{place}"], lines[f"replicates:{place}"]
        assert tuple(means.get_xdata()) == LOADS
        assert means.get_ydata() == pytest.approx([load - 0.1 * place - 0.015 for load in LOADS])
        assert to_hex(means.get_color()) == to_hex(points.get_markerfacecolor()) == COLOURS[name].lower()


def test_the_ideal_line_is_where_everything_that_arrives_is_answered():
    ideal = by_gid(goodput(MadeUp()))["ideal"]
    assert list(ideal.get_xdata()) == list(ideal.get_ydata()) == [0.0, max(LOADS)]


def test_intervals_are_drawn_around_the_means_and_named():
    ax = goodput(MadeUp())
    bars = np.array([segment for collection in ax.collections for segment in collection.get_segments()])
    frame = goodput_frame(MadeUp()).drop_duplicates(["group", "offered_per_s"])
    assert sorted(bars[:, :, 1].ravel()) == pytest.approx(sorted([*frame["low"], *frame["high"]]))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [*ARMS.values(), "one replicate", "95 % interval of the mean"]


def test_abandoned_work_is_a_share_of_capacity_and_nothing_is_seen_clear_of_the_axis():
    ax = abandoned_share(MadeUp())
    assert list(by_gid(ax)["means:1"].get_ydata()) == pytest.approx([0.2, 0.2])
    assert ax.get_ylim()[0] < 0.0
    assert "capacity" in ax.get_ylabel()
    assert abandoned_share(MadeUp(abandoned_share=0.0)).get_ylim()[1] == pytest.approx(0.1)


def test_what_cannot_be_drawn_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="measure"):
        goodput_frame(MadeUp(), "speed")
    with pytest.raises(ConfigurationError, match="abandoned_share"):
        abandoned_share(MadeUp(abandoned_share=float("nan"), slots=pd.NA))
    study = MadeUp()
    study.frame.loc[0, "arrivals"] = "constant"
    with pytest.raises(ConfigurationError, match=r"arrivals.*constant, poisson"):
        goodput(study)
