"""What a system under load gets done, and what abandoned work takes from it: 10,080 queries of the whole stack.

A study, with no target to be met. The provider has the latencies of `local_gpu` and four slots, as one GPU that batches
four requests. Its capacity follows from what a query needs of its slots when nothing is in its way, which is measured
first; the loads are fixed shares of it, the upper two beyond it. The decision timeout is 20 s, the default, about three
times what a query takes alone. A, B and C are what ADR-056 weighed against each other: one that leaves nothing behind,
one that abandons its work, and one that cancels it. It takes a quarter of an hour on two idle cores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from benchmarks.figures import Figure
from docmind_lab.experiments.load import LoadStudy, run_load

SLOTS = 4
DECISION_TIMEOUT_S = 20.0
ALTERNATIVES = "A,B,C"
ABANDONING = "B  hard timeout"
SHARES_OF_CAPACITY = (0.5, 0.9, 1.1, 1.4)
# Far below any load at which one query would wait for another.
_ALONE_PER_S = 0.01


@dataclass(frozen=True)
class Scale:
    """How much is run. warm_up_s: None for the horizon of 100 s, from when on there is abandoned work of every age."""

    queries: int = 210
    replicates: int = 4
    queries_alone: int = 24
    shares: tuple[float, ...] = SHARES_OF_CAPACITY
    warm_up_s: float | None = None


FULL = Scale()
QUICK = Scale(queries=24, replicates=1, queries_alone=4, shares=(1.4,), warm_up_s=0.0)


def run(scale: Scale = FULL, workers: int | None = None) -> Iterator[Figure]:
    """Goodput at each load under each alternative, what was abandoned, and what a query cost in CPU time."""
    capacity_per_s = capacity_alone_per_s(scale.queries_alone, workers=workers)
    yield Figure("slot seconds that a query needs, alone", SLOTS / capacity_per_s, "s")
    yield Figure("capacity", 60 * capacity_per_s, "queries/min")
    study = run_load(
        [round(share * capacity_per_s, 3) for share in scale.shares],
        alternatives=ALTERNATIVES,
        queries=scale.queries,
        replicates=scale.replicates,
        slots=SLOTS,
        decision_timeout_s=DECISION_TIMEOUT_S,
        warm_up_s=scale.warm_up_s,
        workers=workers,
        progress=said,
    )
    yield from figures(study, capacity_per_s)
    yield Figure("queries", len(study.queries), "queries")
    yield Figure("CPU time of a query", 1000 * study.manifest["cpu_s"] / len(study.queries), "ms")


def capacity_alone_per_s(queries: int, *, workers: int | None = None) -> float:
    """Queries a second that the slots could serve, from what queries need of them one by one."""
    alone = run_load(
        [_ALONE_PER_S],
        alternatives="unguarded",
        queries=queries,
        replicates=1,
        slots=SLOTS,
        decision_timeout_s=DECISION_TIMEOUT_S,
        warm_up_s=0.0,
        workers=workers,
    )
    return SLOTS / slot_seconds_per_query(alone)


def slot_seconds_per_query(study: LoadStudy) -> float:
    """Seconds of a slot that a query of the study had, on average."""
    served_s = study.servings["left_at_s"] - study.servings["served_from_s"]
    return float(served_s.sum()) / len(study.queries)


def figures(study: LoadStudy, capacity_per_s: float) -> Iterator[Figure]:
    """What the study says of each load and arm, and by how much the others' goodput exceeds B's, within replicates."""
    for row in study.summary().to_dict("records"):
        load = f"{row['offered_per_s'] / capacity_per_s:.0%} of capacity, {row['arm']}"
        goodput = _per_minute(row["goodput_low_per_s"], row["goodput_high_per_s"])
        yield Figure(f"{load}: goodput", 60 * row["goodput_per_s"], "/min", goodput)
        collapsed = (100 * row["collapsed_low_share"], 100 * row["collapsed_high_share"])
        yield Figure(f"{load}: collapsed replicates", 100 * row["collapsed"] / row["replicates"], "%", collapsed)
        yield Figure(f"{load}: slots on abandoned work", 100 * row["abandoned_share"], "%")
        yield Figure(f"{load}: queue wait of a live call", row["live_queue_wait_s"], "s")
    for row in study.differences(ABANDONING).to_dict("records"):
        what = f"{row['offered_per_s'] / capacity_per_s:.0%} of capacity, goodput of {row['arm']} over {ABANDONING}"
        interval = _per_minute(row["low_per_s"], row["high_per_s"])
        yield Figure(what, 60 * row["difference_per_s"], "/min", interval)
        yield Figure(f"  more in so many of {row['replicates']} replicates", row["more_in"], "replicates")
        yield Figure("  p of no difference, signs flipped", row["p_value"])


def _per_minute(low_per_s: float, high_per_s: float) -> tuple[float, float] | None:
    return None if pd.isna(low_per_s) or math.isnan(high_per_s) else (60 * low_per_s, 60 * high_per_s)


def said(done: int, of: int) -> None:
    """Show the progress on a terminal: it takes a quarter of an hour on two cores, and the table comes last."""
    if sys.stderr.isatty():
        print(f"\r{done:,} of {of:,} queries", end="" if done < of else "\n", file=sys.stderr, flush=True)
