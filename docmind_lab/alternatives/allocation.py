"""Allocations: how a decision timeout is divided over the roles of a run.

    Cooperative(PropagationPolicy(allocation=Equal()))               # "A:equal"
    Cooperative(PropagationPolicy(allocation=ReserveFirst()))        # "A:reserve_first"

Shares follow each other in the order of work, so that each ends at an instant of its own: what a role does not use is
there for those after it, and what it lacks it does not take from them. A role that comes again works against the same
instant. The supervisor is held by the run's own deadline only, since without it nobody decides what comes next; its
share is what the others must leave it, in equal turns: one before each role and one after the last.

A role whose allotment is spent is cut, and the run goes on without it; see `graphs/agent_node.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.core.levels import ROLES, SUPERVISOR_ROLE


@dataclass(frozen=True)
class Equal:
    """Gives each role and the supervisor the same share."""

    name: ClassVar[str] = "equal"

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        return _end_of_share_s(role, dict.fromkeys((*ROLES, SUPERVISOR_ROLE), _equal_share_s(budget_s)), budget_s)


@dataclass(frozen=True)
class ReserveFirst:
    """Lets a role use all time but what is reserved for later roles and the supervisor's turns between them.

    The shares of `Equal` (a sixth of the budget each) are reserved for synthesis, validation and the supervisor, and
    nothing for the others: an answer needs the last three, and whatever the first three leave out makes it a poorer
    one.
    """

    name: ClassVar[str] = "reserve_first"

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        answering = ("synthesis", "validation", SUPERVISOR_ROLE)
        reserves = dict.fromkeys(ROLES, 0.0) | dict.fromkeys(answering, _equal_share_s(budget_s))
        # As if the reserves stood at the end of the budget, one after the other.
        free_s = budget_s - math.fsum(reserves.values())
        return min(budget_s, free_s + _end_of_share_s(role, reserves, budget_s))


def _equal_share_s(budget_s: float) -> float:
    return budget_s / (len(ROLES) + 1)


def _end_of_share_s(role: str, shares: Mapping[str, float], budget_s: float) -> float:
    """Return the end of a role's share when shares follow each other; `budget_s` for a role without a share."""
    working = [name for name in shares if name != SUPERVISOR_ROLE]
    if role not in working:
        return budget_s
    turn_s = shares.get(SUPERVISOR_ROLE, 0.0) / (len(working) + 1)
    so_far = working[: working.index(role) + 1]
    return min(budget_s, math.fsum(turn_s + shares[name] for name in so_far))
