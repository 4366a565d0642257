from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from drawn_figures import assert_dark_on_white, assert_words_apart, described, words_of
from golden import assert_golden
from sample_runs import sample_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import decision_table, scorecard
from docmind_lab.tables.frames import to_frame
from docmind_lab.views.plots.scorecards import scorecard_totals, scorecard_weights

# What the late runs of an arm were like: A keeps its deadline, B leaves work behind, C waits too long, D by a little.
LATE = {
    "unguarded": {"caller_overrun_s": 2.0, "busy_after_deadline_s": 2.0},
    "cooperative": {},
    "hard_timeout": {"busy_after_deadline_s": 2.0, "source_recall": 0.0},
    "async_cancellation": {"caller_overrun_s": 4.0, "source_recall": 0.0},
    "stop_flag": {"caller_overrun_s": 0.5},
    "hybrid": {},
}


def card_of(*left_out, seeds=12):
    records = []
    for name, changes in LATE.items():
        if name in left_out:
            continue
        for seed in range(seeds):
            late = {
                "answered_in_time": False,
                "outcome": "partial",
                "returned_at_s": 2.0,
                "source_recall": 0.5,
            } | changes
            records.append(sample_run(name, seed, **({} if seed % 3 else late)))
    return scorecard(to_frame("runs", records), resamples=100)


@pytest.fixture(scope="module")
def card():
    return card_of()


@pytest.fixture(scope="module")
def open_card():
    """Without A, no option is best in everything, and the weights decide."""
    return card_of("cooperative")


def test_what_the_figures_of_a_scorecard_draw(card, open_card):
    """Under every weight the option that wins; the star of ADR-056 at its weights; judged beside measured."""
    figures = {
        "totals": scorecard_totals(card),
        "weights, Perf measured, without A": scorecard_weights(open_card),
        "weights, Perf judged": scorecard_weights(card, perf="judged"),
    }
    assert_golden(Path(__file__).with_suffix(".txt"), {name: described(ax) for name, ax in figures.items()})


def test_another_perf_or_number_of_criteria_is_refused(card):
    with pytest.raises(ConfigurationError, match="perf must be judged or measured, not 'guessed'"):
        scorecard_weights(card, perf="guessed")
    table = decision_table("ADR-011")
    four = SimpleNamespace(table=table, weight_map=pd.DataFrame({"perf": ["measured"]}))
    with pytest.raises(ConfigurationError, match=r"ADR-011 has 4 criteria .*winners\(\)"):
        scorecard_weights(four)
    assert not plt.get_fignums()


@pytest.mark.parametrize("plot", [scorecard_weights, scorecard_totals])
def test_axes_that_are_handed_in_come_back_dark_on_white_even_under_a_dark_style(plot, card):
    assert_dark_on_white(plot, card)


@pytest.mark.parametrize("plot", [scorecard_weights, scorecard_totals])
def test_no_text_covers_another_and_all_of_it_is_on_the_page(plot, open_card):
    ax = plot(open_card)
    assert_words_apart(ax)
    page = ax.figure.bbox
    boxes = [text.get_window_extent() for text in words_of(ax)]
    assert all(page.y0 <= box.y0 and box.y1 <= page.y1 + 1 for box in boxes)
