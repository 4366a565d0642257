"""Measures of a load study: goodput, the cost of abandoned work, and how long live queries waited because of it.

    replicate_measures(queries, servings)           one row for each crowd
    load_summary(replicates)                        one row for each arm and load, with intervals

**Goodput** is queries answered within the decision timeout, per second, of those that arrive while counting goes on.
**Abandoned work** is what a slot did for a query after its deadline, or after its caller had left.

counted_from: "arrival" counts response times and deadlines from the scheduled arrival; "start" from when the system
took the query, which leaves out the wait for a caller: the worse a system keeps up, the better it looks. That bias is
Gil Tene's "coordinated omission" ("How NOT to measure latency", 2013; his wrk2 sends by schedule for that reason), and
the switch is there to show it.

Queries of one crowd share a queue and depend on each other: the unit of inference is the replicate. A replicate has
**collapsed** when fewer than half of its counted queries were answered in time. Around capacity some replicates of an
arm collapse and others do not, so that goodput has two modes: intervals are those of a bounded mean, which assume no
distribution (`means.bounded_mean_interval`), and never Student's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.differences import mean_p_value
from docmind_lab.statistics.interval import Floats
from docmind_lab.statistics.means import bounded_mean_interval
from docmind_lab.statistics.sample_size import runs_needed
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import with_arms

CountedFrom = Literal["arrival", "start"]

LOAD: Final = ("arrivals", "offered_per_s")
_LIMITS: Final = ("slots", "callers")
_SAME: Final = ("alternative", *_LIMITS)
FEWEST_REPLICATES: Final = 4
"""With fewer, an interval of a mean takes up more than two thirds of what is possible, and there is none."""
COLLAPSED_BELOW: Final = 0.5
"""A replicate that answered a smaller share of its queries in time has collapsed."""
_QUANTILES: Final[Mapping[str, float]] = {"response_p90_s": 0.9, "response_p99_s": 0.99}
MEASURES: Final = (
    "goodput_per_s",
    "share_in_time",
    "response_median_s",
    *_QUANTILES,
    "live_queue_wait_s",
    "busy_share",
    "abandoned_share",
)
"""What is measured of each crowd, and averaged over replicates."""


def replicate_measures(
    queries: pd.DataFrame, servings: pd.DataFrame, counted_from: CountedFrom = "arrival"
) -> pd.DataFrame:
    """Return the measures of each crowd of a `LoadStudy`'s tables, one row each: the unit of every interval.

    Columns: arm (an ordered categorical), arrivals, offered_per_s (the rate of the process), replicate, alternative,
    slots, callers; counted (queries that arrived while counting went on), window_s (how long that was), arrived_per_s,
    goodput_per_s, share_in_time (of those counted), response_median_s, response_p90_s and response_p99_s (inf when
    fewer queries than that had anything by the horizon; the latter two NaN with fewer than 44 and 459 queries behind
    them), live_queue_wait_s (mean time in the provider's queue of a request, as long as its query was wanted),
    busy_share and abandoned_share (slot seconds in the window, of all and of those nobody waited for, as a share of
    what the slots could give; NaN without a limit).

    Raises: ConfigurationError for another `counted_from`.
    """
    if counted_from not in get_args(CountedFrom):
        raise ConfigurationError(f"counted_from must be arrival or start, not {counted_from!r}")
    armed = with_arms(queries).astype({"arrivals": "str"})
    due_at_s = armed["scheduled_at_s"] + armed["decision_timeout_s"]
    if counted_from == "start":
        due_at_s = armed["started_at_s"] + armed["decision_timeout_s"]
        armed = armed.assign(in_time=armed["answered_in_time"], response_s=armed["returned_at_s"])
    # fmin: a caller without an answer by the horizon has not left before the deadline.
    wanted_until_s = np.fmin(due_at_s, armed["started_at_s"] + armed["returned_at_s"])
    of_runs = armed[["run_id"]].assign(wanted_until_s=wanted_until_s)
    requests = servings.merge(of_runs, on="run_id", how="left", validate="many_to_one")
    keys = ["arm", *LOAD, "replicate"]
    rows = [
        {
            **dict(zip(keys, key, strict=True)),
            **{name: crowd[name].iloc[0] for name in _SAME},
            **_measures_of(crowd, requests[requests["run_id"].isin(crowd["run_id"])]),
        }
        for key, crowd in armed.groupby(keys, observed=True, sort=True)
    ]
    return _with_types(pd.DataFrame(rows), armed["arm"].cat.categories)


def _measures_of(queries: pd.DataFrame, servings: pd.DataFrame) -> dict[str, Any]:
    """Return the measures of one crowd by name, those of `replicate_measures`.

    queries: the queries of the crowd. servings: its requests, with the instant until which each was wanted.
    """
    first = queries.iloc[0]
    from_s, until_s = float(first["window_from_s"]), float(first["window_until_s"])
    window_s = until_s - from_s
    counted = queries[queries["scheduled_at_s"].between(from_s, until_s, inclusive="left")]
    response_s = counted["response_s"].fillna(math.inf)
    in_order = np.sort(response_s.to_numpy())
    capacity_s = math.nan if pd.isna(first["slots"]) else float(first["slots"]) * window_s
    served_from_s, left_at_s, wanted_until_s = (
        servings[name] for name in ("served_from_s", "left_at_s", "wanted_until_s")
    )
    # Stays NaN, which is no stretch at all, for a request that never had a slot.
    unwanted_from_s = served_from_s.where(served_from_s.isna() | (served_from_s > wanted_until_s), wanted_until_s)
    return {
        "counted": len(counted),
        "window_s": window_s,
        "arrived_per_s": len(counted) / window_s,
        "goodput_per_s": float(counted["in_time"].sum()) / window_s,
        "share_in_time": float(counted["in_time"].mean()) if len(counted) else math.nan,
        "response_median_s": float(response_s.median()),
        **{name: _quantile(in_order, level) for name, level in _QUANTILES.items()},
        "live_queue_wait_s": _live_queue_wait_s(servings, from_s, until_s),
        "busy_share": _seconds_within(served_from_s, left_at_s, from_s, until_s) / capacity_s,
        "abandoned_share": _seconds_within(unwanted_from_s, left_at_s, from_s, until_s) / capacity_s,
    }


def _quantile(in_order: Floats, level: float) -> float:
    """The value below which this share is. An observation and no point between two: one of them may be infinite."""
    if len(in_order) < runs_needed(level):
        return math.nan
    return float(in_order[min(len(in_order) - 1, int(level * len(in_order)))])


def _seconds_within(begun_at_s: pd.Series[float], ended_at_s: pd.Series[float], from_s: float, until_s: float) -> float:
    """Return the seconds of all the stretches inside the window; a stretch without a begin (NaN) has none."""
    seconds = ended_at_s.clip(upper=until_s) - begun_at_s.clip(lower=from_s)
    return float(seconds.clip(lower=0.0).sum())


def _live_queue_wait_s(servings: pd.DataFrame, from_s: float, until_s: float) -> float:
    live = servings[servings["received_at_s"].between(from_s, until_s, inclusive="left")]
    live = live[live["received_at_s"] < live["wanted_until_s"]]
    waited_until_s = np.minimum(live["served_from_s"].fillna(live["left_at_s"]), live["wanted_until_s"])
    return float((waited_until_s - live["received_at_s"]).clip(lower=0.0).mean())


def _with_types(frame: pd.DataFrame, arms: pd.Index[Any]) -> pd.DataFrame:
    """Return rows of measures with their dtypes. arms: the arms in the order of figures."""
    arm = pd.Categorical(frame["arm"], categories=arms, ordered=True)
    return frame.assign(arm=arm, alternative=frame["alternative"].astype("str")).astype(dict.fromkeys(_LIMITS, "Int64"))


def load_summary(replicates: pd.DataFrame) -> pd.DataFrame:
    """Return means over what `replicate_measures` returns, one row for each arm and load, in the order of the loads.

    Columns: those that name a load and an arm, alternative, slots, callers, replicates, counted, arrived_per_s, each of
    `MEASURES`, goodput_low_per_s, goodput_high_per_s, abandoned_low_share, abandoned_high_share (the 95 % interval of
    the mean over replicates, `mean_interval`; NaN for fewer than `FEWEST_REPLICATES`), collapsed (replicates that did),
    collapsed_low_share and collapsed_high_share (the 95 % Wilson interval of their share).
    """
    keys = [*LOAD, "arm"]
    rows: list[dict[str, Any]] = []
    for key, group in replicates.groupby(keys, observed=True, sort=True):
        goodput_low, goodput_high = mean_interval(group["goodput_per_s"].tolist(), least=0.0, most=_max_goodput(group))
        abandoned_low, abandoned_high = mean_interval(group["abandoned_share"].tolist(), least=0.0, most=1.0)
        collapsed = int((group["share_in_time"] < COLLAPSED_BELOW).sum())
        share_collapsed = share_interval(collapsed, len(group))
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                **{name: group[name].iloc[0] for name in _SAME},
                "replicates": len(group),
                "counted": int(group["counted"].sum()),
                **{name: float(group[name].mean()) for name in ("arrived_per_s", *MEASURES)},
                "goodput_low_per_s": goodput_low,
                "goodput_high_per_s": goodput_high,
                "abandoned_low_share": abandoned_low,
                "abandoned_high_share": abandoned_high,
                "collapsed": collapsed,
                "collapsed_low_share": share_collapsed.low,
                "collapsed_high_share": share_collapsed.high,
            }
        )
    return _with_types(pd.DataFrame(rows), replicates["arm"].cat.categories)


def goodput_differences(replicates: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return how much more or less goodput each arm has than a reference arm, in what `replicate_measures` returns.

    One row for each load and arm but the reference. Columns: arrivals, offered_per_s, arm, replicates,
    difference_per_s (mean over replicates of arm − reference), low_per_s, high_per_s (its 95 % interval, as in
    `load_summary`), more_in (replicates in which the arm had more), p_value (two-sided, signs of the differences
    flipped; NaN where there is no interval).

    Both met the same arrivals and draws in a replicate, so differences are taken within it, and what makes one
    replicate harder than another drops out. The interval assumes nothing of how differences are distributed and leaves
    room for replicates that were not seen; so it is wider than the test needs, and the two may disagree.

    Raises: ConfigurationError for a reference that is no arm of the study.
    """
    arms = list(replicates["arm"].cat.categories)
    if reference not in arms:
        raise ConfigurationError(f"reference must be an arm of the study, not {reference!r}: one of {', '.join(arms)}")
    goodput = replicates.pivot(index=[*LOAD, "replicate"], columns="arm", values="goodput_per_s")
    rows = []
    for load, group in goodput.groupby(level=list(LOAD)):
        most = _max_goodput(replicates[(replicates[list(LOAD)] == list(load)).all(axis=1)])
        for arm in [each for each in arms if each != reference]:
            # A study that was stopped has replicates that only some arms have finished.
            differences = (group[arm] - group[reference]).dropna().to_numpy()
            low, high = mean_interval(differences, least=-most, most=most)
            p_value, _ = mean_p_value(differences, np.zeros_like(differences), paired=True)
            rows.append(
                {
                    **dict(zip(LOAD, load, strict=True)),
                    "arm": arm,
                    "replicates": len(differences),
                    "difference_per_s": float(np.mean(differences)) if len(differences) else math.nan,
                    "low_per_s": low,
                    "high_per_s": high,
                    "more_in": int((differences > 0).sum()),
                    "p_value": math.nan if math.isnan(low) else p_value,
                }
            )
    return pd.DataFrame(rows)


def mean_interval(values: Sequence[float] | Floats, *, least: float, most: float) -> tuple[float, float]:
    """Return the 95 % interval of a mean of values from `least` to `most`; it holds for two modes too.

    Its bounds are NaN for fewer than `FEWEST_REPLICATES` values, or a NaN among them.
    """
    if len(values) < FEWEST_REPLICATES or np.isnan(values).any():
        return math.nan, math.nan
    # A sum of stretches may exceed what is possible by its last digits.
    interval = bounded_mean_interval(np.clip(values, least, most), least=least, most=most)
    return interval.low, interval.high


def _max_goodput(replicates: pd.DataFrame) -> float:
    """Return the highest goodput possible: the rate offered, or the rate that arrived if it was higher."""
    return float(max(replicates["offered_per_s"].max(), replicates["arrived_per_s"].max()))
