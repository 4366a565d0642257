"""Figures of load studies: what is drawn is what the tables say."""

from pathlib import Path

import pandas as pd
import pytest
from drawn_figures import described
from golden import assert_golden

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.load.measures import load_summary
from docmind_lab.views.plots.goodputs import abandoned_share, goodput, goodput_frame

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


def test_what_the_figures_of_load_draw():
    """Every replicate a point, every arm a line through its means with their intervals, and the line of all in time."""
    figures = {
        "goodput": goodput(MadeUp()),
        "abandoned work": abandoned_share(MadeUp()),
        "no abandoned work": abandoned_share(MadeUp(abandoned_share=0.0)),
    }
    assert_golden(Path(__file__).with_suffix(".txt"), {name: described(ax) for name, ax in figures.items()})


def test_what_cannot_be_drawn_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="measure"):
        goodput_frame(MadeUp(), "speed")
    with pytest.raises(ConfigurationError, match="abandoned_share"):
        abandoned_share(MadeUp(abandoned_share=float("nan"), slots=pd.NA))
    study = MadeUp()
    study.frame.loc[0, "arrivals"] = "constant"
    with pytest.raises(ConfigurationError, match=r"arrivals.*constant, poisson"):
        goodput(study)
