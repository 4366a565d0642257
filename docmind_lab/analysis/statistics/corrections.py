"""Corrections for many comparisons: p values that may be read against one level all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from docmind_lab.analysis.statistics.incidence import Floats
from docmind_lab.core.errors import ConfigurationError


def holm(p_values: ArrayLike) -> Floats:
    """Holm's adjusted p values, in the order given: below 5 % together they err at all in at most 5 % of studies.

    The k-th smallest of m is taken times m − k + 1, and is no smaller than those before it. It holds however the tests
    depend on each other. Source: Holm (1979), Scandinavian Journal of Statistics 6:65.
    Raises: ConfigurationError for a value that is no p value.
    """
    values = _checked(p_values)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted


def tarone(p_values: ArrayLike, least: ArrayLike, level: float) -> Floats:
    """Bonferroni's adjusted p values over the tests that could reject at all, in the order given.

    A test of few runs has a least p value that no data can go below. Tests whose least p value is too large for the
    level cannot err, so the others need no correction for them; with ten pairs and 28 tests nothing could ever be
    shown otherwise.

    Args:
        p_values: One for each test.
        least: The least p value that each test can have with as many runs, or discordant pairs, as it has.
        level: Of all tests together, as 0.05. The adjusted values are for this level alone.

    Source: Tarone (1990), Biometrics 46:515.
    Raises: ConfigurationError for a value that is no p value.
    """
    values, reachable = _checked(p_values), _checked(least)
    count = next((k for k in range(1, len(values) + 1) if (reachable <= level / k).sum() <= k), 1)
    adjusted: Floats = np.where(reachable <= level / count, np.minimum(1.0, values * count), 1.0)
    return adjusted


def _checked(p_values: ArrayLike) -> Floats:
    values = np.asarray(p_values, dtype="float64")
    if values.ndim != 1 or not len(values) or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ConfigurationError("p_values must be at least one number, each from 0 to 1")
    return values
