"""How long a hop works, which hops it calls, and whether it has adopted the deadline, drawn from the call's key.

    behaviour = HopBehaviour(LatencyProfile.named("typical"), adoption=0.5)
    key = DrawKey(seed=7, role="hop_2", step="0.1.2")
    behaviour.work_s(key)        # 1.2
    behaviour.has_adopted(key)   # True
    calls_below("hop_2", "0.1.2")    # (("hop_3", "0.1.2.1"), ("hop_3", "0.1.2.2"))

A hop works as long as a model call of the profile takes, then calls the hops below it side by side. With a larger share
of adoption the same hops have adopted the deadline, and others besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import LatencyProfile

HOPS_PATH: Final = "/hops/"
"""Where the hops of a service are: `/hops/<role>`."""

LEVELS: Final = 3
"""Levels of the tree: the caller calls hop 1, which calls hop 2, which calls hop 3."""

FAN_OUT: Final = 2
"""Calls that each hop above the last level makes side by side."""

# As many as a step of a peer's work: the text of a short paragraph.
_TOKENS = 40


def role_of(level: int) -> str:
    """Return the role of the hops of a level, from 1 on."""
    return f"hop_{level}"


def calls_below(role: str, step: str) -> tuple[tuple[str, str], ...]:
    """Return role and step of each call that the hop with this role and step makes; none at the last level."""
    level = next((level for level in range(1, LEVELS) if role == role_of(level)), LEVELS)
    if level == LEVELS:
        return ()
    return tuple((role_of(level + 1), f"{step}.{number}") for number in range(1, FAN_OUT + 1))


def checked_adoption(share: object) -> float:
    """Return the share as a float. Raises: ConfigurationError if it is not a number from 0 to 1."""
    if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1:
        return float(share)
    raise ConfigurationError(f"adoption must be a share of the hops from 0 to 1, not {share!r}")


@dataclass(frozen=True)
class HopBehaviour:
    """How hops behave: each works as long as a model call of 40 tokens. adoption: share that holds to deadlines."""

    path: ClassVar[str] = HOPS_PATH

    profile: LatencyProfile
    adoption: float = 0.0
    default_seed: int = 0

    def work_s(self, key: DrawKey) -> float:
        """Return the seconds of a hop's own work, from its request until it calls the hops below it."""
        return self.profile.draw_llm(key).service_s(_TOKENS)

    def has_adopted(self, key: DrawKey) -> bool:
        """Return whether the hop with this key reads the deadline of a request, holds to it and sends it on."""
        return key.uniform("hop.adopts") < self.adoption
