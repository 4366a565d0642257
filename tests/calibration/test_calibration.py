"""Whether following the lab's advice gives what it promised, against known truth; see `advice_trials`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from advice_trials import HEADER, KINDS, Calibration, drawn, means_of, pool, rare_costs, truly_worse_by

import docmind_lab as dl
from docmind_lab.findings.choice import choose

DOCS = Path(__file__).parents[2] / "docs" / "studies.md"


OFTEN = ("choices", "timeouts", "falls", "rare costs", *(kind for kind in KINDS if kind.startswith("what-if")))


@pytest.mark.parametrize("kind", OFTEN)
def test_following_the_advice_gives_what_it_promised(kind: str) -> None:
    """The small form: few repetitions, which a badly wrong claim does not survive."""
    found = Calibration.over(6, KINDS[kind]())
    assert found.given + found.silent == 6
    assert found.is_within_claim, found.row()


@pytest.mark.full
@pytest.mark.parametrize(("share", "cost_s", "steady_s"), [(0.02, 60.0, 1.0), (0.05, 60.0, 2.0), (0.03, 20.0, 0.5)])
@pytest.mark.parametrize("count", [14, 40, 80])
def test_a_rare_cost_beats_no_better_arm_in_worlds_that_set_no_level(
    count: int, share: float, cost_s: float, steady_s: float
) -> None:
    found = Calibration.over(60, rare_costs(count, 77, share, cost_s, steady_s))
    assert found.kept / found.given >= 0.95


@pytest.mark.full
def test_the_table_in_the_docs_is_what_two_hundred_repetitions_give() -> None:
    rows = [Calibration.over(200, KINDS[kind]()) for kind in KINDS]
    assert all(row.is_within_claim for row in rows)
    assert "\n".join([HEADER, *(row.row() for row in rows)]) in DOCS.read_text(encoding="utf-8")


def test_fifteen_blocks_of_forty_seeds_advise_the_same_or_do_not_tell() -> None:
    """Trust 3: an arm that one block chooses alone is beaten in no other."""
    runs, rng = pool("pool"), np.random.default_rng(15)
    found = [choose(drawn(runs, rng, 40)) for _ in range(15)]
    assert set.intersection(*(set(each.chosen) for each in found))
    alone = {each.chosen[0] for each in found if len(each.chosen) == 1}
    assert not alone & {arm for each in found for arm in each.beaten}


@pytest.mark.full
def test_a_choice_by_fresh_runs_is_right_on_other_fresh_runs() -> None:
    """The whole way: two comparisons of the real stack with seeds that nothing was made with."""
    first = choose(dl.compare(runs=40, seed=914_207).runs)
    truth = means_of(dl.compare(runs=60, seed=310_498).runs)
    assert first.chosen
    for arm, by in first.beaten.items():
        assert truly_worse_by(truth, arm, by.by, by.criterion) > by.criterion.margin
