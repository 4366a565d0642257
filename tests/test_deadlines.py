"""Deadlines: what is left, what a call may take, and that nesting only shrinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.core.deadlines import (
    DEADLINE_KEY,
    Deadline,
    PropagationPolicy,
    current_deadline,
    current_policy,
    deadline_scope,
    policy_scope,
)
from docmind_lab.core.errors import BudgetRefused, ConfigurationError, DeadlineExceeded

budgets = st.floats(min_value=1e-3, max_value=1e6)


# ---- what is left


def test_the_instant_of_the_deadline_itself_counts_as_passed(manual_clock):
    deadline = Deadline.after(2.0, manual_clock)
    manual_clock.advance(1.75)
    assert not deadline.passed()
    manual_clock.advance(0.25)
    assert deadline.passed()


@given(timeout=st.none() | st.floats(min_value=0, max_value=1e6), elapsed=st.floats(min_value=0, max_value=1e6))
def test_a_cap_is_never_negative_nor_more_than_the_timeout_or_what_is_left(manual_clock, timeout, elapsed):
    deadline = Deadline.after(5.0, manual_clock)
    manual_clock.advance(elapsed)
    cap_s = deadline.cap(timeout)
    assert cap_s == max(0.0, deadline.remaining() if timeout is None else min(timeout, deadline.remaining()))


# ---- children


def test_a_child_keeps_the_reserve_for_what_comes_after_and_has_passed_where_less_is_left(manual_clock):
    deadline = Deadline.after(2.0, manual_clock)
    assert deadline.child(0.5).remaining() == 1.5
    assert deadline.child() == deadline
    assert (deadline.child(3.0).passed(), deadline.child(3.0).cap(10.0)) == (True, 0.0)


# ---- from a graph's state, and in force around code


def test_a_state_without_a_deadline_gives_the_one_in_force_or_none(manual_clock):
    assert Deadline.from_state({}) is None
    with deadline_scope(Deadline.after(1.0, manual_clock)) as outer:
        assert Deadline.from_state({}, manual_clock) is outer


def test_a_state_carries_the_instant_of_the_deadline(manual_clock):
    deadline = Deadline.after(2.0, manual_clock)
    manual_clock.advance(0.5)
    read = Deadline.from_state({DEADLINE_KEY: deadline.at_s}, manual_clock)
    assert read is not None
    assert (read.at_s, read.remaining(), read.limit_s) == (deadline.at_s, 1.5, 1.5)
    manual_clock.advance(2.5)
    late = Deadline.from_state({DEADLINE_KEY: deadline.at_s}, manual_clock)
    assert late is not None
    assert (late.passed(), late.limit_s) == (True, 0.0)


def test_a_deadline_read_from_a_state_within_a_run_keeps_the_limit_of_the_run(manual_clock):
    run = Deadline.after(2.0, manual_clock)
    with policy_scope(PropagationPolicy(), run):
        manual_clock.advance(0.5)
        assert Deadline.from_state({DEADLINE_KEY: run.at_s}, manual_clock) is run
        reserved = Deadline.from_state({DEADLINE_KEY: run.at_s - 0.25}, manual_clock)
        assert (reserved.remaining(), reserved.limit_s) == (1.25, 1.75)
        manual_clock.advance(0.5)
        error = reserved.exceeded("synthesis", "model:/v1/chat/completions")
        assert (error.limit_s, error.elapsed_s) == (1.75, 1.0)


@given(spans=st.lists(budgets, min_size=1, max_size=6))
def test_nested_scopes_only_shrink_and_give_back_what_was_in_force(manual_clock, spans):
    def descend(rest):
        before = current_deadline()
        if not rest:
            return
        with deadline_scope(Deadline.after(rest[0], manual_clock)) as effective:
            assert current_deadline() is effective
            assert before is None or effective.at_s <= before.at_s
            assert effective.at_s <= manual_clock.now() + rest[0]
            descend(rest[1:])
            assert current_deadline() is effective
        assert current_deadline() is before

    descend(spans)
    assert current_deadline() is None


def test_a_scope_of_no_deadline_leaves_the_outer_one_in_force(manual_clock):
    with deadline_scope(Deadline.after(1.0, manual_clock)) as outer, deadline_scope(None) as inner:
        assert inner is outer
        assert current_deadline() is outer


# ---- errors


@pytest.mark.parametrize(("method", "kind"), [("exceeded", DeadlineExceeded), ("refused", BudgetRefused)])
def test_an_error_says_role_limit_time_spent_and_source(method, kind, manual_clock):
    deadline = Deadline.after(2.0, manual_clock)
    manual_clock.advance(2.25)
    error = getattr(deadline, method)("planner", "network")
    assert isinstance(error, kind)
    assert isinstance(error, TimeoutError)
    assert (error.role, error.limit_s, error.elapsed_s, error.source) == ("planner", 2.0, 2.25, "network")
    assert all(part in str(error) for part in ("planner", "network", "2.000 s"))


@pytest.mark.parametrize("reserve_s", [0.5, 3.0])
def test_time_spent_of_a_child_is_counted_from_the_start_of_the_whole_budget(reserve_s, manual_clock):
    child = Deadline.after(2.0, manual_clock).child(reserve_s)
    manual_clock.advance(1.25)
    assert child.refused("router", "middleware").elapsed_s == 1.25


# ---- policy


def test_the_default_policy_bounds_the_total_and_retries_once():
    assert current_policy() == PropagationPolicy(cap="total", floor_s=0.005, retries=1)


# ---- what cannot be used


def make_policy(field: str) -> Callable[[Any], Any]:
    return lambda value: PropagationPolicy(**{field: value})


NOT_FINITE = [math.nan, math.inf, -math.inf]
# What takes the value, its name in the error, and values that it refuses.
REFUSED = [
    (Deadline.after, "decision timeout must be a", [*NOT_FINITE, 0, 0.0, -1, -0.001, "2", "soon", None, True, [2.0]]),
    (lambda value: Deadline(at_s=value, limit_s=1.0), "finite instant", NOT_FINITE),
    (lambda value: Deadline.after(2.0).child(value), "reserve_s", [-0.1, math.nan, math.inf]),
    (lambda value: Deadline.from_state({DEADLINE_KEY: value}), DEADLINE_KEY, [math.nan, math.inf, "soon", [1.0]]),
    (make_policy("cap"), "cap must be", ["sometimes"]),
    (make_policy("floor_s"), "floor_s must be", [-0.1, math.nan, math.inf]),
    (make_policy("retries"), "retries must be", [-1]),
]


@pytest.mark.parametrize(("make", "name", "values"), REFUSED)
@pytest.mark.parametrize("inside_a_scope", [False, True])
def test_a_value_that_cannot_be_used_is_refused_by_name(make, name, values, inside_a_scope):
    for value in values:
        with (
            deadline_scope(Deadline.after(1.0) if inside_a_scope else None),
            pytest.raises(ConfigurationError) as caught,
        ):
            make(value)
        assert name in str(caught.value)
        assert repr(value) in str(caught.value)
