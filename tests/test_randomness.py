"""Keyed draws: equal in every process, and independent of order."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.core.randomness import DrawKey, keyed_random, keyed_uniform

DRAWS = """
from docmind_lab.core.randomness import DrawKey, keyed_random
print([DrawKey(7, role, step, attempt).uniform("first_token")
       for role in ("router", "planner") for step in ("0.0.1", "3.1.2") for attempt in (1, 2)])
print([keyed_random(7, "questions").random() for _ in range(3)])
"""

keys = st.builds(
    DrawKey,
    seed=st.integers(),
    role=st.text(max_size=8),
    step=st.from_regex(r"[0-9]\.[0-9]\.[0-9]", fullmatch=True),
    attempt=st.integers(1, 5),
)


def test_draws_are_equal_in_processes_with_different_hash_seeds():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DRAWS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "424242")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("0.") >= 9


def test_a_draw_is_pinned_because_published_tables_depend_on_it():
    assert DrawKey(7, "planner", "1.0.1").uniform("first_token") == 0.07063322670793944


@given(st.lists(keys, min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_a_draw_does_not_depend_on_what_was_drawn_before(drawn, shuffler: random.Random):
    in_order = {key: key.uniform("hang") for key in drawn}
    shuffled = list(drawn)
    shuffler.shuffle(shuffled)
    assert {key: key.uniform("hang") for key in shuffled} == in_order


@given(keys, st.text(max_size=12))
def test_a_draw_lies_between_zero_and_one(key, what):
    assert 0 <= key.uniform(what) < 1


def test_every_part_of_the_key_matters():
    key = DrawKey(7, "planner", "1.0.1", 1)
    others = [
        DrawKey(8, "planner", "1.0.1", 1),
        DrawKey(7, "router", "1.0.1", 1),
        DrawKey(7, "planner", "1.0.2", 1),
        DrawKey(7, "planner", "1.0.1", 2),
    ]
    drawn = [key.uniform("a"), key.uniform("b"), *(other.uniform("a") for other in others)]
    assert len(set(drawn)) == len(drawn)


def test_parts_do_not_run_into_each_other():
    assert keyed_uniform("ab", "c") != keyed_uniform("a", "bc")


def test_draws_over_many_keys_are_spread_evenly():
    share = sum(DrawKey(seed, "planner", "1.0.1").uniform("x") < 0.3 for seed in range(4000)) / 4000
    # Standard error 0.0072; five of them, for numbers that are the same on every machine anyway.
    assert abs(share - 0.3) < 0.036


def test_generators_of_the_same_parts_are_equal_and_of_their_own():
    first, second = keyed_random(1, "a"), keyed_random(1, "a")
    first.random()
    assert first.random() != second.random()
    assert keyed_random(1, "a").random() == keyed_random(1, "a").random()
    assert keyed_random(1, "a").random() != keyed_random(1, "b").random()
