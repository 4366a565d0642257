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
    """Identifies a simulated call, so that its latency and faults can be drawn reproducibly.

    seed: of the run. role: who calls. step: logical position in the run, such as "3.0.1". attempt: 1-based.
    """

    seed: int
    role: str
    step: str
    attempt: int = 1

    def uniform(self, what: str) -> float:
        """Return the number in [0, 1) that belongs to this key and to `what` is drawn."""
        return keyed_uniform(self.seed, self.role, self.step, self.attempt, what)


def _digest(parts: tuple[object, ...]) -> int:
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def keyed_uniform(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts alone: equal in every process and Python version."""
    return _digest(parts) / _DENOMINATOR


def run_seed(study_seed: int, repeat: int) -> int:
    """Return the seed of one repeat of a study, from 1 on; studies with neighbouring seeds share no run seeds.

    48 bits, so that ten thousand repeats of a study have different seeds and every JSON reader keeps them whole.
    """
    return keyed_random(study_seed, "run seed", repeat).getrandbits(48)


def keyed_random(*parts: object) -> random.Random:
    """Return a random generator seeded by the parts, for code that needs more than one draw."""
    return random.Random(_digest(parts))
