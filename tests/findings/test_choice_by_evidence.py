"""Which alternative is chosen, and by what evidence (trust 3, 9, 13, 14)."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import arm, table
from sample_runs import sample_run, study_of

from docmind_lab.core.alternative_catalogue import is_mistake
from docmind_lab.findings.choice import FEWEST_PAIRS, choose
from docmind_lab.findings.criteria import CRITERIA, Undecided
from docmind_lab.findings.summary import summarise
from docmind_lab.statistics.interval import Interval
from docmind_lab.tables.records import RunRecord

FAILED = {"outcome": "failed", "answered_in_time": False}
UNANSWERED = {"answered_in_time": False}
TIMED_OUT = arm(
    "hard_timeout",
    14,
    outcome="timed_out",
    source_recall=0.0,
    work_overrun_s=[40.0 + n for n in range(14)],
    **UNANSWERED,
)
NINE_OF_14 = [*(4.0 + n for n in range(9)), *[0.0] * 5]
RECALL = [n / 40 for n in range(40)]
FEW, ENOUGH = FEWEST_PAIRS - 1, FEWEST_PAIRS


def rare(runs: int) -> list[list[RunRecord]]:
    """A second of work in every run, beside an arm that shows none: of three in a hundred it may have shown 60 s."""
    return [
        arm("cooperative", runs, busy_after_deadline_s=1.0, horizon_s=82.0),
        arm("hard_timeout", runs, horizon_s=82.0),
    ]


ARMS = {
    # The table that said "Choose A or E": recall 0.59 against 0.54, by two seeds.
    "two seeds of forty are no choice": [
        arm("cooperative", source_recall=[1.0, 1.0, *[0.5] * 38]),
        arm("async_cancellation", source_recall=[0.0, 0.0, *[0.5] * 38]),
    ],
    "a difference in most seeds is evidence": [
        arm("cooperative"),
        arm("hard_timeout", busy_after_deadline_s=list(np.random.default_rng(1).exponential(5.0, 40))),
    ],
    "too few runs": [arm("cooperative", FEW), arm("hard_timeout", FEW, busy_after_deadline_s=9.0)],
    "enough runs": [
        arm("cooperative", ENOUGH),
        arm("hard_timeout", ENOUGH, busy_after_deadline_s=[9.0 + n for n in range(ENOUGH)]),
    ],
    # Under rate limits A failed 7 of 10 and was called alike with C.
    "runs that failed weigh": [
        [sample_run("cooperative", n, **(FAILED if n % 10 < 7 else {})) for n in range(20)],
        arm("async_cancellation", 20),
    ],
    "an arm that always failed is out": [arm("cooperative", 20, **FAILED)],
    # Under rate limits B was chosen, which returned nothing and left work, over A, which failed with its documents.
    "failing early is no worse than timing out, and what was handed over counts": [
        arm("cooperative", 14, outcome="failed", source_recall=[0.0, 0.0, *[0.8] * 12], **UNANSWERED),
        TIMED_OUT,
    ],
    "nobody was given anything, and only B left work": [
        arm("cooperative", 14, outcome="failed", source_recall=0.0, **UNANSWERED),
        TIMED_OUT,
    ],
    "none of fourteen runs worse and nine better is evidence": [
        arm("cooperative", 14, horizon_s=82.0),
        arm("async_cancellation", 14, horizon_s=82.0),
        arm("hard_timeout", 14, busy_after_deadline_s=NINE_OF_14, horizon_s=82.0),
    ],
    "dominance, and what a rare event could cost": [
        arm("cooperative", 14),
        arm("hard_timeout", 14, busy_after_deadline_s=NINE_OF_14),
    ],
    "the interval of a share stays within its bounds": [
        arm("cooperative", 14, outcome=[*["partial"] * 3, *["timed_out"] * 11]),
        arm("native", 14),
    ],
    "an arm that is only seen to be worse is not named first": [
        arm("cooperative", 14),
        arm("hard_timeout", 14, busy_after_deadline_s=[*[3.0] * 5, *[0.0] * 9]),
    ],
    "an event that 40 runs may have missed keeps the better arm in": rare(40),
    "120 runs would have shown it": rare(120),
    # Trust 13: `work_overrun_s` was 1.5 s in every run, and C was recommended because no server was busy.
    "work that goes on in the process counts as work at a server does": [
        arm("cooperative"),
        arm("async_cancellation", work_overrun_s=[1.5 + n / 100 for n in range(40)]),
    ],
    "one late caller of forty is open": [
        arm("cooperative", caller_overrun_s=[0.6, *[0.0] * 39]),
        arm("hard_timeout"),
    ],
    "and eight are a deadline that was not held": [
        arm("cooperative", caller_overrun_s=[*[0.6] * 8, *[0.0] * 32]),
        arm("hard_timeout"),
    ],
    "arms with equal runs are the same": [
        arm("cooperative", source_recall=RECALL),
        arm("hybrid", source_recall=RECALL),
    ],
    "and are not with one outcome that differs": [
        arm("cooperative", source_recall=RECALL),
        arm("hybrid", source_recall=RECALL, outcome=["partial", *["answered"] * 39]),
    ],
    "a measure that is not known decides nothing": [
        arm("cooperative", busy_after_deadline_s=math.nan),
        arm("hard_timeout", busy_after_deadline_s=math.nan),
    ],
}


def told(runs: pd.DataFrame) -> str:
    """The choice with what it rests on, and the advice that says it."""
    found = choose(runs)
    alone = {name: getattr(found, name) for name in ("chosen", "preferred", "refused", "seen_worse", "same", "too_few")}
    lines = [f"{name}: {value}" for name, value in alone.items() if value]
    lines += [
        f"{arm_name} is beaten by {each.by} in {each.criterion.name}: {each.worse_by}; {each.runs_worse} worse, "
        f"{each.runs_better} better of {each.worse_by.n}, unseen {each.unseen:.4g}"
        for arm_name, each in found.beaten.items()
    ]
    lines += [
        f"open is {each.first} − {each.second} in {each.criterion.name}: {each.better_by}; {each.more_runs:g} more "
        f"runs, unseen {each.unseen:.4g}"
        for each in found.undecided
    ]
    advice = summarise(runs, {}).advice
    assert not found.chosen or set(found.evidence()) <= set(advice)
    return "\n".join([*lines, *advice])


def test_every_choice_is_the_one_that_was_read() -> None:
    texts = {name: told(table(*itertools.chain(*arms))) for name, arms in ARMS.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


@pytest.mark.parametrize(
    ("alternative", "options"),
    [
        ("cooperative", '{"cap": "per_read"}'),
        ("hard_timeout", '{"naive": true}'),
        ("native", '{"per_step": true}'),
        ("fake_timeout", "{}"),
        ("unguarded", "{}"),
    ],
)
def test_a_documented_mistake_is_never_chosen(alternative: str, options: str) -> None:
    assert is_mistake(alternative, options)
    runs = table(*arm(alternative, alternative_options=options), *arm("stop_flag", caller_overrun_s=0.6))
    assert choose(runs).chosen == ()


def test_variants_that_are_no_mistakes_may_be_chosen() -> None:
    assert not is_mistake("hard_timeout", '{"drain_on_timeout": true}')
    assert not is_mistake("cooperative", '{"cap": "total", "propagate": false}')


def limits(**recalls: float) -> str:
    """What is said of the limits of runs with these source recalls, by alternative."""
    records = [sample_run(name, seed, source_recall=value) for name, value in recalls.items() for seed in range(12)]
    study = study_of(records)
    return next(line for line in summarise(study.runs, study.manifest).advice if line.startswith("Limits:"))


def test_source_recall_that_no_alternative_can_better_is_named_as_the_ceiling_of_retrieval() -> None:
    """Trust 8: a reader takes 0.70 for what a deadline costs."""
    assert "Source recall ends at 0.70: without any limit" in limits(unguarded=0.7, cooperative=0.6)
    assert "Source recall ends" not in limits(unguarded=0.7, cooperative=0.8), "somebody found more"
    assert "Source recall ends" not in limits(unguarded=1.0, cooperative=0.8), "all of it was found"
    assert "Source recall ends" not in limits(cooperative=0.7), "nobody had no limit"


def test_no_fewer_more_runs_are_asked_for_than_it_takes_to_tell_arms_apart() -> None:
    arms = arm("cooperative", 2, source_recall=[0.51, 0.5]), arm("hard_timeout", 2, source_recall=0.5)
    found = choose(table(*arms[0], *arms[1]))
    assert found.too_few
    assert [each.more_runs for each in found.undecided] == [FEWEST_PAIRS - 2]


@pytest.mark.parametrize(("more_runs", "words"), [(22.0, "About 22 more runs"), (math.inf, "No practical number")])
def test_how_many_more_runs_would_settle_a_difference_is_said_of_any_number(more_runs: float, words: str) -> None:
    better_by = Interval(0.05, -0.1, math.inf, 0.95, "studentised bootstrap", 40)
    assert words in Undecided("A  cooperative", "B  hard timeout", CRITERIA[1], better_by, more_runs).text()
