"""The difference of every arm from a reference arm, seed by seed, with intervals and p values.

contrasts(study.runs, "A")                 all measures, in every condition
contrasts(study.runs, "B:naive", measures=("answered_in_time",))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import level_and_variant, options_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import one_line
from docmind_lab.findings.criteria import MEASURES, difference_in, is_known
from docmind_lab.statistics.differences import holm, paired_by_seed
from docmind_lab.tables.conditions import by_condition, condition_columns, with_arms

# A corrected p value is at best (resamples + 1)⁻¹ × the number of comparisons: enough for a hundred at the 5 % level.
_RESAMPLES: Final = 4999


def contrasts(
    runs: pd.DataFrame, reference: str, *, measures: Sequence[str] = tuple(MEASURES), confidence: float = 0.95
) -> pd.DataFrame:
    """Return the difference of each arm from the reference, over the seeds that both have.

    Args:
        runs: The `runs` table of a study.
        reference: A letter, level or variant ("A", "hard_timeout", "B:naive"), or an arm by its label (`with_arms`).
        measures: Keys of `criteria.MEASURES`. One that is not known for some run (of a live server) is left out.
        confidence: Confidence of the intervals, and 1 − the level of the tests.

    Returns:
        A row for each condition, arm and measure. Columns: those of the condition that vary, arm, reference, measure,
        pairs, difference, low, high (in the unit of the measure; shares as shares of 1), method, p_value, test,
        p_corrected (Holm, over all arms and conditions of a measure), differs (p_corrected < 1 − confidence).

    Raises:
        ConfigurationError: A measure is unknown, or the reference is in no condition.
    """
    unknown = [name for name in measures if name not in MEASURES]
    if unknown:
        raise ConfigurationError(f"no measure is named {unknown[0]!r}; there are {', '.join(MEASURES)}")
    named = with_arms(runs)
    arm = _reference_arm(named, reference)
    rows = [row for measure in measures for row in _rows(named, arm, measure, confidence)]
    columns = ["arm", "reference", "measure", "pairs", "difference", "low", "high", "method", "p_value", "test"]
    frame = pd.DataFrame(rows, columns=[*condition_columns(runs), *columns])
    frame["p_corrected"] = frame.groupby("measure", sort=False)["p_value"].transform(lambda values: holm(values))
    frame["differs"] = frame["p_corrected"] < 1.0 - confidence
    return frame


def _reference_arm(named: pd.DataFrame, reference: str) -> str:
    arms = list(named["arm"].cat.categories)
    if reference in arms:
        return reference
    known = " or ".join(repr(one_line(arm)) for arm in arms)
    try:
        level, variant = level_and_variant(reference)
    except ConfigurationError as error:
        raise ConfigurationError(f"reference: {error}") from error
    fits = (named["alternative"].astype("str") == level) & (
        named["alternative_options"].astype("str") == options_of(level, variant)
    )
    result = list(dict.fromkeys(named.loc[fits, "arm"].astype("str")))
    if len(result) != 1:
        how_many = "no arm is" if not result else f"{len(result)} arms are"
        raise ConfigurationError(f"reference: {how_many} called {reference!r}; name one of {known}")
    return result[0]


def _rows(named: pd.DataFrame, reference: str, measure: str, confidence: float) -> Iterator[dict[str, Any]]:
    columns = condition_columns(named)
    for condition, group in by_condition(named):
        present = [str(arm) for arm in group["arm"].cat.categories if (group["arm"] == arm).any()]
        if reference not in present:
            continue
        for arm in present:
            both = group[group["arm"].isin((arm, reference))]
            if arm == reference or not is_known(both, measure):
                continue
            pairs = paired_by_seed(group, arm, reference)
            result = difference_in(measure, pairs.first, pairs.second, confidence, resamples=_RESAMPLES)
            arms = {"arm": arm, "reference": reference, "measure": measure, "pairs": result.interval.n}
            yield {name: condition[name] for name in columns} | arms | result.row()
