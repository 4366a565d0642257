"""How long a peer works on a task, and how it may misbehave, drawn from the call's key and not from its arrival.

    behaviour = PeerBehaviour(LatencyProfile.named("typical"), PeerHabits(lost=0.1))
    behaviour.course(DrawKey(seed=7, role="reader_1", step="0.1.1"))     # PeerCourse(steps_s=(1.2, 1.6), …)

A peer is an agent of its own: it works in steps, each as long as a model call of the profile takes. The shares in
`PeerHabits` are assumptions, not measurements: how often peers misbehave differs from one deployment to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from docmind_lab.core.errors import ConfigurationError
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
            share = getattr(self, name)
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise ConfigurationError(f"peer habit {name} must be a share in [0, 1], not {share!r}")
        for name in ("heartbeat_s", "late_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigurationError(f"peer habit {name} must be a finite number of seconds above 0")
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
        steps_s = [self._step_s(key, number) for number in range(STEPS)]
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

    def _step_s(self, key: DrawKey, number: int) -> float:
        of_step = DrawKey(key.seed, key.role, f"{key.step}/{number}", key.attempt)
        return self.profile.draw_llm(of_step).service_s(TOKENS_OF_A_STEP)

    @staticmethod
    def _has_habit(key: DrawKey, habit: str, share: float) -> bool:
        return share > 0 and key.uniform(f"peer.{habit}") < share
