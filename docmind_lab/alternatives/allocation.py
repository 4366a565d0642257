"""Allocations: how a decision timeout is divided over the roles of a run.

    Cooperative(PropagationPolicy(allocation=Equal()))               # "A:equal"
    Cooperative(PropagationPolicy(allocation=ReserveFirst()))        # "A:reserve_first"
    Cooperative(PropagationPolicy(allocation=LearnedPercentile(90, seconds)))    # of runs of the control, other seeds

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

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import ROLES, SUPERVISOR_ROLE

Seconds = Mapping[str, float] | tuple[tuple[str, float], ...]
"""Seconds of each role, as a mapping or as pairs.

A table of roles of DocMind's is put in their order of work, and those that it leaves out have no share of their own,
only what others left them. Any other table has to be in the order of work; the supervisor stands anywhere in it.
"""


@dataclass(frozen=True)
class Equal:
    """Gives each role and the supervisor the same share. roles: in the order of work, without the supervisor."""

    roles: tuple[str, ...] = ROLES

    name: ClassVar[str] = "equal"

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        share_s = budget_s / (len(self.roles) + 1)
        return _end_of_share_s(role, {**dict.fromkeys(self.roles, share_s), SUPERVISOR_ROLE: share_s}, budget_s)


@dataclass(frozen=True)
class Proportional:
    """Divides the decision timeout in proportion to the mean seconds of each role.

    Raises: ConfigurationError for seconds that are negative, not finite, or 0 for all.
    """

    mean_s: Seconds

    name: ClassVar[str] = "proportional"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean_s", _check_pairs("mean_s", self.mean_s))

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        return _end_of_share_s(role, _scale(self.mean_s, budget_s), budget_s)


@dataclass(frozen=True)
class LearnedPercentile:
    """Gives each role a learned percentile of its seconds, scaled down if they exceed the decision timeout.

    If they come to less, the rest belongs to no role: roles are cut where they are later than they nearly always are,
    also when there is time. percentile: in (0, 100), of which `seconds` are.
    Raises: ConfigurationError for a percentile out of range, and for seconds as `Proportional`.
    """

    percentile: float
    seconds: Seconds

    name: ClassVar[str] = "learned_percentile"

    def __post_init__(self) -> None:
        _check_percentile(self.percentile)
        object.__setattr__(self, "seconds", _check_pairs("seconds", self.seconds))

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        return _end_of_share_s(role, _within(self.seconds, budget_s), budget_s)


@dataclass(frozen=True)
class ReserveFirst:
    """Lets a role use all time but what is reserved for later roles and the supervisor's turns between them.

    reserve_s: seconds for each role, scaled to the budget if they come to more. Left out, the shares of `Equal` (a
    sixth of the budget each) are reserved for synthesis, validation and the supervisor, and nothing for the others:
    an answer needs the last three, and whatever the first three leave out makes it a poorer one.
    Raises: ConfigurationError for seconds as `Proportional`.
    """

    reserve_s: Seconds | None = None

    name: ClassVar[str] = "reserve_first"

    def __post_init__(self) -> None:
        if self.reserve_s is not None:
            object.__setattr__(self, "reserve_s", _check_pairs("reserve_s", self.reserve_s))

    def until_s(self, role: str, budget_s: float) -> float:
        """Return the seconds after the run's start at which the role's share ends."""
        if self.reserve_s is None:
            answering = ("synthesis", "validation", SUPERVISOR_ROLE)
            reserves = dict.fromkeys(ROLES, 0.0) | dict.fromkeys(answering, budget_s / (len(ROLES) + 1))
        else:
            reserves = _within(self.reserve_s, budget_s)
        # As if the reserves stood at the end of the budget, one after the other.
        free_s = budget_s - math.fsum(reserves.values())
        return min(budget_s, free_s + _end_of_share_s(role, reserves, budget_s))


def _end_of_share_s(role: str, shares: Mapping[str, float], budget_s: float) -> float:
    """Return the end of a role's share when shares follow each other; `budget_s` for a role without a share."""
    working = [name for name in shares if name != SUPERVISOR_ROLE]
    if role not in working:
        return budget_s
    turn_s = shares.get(SUPERVISOR_ROLE, 0.0) / (len(working) + 1)
    so_far = working[: working.index(role) + 1]
    return min(budget_s, math.fsum(turn_s + shares[name] for name in so_far))


def _scale(seconds: Seconds, budget_s: float) -> dict[str, float]:
    table = dict(seconds)
    total_s = math.fsum(table.values())
    return {role: budget_s * value / total_s for role, value in table.items()}


def _within(seconds: Seconds, budget_s: float) -> dict[str, float]:
    table = dict(seconds)
    return _scale(seconds, budget_s) if math.fsum(table.values()) > budget_s else table


def _check_pairs(field: str, seconds: Seconds) -> tuple[tuple[str, float], ...]:
    """Return the table as hashable pairs, after checking its values. Raises: ConfigurationError."""
    table = {str(role): float(value) for role, value in dict(seconds).items()}
    for role, value in table.items():
        if not (value >= 0 and math.isfinite(value)):
            raise ConfigurationError(f"{field}[{role!r}] must be 0 or more finite seconds, not {value!r}")
    if not any(table.values()):
        raise ConfigurationError(f"{field} must have seconds above 0 for a role; `calls` of a study has its calls'")
    if table.keys() <= {*ROLES, SUPERVISOR_ROLE}:
        table = {role: table.get(role, 0.0) for role in (SUPERVISOR_ROLE, *ROLES)}
    return tuple(table.items())


def _check_percentile(percentile: float) -> None:
    if not 0 < percentile < 100:
        raise ConfigurationError(f"percentile must be above 0 and below 100, not {percentile!r}; try 90")
