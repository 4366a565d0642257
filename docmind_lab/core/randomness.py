"""Random draws by key: a number depends on what it is for, never on when it is drawn.

Every draw is keyed by (run seed, role, logical step, attempt) and by what is drawn, so that two alternatives meet
the same latencies and faults (common random numbers) and the order of threads cannot change a table.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

_DENOMINATOR = 2.0**64


@dataclass(frozen=True)
class DrawKey:
    """What a simulated call is, for drawing its latency and its faults.

    seed: of the run. role: who calls. step: logical position in the run, such as "3.0.1". attempt: 1-based.
    """

    seed: int
    role: str
    step: str
    attempt: int = 1

    def uniform(self, what: str) -> float:
        """A number in [0, 1) for this key and the thing that is drawn."""
        return keyed_uniform(self.seed, self.role, self.step, self.attempt, what)


def _digest(parts: tuple[object, ...]) -> int:
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def keyed_uniform(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone: equal in every process and Python version."""
    return _digest(parts) / _DENOMINATOR


def run_seed(study_seed: int, repeat: int) -> int:
    """The seed of one repeat of a study: two studies with neighbouring seeds share none of them.

    Args:
        study_seed: Seed of the study.
        repeat: Number of the repeat, from 1 on.

    Returns:
        48 bits, so that ten thousand repeats of a study have different seeds and every JSON reader keeps them whole.
    """
    return keyed_random(study_seed, "run seed", repeat).getrandbits(48)


def keyed_random(*parts: object) -> random.Random:
    """A generator of its own for the parts, for what needs more than one draw."""
    return random.Random(_digest(parts))
