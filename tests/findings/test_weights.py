from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from docmind_lab.analysis.findings import decision_table, one_at_a_time
from docmind_lab.analysis.findings.weights import (
    leaders,
    nearest_changes,
    shares_of_simplex,
    simplex_percent,
    winner_of,
)
from docmind_lab.core.errors import ConfigurationError

SCORES = st.lists(st.lists(st.integers(0, 100), min_size=3, max_size=3), min_size=2, max_size=4)


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
    shares = shares_of_simplex(table.matrix(), [option.name for option in table.options])
    assert shares["wins_share"].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert all(change.weights is None for change in nearest_changes(table.matrix(), [0.4, 0.3, 0.3]))


def test_the_share_of_a_line_through_the_simplex_is_as_worked_out_by_hand() -> None:
    # The first option is better by 1 in one criterion, the second by 3 in the other: level at 75 %.
    shares = shares_of_simplex(np.array([[1.0, 0.0], [0.0, 3.0]]), ["first", "second"])
    assert shares["wins_share"].tolist() == pytest.approx([25 / 101, 75 / 101])
    assert shares["ties_share"].tolist() == pytest.approx([1 / 101] * 2)
    (change,) = nearest_changes(np.array([[1.0, 0.0], [0.0, 3.0]]), [0.9, 0.1])
    assert change.weights == pytest.approx((0.75, 0.25))
    assert change.distance == pytest.approx(0.15)


@given(SCORES, st.lists(st.integers(1, 20), min_size=3, max_size=3))
@settings(max_examples=60)
def test_the_nearest_change_is_that_of_a_linear_programme(scores: list[list[int]], parts: list[int]) -> None:
    matrix, now = np.array(scores) / 10, np.array(parts) / sum(parts)
    winner = int(np.argmax(matrix @ now))
    for change in nearest_changes(matrix, list(now)):
        # Weights w and |w − now| ≤ d, least sum of d, under which the rival is level with the winner or ahead.
        ahead = matrix[change.rival] - matrix[winner]
        eye, none = np.eye(3), np.zeros(3)
        bounds = np.block([[eye, -eye], [-eye, -eye], [-ahead, none]])
        found = linprog(
            np.concatenate([none, np.ones(3)]),
            A_ub=bounds,
            b_ub=np.concatenate([now, -now, [0.0]]),
            A_eq=[[1, 1, 1, 0, 0, 0]],
            b_eq=[1],
        )
        if change.weights is None:
            # It can draw level at most, where it is as good in its best criterion; it never leads.
            assert ahead.max() <= 1e-9
            continue
        assert found.status == 0
        assert change.distance == pytest.approx(found.fun / 2, abs=1e-7)
        assert sum(change.weights) == pytest.approx(1.0)
        assert np.array(change.weights) @ ahead == pytest.approx(0.0, abs=1e-7)


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
