"""Which option of a decision table wins under which weights.

Every function takes scores as a matrix, a row for each option and a column for each criterion, and nothing of where
they come from. The sensitivity of a weighted sum to its weights: E. Triantaphyllou and A. Sánchez, *A sensitivity
analysis approach for some deterministic multi-criteria decision-making methods*, Decision Sciences 28 (1997), which
changes one weight at a time; here all of them are changed together too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError

Matrix = np.ndarray[Any, np.dtype[np.float64]]

# Totals of scores with one decimal and weights in percent differ by 0.001 at least; a float's last bits are no tie.
SAME_TOTAL = 1e-9


def simplex_percent(criteria: int, step_percent: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return all weights in whole steps that add up to 100 %: a row each, a column for each criterion.

    Raises: ConfigurationError for a step that does not divide 100.
    """
    if step_percent < 1 or 100 % step_percent:
        raise ConfigurationError(f"step_percent must divide 100, not {step_percent}")
    steps = 100 // step_percent
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(criteria - 1):
        left = steps - rows.sum(axis=1)
        rows = np.concatenate(
            [np.repeat(rows, left + 1, axis=0), np.concatenate([np.arange(n + 1) for n in left])[:, None]], axis=1
        )
    return np.concatenate([rows, steps - rows.sum(axis=1, keepdims=True)], axis=1) * step_percent


def leaders(totals: Matrix) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each option has the highest total, ties included. totals: options on the last axis."""
    return np.asarray(totals >= totals.max(axis=-1, keepdims=True) - SAME_TOTAL)


def winner_of(totals: Matrix) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the option with the highest total, −1 for a tie. totals: options on the last axis."""
    first = leaders(totals)
    return np.where(first.sum(axis=-1) == 1, first.argmax(axis=-1), -1)


def one_at_a_time(
    scores: Matrix, weights: Sequence[float], criteria: Sequence[str], options: Sequence[str]
) -> pd.DataFrame:
    """Return the winner as one weight goes from 0 to 100 % and the others keep their proportions.

    One row per criterion and percent: criterion, weight_percent, winner ("" where several share the lead), and a column
    for each option with its total.
    """
    now = np.asarray(weights, dtype=np.float64)
    frames = []
    for place, criterion in enumerate(criteria):
        share = np.arange(101) / 100
        others = np.delete(now, place)
        # A criterion that has all of the weight leaves none to keep a proportion of.
        rest = others / others.sum() if others.sum() > 0 else np.full(len(others), 1 / len(others))
        varied = np.insert(np.outer(1 - share, rest), place, share, axis=1)
        totals = varied @ scores.T
        names = np.array([*options, ""])[winner_of(totals)]
        columns = {option: totals[:, column] for column, option in enumerate(options)}
        frames.append(
            pd.DataFrame({"criterion": criterion, "weight_percent": np.arange(101), "winner": names} | columns)
        )
    return pd.concat(frames, ignore_index=True)
