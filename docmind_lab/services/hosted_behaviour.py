"""How peers and hops behave, drawn from the call's key and not from its arrival.

    behaviour = PeerBehaviour(LatencyProfile.named("typical"), PeerHabits(lost=0.1))
    behaviour.course(DrawKey(seed=7, role="reader_1", step="0.1.1"))     # PeerCourse(steps_s=(1.2, 1.6), …)
    behaviour = HopBehaviour(LatencyProfile.named("typical"), adoption=0.5)
    key = DrawKey(seed=7, role="hop_2", step="0.1.2")
    behaviour.work_s(key), behaviour.has_adopted(key)                    # (1.2, True)
    calls_below("hop_2", "0.1.2")                                        # (("hop_3", "0.1.2.1"), ("hop_3", "0.1.2.2"))

A peer is an agent of its own: it works in steps, each as long as a model call of the profile takes. The shares in
`PeerHabits` are assumptions, not measurements: how often peers misbehave differs from one deployment to the next. A hop
works as long as one such call, then calls the hops below it side by side. With a larger share of adoption the same hops
have adopted the deadline, and others besides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_seconds, require_share
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import LatencyProfile

PEERS_PATH = "/a2a/"
"""Where the peers of a service are: `/a2a/<peer>`."""

# Two steps: the passages are read, then the answer is written, each in as many tokens as a short paragraph has.
STEPS = 2
TOKENS_OF_A_STEP = 40


@dataclass(frozen=True)
class PeerHabits:
    """How often peers misbehave; each field but the last three is a share of tasks in [0, 1].

    heartbeats: tasks that say that they are still worked on. heartbeat_s: seconds between such signs.
    ignores_cancel: tasks that are worked on to their end after a cancel, whose request is left without an answer.
    loses_cancel: cancel requests that never reach the task. lost: tasks that never say another word.
    twice: tasks that give their answer twice. late: tasks that take `late_s` longer.
    clock_skew_s: how far the peers' calendars are ahead of ours; it shows in the instants that they write into
    their messages.
    Raises: ConfigurationError naming the field.
    """

    heartbeats: float = 0.0
    ignores_cancel: float = 0.0
    loses_cancel: float = 0.0
    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    heartbeat_s: float = 2.0
    late_s: float = 10.0
    clock_skew_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("heartbeats", "ignores_cancel", "loses_cancel", "lost", "twice", "late"):
            require_share(f"peer habit {name}", getattr(self, name), "tasks")
        for name in ("heartbeat_s", "late_s"):
            require_seconds(f"peer habit {name}", getattr(self, name))
        if not math.isfinite(self.clock_skew_s):
            raise ConfigurationError(f"peer habit clock_skew_s must be finite seconds, not {self.clock_skew_s!r}")


DEFAULT_HABITS = PeerHabits(heartbeats=0.5, ignores_cancel=0.2, lost=0.02, twice=0.05)
"""An assumption: half of the tasks give signs of life, a fifth cannot be cancelled, some get lost or answer twice."""


@dataclass(frozen=True)
class PeerCourse:
    """How one task goes. steps_s: seconds of each step of its work; inf for a task that is lost."""

    steps_s: tuple[float, ...]
    heartbeat_s: float | None = None
    ignores_cancel: bool = False
    answers_twice: bool = False
    clock_skew_s: float = 0.0

    @property
    def work_s(self) -> float:
        """Seconds of work until the answer, if the task is not cancelled."""
        return math.fsum(self.steps_s)


@dataclass(frozen=True)
class PeerBehaviour:
    """How the peers of a service behave. default_seed: for clients that do not name their run."""

    path: ClassVar[str] = PEERS_PATH

    profile: LatencyProfile
    habits: PeerHabits = field(default=DEFAULT_HABITS)
    default_seed: int = 0

    def course(self, key: DrawKey) -> PeerCourse:
        """Return how the task with this key goes; the same key always gives the same course."""
        habits = self.habits
        of_steps = [DrawKey(key.seed, key.role, f"{key.step}/{number}", key.attempt) for number in range(STEPS)]
        steps_s = [self.profile.draw_llm(of_step).service_s(TOKENS_OF_A_STEP) for of_step in of_steps]
        if self._has_habit(key, "late", habits.late):
            steps_s.append(habits.late_s)
        if self._has_habit(key, "lost", habits.lost):
            steps_s.append(math.inf)
        return PeerCourse(
            steps_s=tuple(steps_s),
            heartbeat_s=habits.heartbeat_s if self._has_habit(key, "heartbeats", habits.heartbeats) else None,
            ignores_cancel=self._has_habit(key, "ignores_cancel", habits.ignores_cancel),
            answers_twice=self._has_habit(key, "twice", habits.twice),
            clock_skew_s=habits.clock_skew_s,
        )

    def loses_cancel(self, key: DrawKey) -> bool:
        """Whether the cancel request with this key is lost."""
        return self._has_habit(key, "loses_cancel", self.habits.loses_cancel)

    @staticmethod
    def _has_habit(key: DrawKey, habit: str, share: float) -> bool:
        return share > 0 and key.uniform(f"peer.{habit}") < share


HOPS_PATH: Final = "/hops/"
"""Where the hops of a service are: `/hops/<role>`."""

LEVELS: Final = 3
"""Levels of the tree: the caller calls hop 1, which calls hop 2, which calls hop 3."""

FAN_OUT: Final = 2
"""Calls that each hop above the last level makes side by side."""


def role_of(level: int) -> str:
    """Return the role of the hops of a level, from 1 on."""
    return f"hop_{level}"


def calls_below(role: str, step: str) -> tuple[tuple[str, str], ...]:
    """Return role and step of each call that the hop with this role and step makes; none at the last level."""
    level = next((level for level in range(1, LEVELS) if role == role_of(level)), LEVELS)
    if level == LEVELS:
        return ()
    return tuple((role_of(level + 1), f"{step}.{number}") for number in range(1, FAN_OUT + 1))


@dataclass(frozen=True)
class HopBehaviour:
    """How hops behave: each works as long as a model call of 40 tokens. adoption: share that holds to deadlines."""

    path: ClassVar[str] = HOPS_PATH

    profile: LatencyProfile
    adoption: float = 0.0
    default_seed: int = 0

    def work_s(self, key: DrawKey) -> float:
        """Return the seconds of a hop's own work, from its request until it calls the hops below it."""
        return self.profile.draw_llm(key).service_s(TOKENS_OF_A_STEP)

    def has_adopted(self, key: DrawKey) -> bool:
        """Return whether the hop with this key reads the deadline of a request, holds to it and sends it on."""
        return key.uniform("hop.adopts") < self.adoption
