"""How a budget is divided over roles: the instants."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.propagation import Equal
from docmind_lab.core.deadlines import Deadline, PropagationPolicy, deadline_of_role, policy_scope

ROLES = ("router", "planner", "retrieval", "synthesis", "validation")


def ends(budget_s: float) -> list[float]:
    return [Equal().until_s(role, budget_s) for role in ROLES]


# ---- instants


def test_equal_shares_follow_each_other_with_the_supervisors_turns_between() -> None:
    # 36 s: 6 for each role and the supervisor, whose turn is 1.
    assert ends(36.0) == pytest.approx([7.0, 14.0, 21.0, 28.0, 35.0])


@given(budget_s=st.floats(min_value=0.01, max_value=1e4))
def test_no_role_ends_before_the_one_it_follows_or_after_the_budget(budget_s: float) -> None:
    instants = ends(budget_s)
    assert all(before <= after + 1e-9 for before, after in pairwise(instants))
    assert instants[0] >= 0
    assert instants[-1] <= budget_s


def test_the_supervisor_and_roles_without_a_share_have_the_whole_budget() -> None:
    assert Equal().until_s("supervisor", 20.0) == 20.0
    assert Equal().until_s("somebody_else", 20.0) == 20.0


# ---- in force


def test_an_allotment_ends_where_the_allocation_says_and_never_after_the_deadline(manual_clock: ManualClock) -> None:
    whole = Deadline.after(36.0, manual_clock)
    with policy_scope(PropagationPolicy(allocation=Equal()), whole):
        manual_clock.sleep(3.0)
        # As an agent has it: what is left, and no memory of the budget.
        left = Deadline.from_state({"deadline_ts": whole.at_s}, manual_clock)
        assert left is not None
        router = deadline_of_role(left, "router")
        assert router.remaining() == router.limit_s == pytest.approx(4.0)
        assert deadline_of_role(left, "supervisor") is left
        earlier = whole.child(34.0)
        assert deadline_of_role(earlier, "router") is earlier
    assert deadline_of_role(whole, "router") is whole


def test_what_a_role_leaves_is_there_for_those_after_it(manual_clock: ManualClock) -> None:
    whole = Deadline.after(36.0, manual_clock)
    with policy_scope(PropagationPolicy(allocation=Equal()), whole):
        # The supervisor's turn and the router took 2 s of their 7.
        manual_clock.sleep(2.0)
        assert deadline_of_role(whole, "planner").remaining() == pytest.approx(12.0)
        # The planner is skipped.
        assert deadline_of_role(whole, "retrieval").remaining() == pytest.approx(19.0)


def test_without_the_whole_budget_nothing_is_divided(manual_clock: ManualClock) -> None:
    deadline = Deadline.after(36.0, manual_clock)
    with policy_scope(PropagationPolicy(allocation=Equal())):
        assert deadline_of_role(deadline, "router") is deadline


# ---- as options of an alternative


def test_allocations_are_named_in_the_options() -> None:
    (equal,) = parse_alternatives("A:equal")
    assert json.loads(options_json(equal)) == {"allocation": "equal"}
    assert options_json(Cooperative()) == "{}"


def test_an_alternative_with_an_allocation_can_be_hashed_and_sent_to_a_worker() -> None:
    alternative = Cooperative(PropagationPolicy(allocation=Equal()))
    assert pickle.loads(pickle.dumps(alternative)) == alternative
    assert len({alternative, replace(alternative)}) == 1
