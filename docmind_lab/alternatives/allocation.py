"""How a decision timeout is divided over the roles of a run: in equal parts.

    Cooperative(PropagationPolicy(allocation=Equal()))               # "A:equal"

Shares follow each other in the order of work, so that each ends at an instant of its own: what a role does not use is
there for those after it, and what it lacks it does not take from them. A role that comes again works against the same
instant. The supervisor is held by the run's own deadline only, since without it nobody decides what comes next; its
share is what the others must leave it, in equal turns: one before each role and one after the last.

A role whose allotment is spent is cut, and the run goes on without it; see `graphs/agent_node.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.core.levels import ROLES


@dataclass(frozen=True)
class Equal:
    """Gives each role and the supervisor the same share."""

    name: ClassVar[str] = "equal"

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends; `budget_s` if it has none."""
        if role not in ROLES:
            return budget_s
        share_s = budget_s / (len(ROLES) + 1)
        turn_s = share_s / (len(ROLES) + 1)
        return min(budget_s, (ROLES.index(role) + 1) * (turn_s + share_s))
