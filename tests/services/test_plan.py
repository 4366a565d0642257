"""Plans: tokens over time, and what a request says of its call."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planned_replies import tagged

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.plan import ServiceRequest, Wait

waits = st.builds(Wait, seconds=st.floats(min_value=1e-6, max_value=1e4), tokens=st.integers(0, 5000))
instants = st.floats(min_value=-10, max_value=2e4)


@given(waits, instants, instants)
def test_tokens_never_become_fewer_and_stay_between_none_and_all(wait, first_s, second_s):
    earlier, later = sorted((first_s, second_s))
    assert 0 <= wait.tokens_by(earlier) <= wait.tokens_by(later) <= wait.tokens


@given(waits, st.floats(min_value=0, max_value=1e4))
def test_all_tokens_are_there_at_the_end_and_not_one_before_it_began(wait, beyond_s):
    assert wait.tokens_by(wait.seconds + beyond_s) == wait.tokens
    assert wait.tokens_by(-beyond_s) == 0
    assert wait.tokens_by(math.inf) == wait.tokens


def test_a_token_is_there_when_its_share_of_the_wait_is_over():
    wait = Wait(2.0, tokens=4)
    elapsed = (0, 0.49, 0.5, 0.99, 1.0, 1.5, 1.99, 2.0)
    assert [wait.tokens_by(elapsed_s) for elapsed_s in elapsed] == [0, 0, 1, 1, 2, 3, 3, 4]
    assert Wait(math.inf, tokens=3).tokens_by(1e9) == 0


NONSENSE = ["", "x", "--5", "-", "1.5", "²", "5-", " "]


@pytest.mark.parametrize(
    ("tags", "key"),
    [
        ({"seed": 7, "role": "planner", "step": "1.0.2", "attempt": 3}, DrawKey(7, "planner", "1.0.2", 3)),
        ({}, DrawKey(11, "router", "4", 1)),
        ({"seed": -5}, DrawKey(-5, "router", "4", 1)),
        *(({"seed": said, "attempt": said}, DrawKey(11, "router", "4", 1)) for said in NONSENSE),
    ],
)
def test_the_draw_key_is_what_the_client_says_of_its_call_and_else_the_defaults(tags, key):
    request = ServiceRequest("POST", "/v1/chat/completions", tagged(**tags))
    assert request.draw_key("router", "4", 11) == key
    assert request.json() is None, "a body that is missing"
