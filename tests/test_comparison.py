from __future__ import annotations

import itertools
from typing import Any

import pytest

from docmind_lab.alternatives import ALTERNATIVES, Cooperative, HardTimeout, Unguarded
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.deadlines import PropagationPolicy
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison, run_comparison


def orders(**changes: Any) -> list[Any]:
    return Comparison(**changes).orders()


def test_switching_propagation_off_for_a_is_refused() -> None:
    settings = Settings(agents={"enable_deadline_propagation": False})
    with pytest.raises(ConfigurationError, match="would make cooperative another alternative"):
        run_comparison(Comparison(alternatives=(Cooperative(),)), settings)


def test_every_alternative_asks_the_same_questions_with_the_same_seeds() -> None:
    asked: dict[str, set[tuple[int, str]]] = {}
    for order in orders(runs=5):
        asked.setdefault(order.facts.alternative, set()).add((order.facts.seed, order.question.id))
    assert set(asked) == set(ALTERNATIVES)
    assert len({frozenset(pairs) for pairs in asked.values()}) == 1


def test_the_order_of_runs_mixes_the_alternatives_and_is_the_same_every_time() -> None:
    names = [order.facts.alternative for order in orders(runs=4)]
    assert names == [order.facts.alternative for order in orders(runs=4)]
    blocks = sum(first != second for first, second in itertools.pairwise(names))
    assert blocks > len(ALTERNATIVES), "alternatives must not stand in blocks"


def test_ids_are_derived_from_the_design() -> None:
    assert Comparison().study_id == Comparison().study_id
    assert Comparison(seed=8).study_id != Comparison().study_id
    ids = [order.facts.run_id for order in orders(runs=3)]
    assert len(set(ids)) == len(ids)


def test_neighbouring_study_seeds_share_no_run_seed() -> None:
    """Trust 7: two studies with seeds 7 and 8 are independent, so each is fresh evidence for the other."""
    seeds = [{seed for seed, _ in Comparison(seed=study_seed, runs=200).questions()} for study_seed in (7, 8)]
    assert len(seeds[0]) == len(seeds[1]) == 200
    assert not seeds[0] & seeds[1]


def test_more_repeats_of_a_seed_begin_with_the_fewer_ones() -> None:
    assert Comparison(runs=60).questions()[:40] == Comparison(runs=40).questions()


def test_names_letters_variants_and_instances_all_name_an_alternative() -> None:
    assert parse_alternatives("A, b:naive ,unguarded") == (Cooperative(), HardTimeout(naive=True), Unguarded())
    assert parse_alternatives([HardTimeout()]) == (HardTimeout(),)
    assert len(parse_alternatives(None)) == len(ALTERNATIVES)


def test_a_named_a_takes_its_retries_from_the_settings_and_an_instance_keeps_its_own() -> None:
    named, own = parse_alternatives(["A", Cooperative(PropagationPolicy(retries=5))], budgeted_retries=3)
    assert isinstance(named, Cooperative)
    assert isinstance(own, Cooperative)
    assert (named.policy.retries, own.policy.retries) == (3, 5)


def test_retries_of_those_that_retry_by_themselves_are_set() -> None:
    (a,) = parse_alternatives("A", retries=0)
    assert isinstance(a, Cooperative)
    assert a.policy.retries == 0
