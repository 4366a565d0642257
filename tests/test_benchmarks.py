"""The benchmarks do the same work in both arms, and say what they find; nothing here is timed."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sample_runs import sample_run, study_of

from benchmarks import __main__ as command
from benchmarks import handoffs, sweep
from benchmarks.figures import Figure, table
from benchmarks.pairs import DifferentWork, pair_ratios

SMALL: dict[str, dict[str, Any]] = {
    "instrumentation": {"questions": 1, "repeats": 1},
    "virtual_time": {"questions": 1, "repeats": 1, "runs": 1},
    "sweep": {"timeouts_s": [5.0], "seeds": 2},
    "tables": {"calls": 1},
    "overrun": {"runs": 1},
}
OF_REAL_TIME = ("overrun",)


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.wall if each in OF_REAL_TIME else ()) for each in SMALL]
)
def test_a_benchmark_does_the_same_work_in_both_arms_and_gives_figures_that_are_no_less_than_nothing(name: str):
    """Arms that do different work raise `DifferentWork`; what a figure should be is no promise of a test."""
    figures = list(importlib.import_module(f"benchmarks.{name}").run(**SMALL[name]))
    assert figures
    assert all(figure.value >= 0 for figure in figures if not math.isnan(figure.value))


def test_the_variance_factor_is_that_of_the_pairs_and_a_budget_under_which_nothing_varies_weighs_nothing():
    def runs(returned_at_s: dict[str, list[float]], timeout_s: float) -> pd.DataFrame:
        rows = [
            sample_run(name, seed, returned_at_s=value, decision_timeout_s=timeout_s, horizon_s=5 * timeout_s)
            for name, values in returned_at_s.items()
            for seed, value in enumerate(values)
        ]
        return study_of(rows).runs

    varying = runs({"cooperative": [1.0, 2.0, 3.0], "hard_timeout": [1.0, 2.0, 4.0]}, 5.0)
    constant = runs({"cooperative": [2.0] * 3, "hard_timeout": [2.0] * 3}, 2.0)
    figure = sweep._variance_factor("cooperative", "hard_timeout", "returned_at_s", [varying, constant])
    # (1 + 7/3) / (1/3): the differences are 0, 0 and −1.
    assert figure.value == pytest.approx(10)
    # Later by a second under every seed is no variance between seeds.
    later = runs({"cooperative": [11.0, 12.0, 13.0], "hard_timeout": [11.0, 12.0, 14.0]}, 20.0)
    assert sweep._variance_factor(
        "cooperative", "hard_timeout", "returned_at_s", [varying, later]
    ).value == pytest.approx(10)


@pytest.mark.parametrize("checkpoints", [False, True])
def test_our_handoffs_and_the_packages_do_the_same_work(checkpoints: bool):
    model = handoffs.InstantModel()
    ours, theirs = (
        handoffs._handing_over(made(model, checkpoints), model)() for made in (handoffs._ours, handoffs._theirs)
    )
    assert ours == theirs
    answer, handed_over, said, _, calls = ours
    assert answer == "The conversation had 1 question."
    assert handed_over == [f"transfer_to_{name}" for name in handoffs._AGENTS]
    assert said == [*handoffs._AGENTS, "supervisor"]
    assert calls == ["supervisor", "agent"] * 5 + ["supervisor"]


def test_arms_that_do_different_work_are_not_compared():
    with pytest.raises(DifferentWork, match="1 and 2"):
        pair_ratios([(lambda: 1, lambda: 2)], repeats=1)


def test_a_table_says_figure_interval_target_and_verdict():
    figures = [
        Figure("ratio", 1.25, interval=(1.2, 1.3), at_most=1.1),
        Figure("time", 80.0, "ms", at_most=100.0),
        Figure("beside", 3.0, "%"),
    ]
    lines = table(figures).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["met", "met", "%"]
    assert lines[1].split() == ["ratio", "1.250", "1.200", "–", "1.300", "≤", "1.100", "not", "met"]
    assert "≤ 100.0 ms" in lines[2]


def test_an_unknown_benchmark_is_refused_by_name(capsys: pytest.CaptureFixture[str]):
    assert command.main(["handoff"]) == 2
    assert "'handoff'" in capsys.readouterr().err


def test_every_benchmark_can_be_named():
    files = {path.stem for path in Path(command.__file__).parent.glob("*.py")}
    helpers = {"__init__", "__main__", "figures", "in_process", "pairs", "tiny_server", "mutation_score"}
    of_notebooks = {"peer_chaos", "peer_races"}
    assert files - helpers - of_notebooks == set(command.NAMES)
