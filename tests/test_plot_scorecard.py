from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn_figures import assert_dark_on_white, assert_words_apart, words_of
from matplotlib.colors import to_hex, to_rgba
from sample_runs import sample_run

from docmind_lab.analysis.findings import decision_table, scorecard
from docmind_lab.analysis.plots.look import COLOURS
from docmind_lab.analysis.plots.scorecards import scorecard_totals, scorecard_weights
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.core.errors import ConfigurationError

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


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(ax, prefix):
    return {line.get_gid(): line for line in ax.get_lines() if str(line.get_gid()).startswith(prefix)}


def cells_of(ax):
    return {cells.get_gid(): cells for cells in ax.collections}


def test_every_weight_is_a_cell_in_the_colour_of_the_option_that_wins_under_it(open_card):
    ax = scorecard_weights(open_card)
    cells = cells_of(ax)
    frame = open_card.weight_map[open_card.weight_map["perf"] == "measured"]
    assert sum(len(found.get_paths()) for found in cells.values()) == len(frame) == 5151
    levels = open_card.totals.set_index("option")["alternative"]
    for winner in frame["winner"].unique():
        found = cells[f"won:{winner or 'shared'}"]
        assert len(found.get_paths()) == (frame["winner"] == winner).sum()
        if winner:
            colour, own = np.array(found.get_facecolor()[0][:3]), np.array(to_rgba(COLOURS[levels[winner]])[:3])
            # A tint: the own colour, all parts moved towards white alike.
            assert colour == pytest.approx(own + (1 - own) * 0.42)


def test_a_cell_lies_where_its_weights_are(open_card):
    """At its corner a criterion has everything; the star of ADR-056 is at the mean of the corners by its weights."""
    ax = scorecard_weights(open_card)
    (star,) = drawn(ax, "record").values()
    assert (star.get_xdata()[0], star.get_ydata()[0]) == pytest.approx(
        (0.4 * 0.5 + 0.3 * 0.0 + 0.3 * 1.0, 0.4 * np.sqrt(0.75))
    )


def test_judged_perf_is_another_map(card):
    ax = scorecard_weights(card, perf="judged")
    assert list(cells_of(ax)) == ["won:A  cooperative"]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "A cooperative: 100% of all weights"


def test_another_perf_or_number_of_criteria_is_refused(card):
    with pytest.raises(ConfigurationError, match="perf must be judged or measured, not 'guessed'"):
        scorecard_weights(card, perf="guessed")
    table = decision_table("ADR-011")
    four = SimpleNamespace(table=table, weight_map=pd.DataFrame({"perf": ["measured"]}))
    with pytest.raises(ConfigurationError, match=r"ADR-011 has 4 criteria .*winners\(\)"):
        scorecard_weights(four)
    assert not plt.get_fignums()


def test_judged_and_measured_stand_in_one_row_with_the_interval(card):
    ax = scorecard_totals(card)
    totals = card.totals
    for place, row in enumerate(totals.to_dict("records")):
        measured = drawn(ax, "measured:")[f"measured:Perf:{place}"]
        assert measured.get_xdata()[0] == row["perf_measured"]
        assert to_hex(measured.get_color()).upper() == COLOURS[row["alternative"]].upper()
        assert drawn(ax, "interval:")[f"interval:total:{place}"].get_xdata().tolist() == pytest.approx(
            [row["total_low"], row["total_high"]], nan_ok=True
        )
        judged = drawn(ax, "judged:")[f"judged:total:{place}"]
        assert judged.get_xdata()[0] == pytest.approx(row["total_judged"], nan_ok=True)
        assert judged.get_markerfacecolor() == "none"
    words = [text.get_text() for text in words_of(ax)]
    assert words.count("no total: ADR-056 does not score its Complexity and Alignment") == 2
    assert "bar: 95 % bootstrap interval over seeds" in words


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
