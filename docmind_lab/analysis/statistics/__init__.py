"""Honest statistics of a study: pure functions, arrays and frames in, frames and intervals out.

    interval.py            an estimate with its interval; a difference with its interval, p value and test
    shares.py              shares of runs: Wilson; paired and unpaired differences
    sample_size.py         quantiles behind a gate: a number with enough runs, else how many are missing
    answer_times.py        when each run was answered, or why that is not known
    incidence.py           Aalen and Johansen's estimator, as arrays
    completion_curves.py   the share answered by each instant, with bands
    restricted_means.py    mean time to an answer within a limit, and differences of it
    pairing.py             two arms, seed by seed
    bootstrap.py           bootstrap intervals
    differences.py         differences of means, paired or not
    sparse.py              means of which few values differ
    bounded.py             means of few values between known bounds, also with two modes
    corrections.py         many comparisons: Holm, Tarone

Runs that timed out, failed or never ended are in every number; none is over answered runs only.
"""

from docmind_lab.analysis.statistics.answer_times import AnswerTimes, TimedOutAs, answer_times, arms_of
from docmind_lab.analysis.statistics.completion_curves import (
    completion_curve,
    completion_curves,
)
from docmind_lab.analysis.statistics.differences import (
    Pairs,
    column_values,
    holm,
    mean_difference,
    paired_by_seed,
    paired_mean_difference,
    tarone,
    values_of,
)
from docmind_lab.analysis.statistics.interval import Difference, Interval, difference_of
from docmind_lab.analysis.statistics.means import bounded_mean_interval
from docmind_lab.analysis.statistics.restricted_means import (
    paired_restricted_mean_difference,
    pseudo_values,
    restricted_mean,
    restricted_means,
)
from docmind_lab.analysis.statistics.sample_size import TooFewRuns, gated_quantile, quantile_name, runs_needed
from docmind_lab.analysis.statistics.shares import (
    paired_share_difference,
    runs_needed_for_share,
    share_difference,
    share_interval,
)

__all__ = [
    "AnswerTimes",
    "Difference",
    "Interval",
    "Pairs",
    "TimedOutAs",
    "TooFewRuns",
    "answer_times",
    "arms_of",
    "bounded_mean_interval",
    "column_values",
    "completion_curve",
    "completion_curves",
    "difference_of",
    "gated_quantile",
    "holm",
    "mean_difference",
    "paired_by_seed",
    "paired_mean_difference",
    "paired_restricted_mean_difference",
    "paired_share_difference",
    "pseudo_values",
    "quantile_name",
    "restricted_mean",
    "restricted_means",
    "runs_needed",
    "runs_needed_for_share",
    "share_difference",
    "share_interval",
    "tarone",
    "values_of",
]
