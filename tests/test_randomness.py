"""Keyed draws: equal in every process, and independent of order."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from docmind_lab.core.randomness import DrawKey, keyed_random, keyed_uniform

DRAWS = """
from docmind_lab.core.randomness import DrawKey, keyed_random
print([DrawKey(7, role, step, attempt).uniform("first_token")
       for role in ("router", "planner") for step in ("0.0.1", "3.1.2") for attempt in (1, 2)])
print([keyed_random(7, "questions").random() for _ in range(3)])
"""


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


def test_a_draw_does_not_depend_on_what_was_drawn_before():
    keys = [DrawKey(seed, role, "1.0.1", attempt) for seed in (-1, 0, 7) for role in ("", "a") for attempt in (1, 2)]
    in_order = {key: key.uniform("hang") for key in keys}
    assert {key: key.uniform("hang") for key in random.Random(3).sample(keys, len(keys))} == in_order


def test_every_part_of_the_key_matters_and_parts_do_not_run_into_each_other():
    key = (7, "planner", "1.0.1", 1)
    others = [(8, *key[1:]), (7, "router", "1.0.1", 1), (7, "planner", "1.0.2", 1), (*key[:3], 2)]
    drawn = [*(DrawKey(*each).uniform("a") for each in (key, *others)), DrawKey(*key).uniform("b")]
    drawn += [keyed_uniform("ab", "c"), keyed_uniform("a", "bc")]
    assert len(set(drawn)) == len(drawn)


def test_draws_over_many_keys_are_spread_evenly_between_zero_and_one():
    drawn = [DrawKey(seed, "planner", "1.0.1").uniform("x") for seed in range(4000)]
    assert all(0 <= value < 1 for value in drawn)
    # Standard error 0.0072; five of them, for numbers that are the same on every machine anyway.
    assert abs(sum(value < 0.3 for value in drawn) / 4000 - 0.3) < 0.036


def test_generators_of_the_same_parts_are_equal_and_of_their_own():
    first, second = keyed_random(1, "a"), keyed_random(1, "a")
    first.random()
    assert first.random() != second.random()
    assert keyed_random(1, "a").random() == keyed_random(1, "a").random()
    assert keyed_random(1, "a").random() != keyed_random(1, "b").random()
