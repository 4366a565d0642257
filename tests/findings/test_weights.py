from __future__ import annotations

import math

import numpy as np
import pytest

from docmind_lab.analysis.findings import decision_table, one_at_a_time
from docmind_lab.analysis.findings.weights import (
    leaders,
    simplex_percent,
    winner_of,
)
from docmind_lab.core.errors import ConfigurationError


@pytest.mark.parametrize(("criteria", "step"), [(2, 1), (3, 1), (3, 10), (4, 5)])
def test_the_grid_has_every_weight_once_and_all_add_up_to_100(criteria: int, step: int) -> None:
    grid = simplex_percent(criteria, step)
    assert len(grid) == math.comb(100 // step + criteria - 1, criteria - 1)
    assert len(np.unique(grid, axis=0)) == len(grid)
    assert (grid.sum(axis=1) == 100).all()
    assert (grid >= 0).all()
    assert (grid % step == 0).all()


def test_a_step_that_does_not_divide_100_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="step_percent must divide 100, not 3"):
        simplex_percent(3, 3)


def test_a_tie_has_no_winner() -> None:
    totals = np.array([[1.0, 2.0], [2.0, 2.0], [2.0 + 1e-12, 2.0]])
    assert winner_of(totals).tolist() == [1, -1, -1]
    assert leaders(totals).sum(axis=1).tolist() == [1, 2, 2]


def test_an_option_that_is_best_in_everything_has_all_of_the_weights() -> None:
    table = decision_table("ADR-056")
    assert set(winner_of(simplex_percent(3) / 100 @ table.matrix().T)) == {0}


def test_the_share_of_a_line_through_the_simplex_is_as_worked_out_by_hand() -> None:
    # The first option is better by 1 in one criterion, the second by 3 in the other: level at 75 %.
    winners = winner_of(simplex_percent(2) / 100 @ np.array([[1.0, 0.0], [0.0, 3.0]]).T)
    assert [int((winners == place).sum()) for place in (0, 1, -1)] == [25, 75, 1]


def test_one_weight_at_a_time_leaves_the_proportions_of_the_others() -> None:
    table = decision_table("ADR-011")
    names = [option.name for option in table.options]
    frame = one_at_a_time(table.matrix(), [float(w) for w in table.weights], table.criteria, names)
    assert len(frame) == 101 * len(table.criteria)
    as_printed = frame[(frame["criterion"] == "Simplicity") & (frame["weight_percent"] == 35)].iloc[0]
    assert [as_printed[name] for name in names] == pytest.approx([9.0, 7.75, 6.4, 4.4, 6.35])
    # Only Simplicity alone, in which three options have the same score, leaves the decision open.
    assert frame.loc[frame["winner"] == "", ["criterion", "weight_percent"]].to_numpy().tolist() == [
        ["Simplicity", 100]
    ]
    assert set(frame["winner"]) == {"LangGraph StateGraph", ""}
