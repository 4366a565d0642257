"""The primary agent's timeout: fixed, or adapted to the chunk's length and to how long recent chunks took.

    FixedTimeout(12.0).timeout_s(800)            # 12.0
    adaptive = AdaptiveTimeout()
    adaptive.observe(800, 6.2, ended=True)       # after each chunk
    adaptive.timeout_s(400)

Neither knows of a deadline: the ladder takes the smaller of this and what is left of one.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError


class PrimaryTimeout(Protocol):
    """Decides how long the primary agent may take. name: level in tables."""

    name: ClassVar[str]

    def timeout_s(self, characters: int) -> float:
        """Return the timeout in seconds for a chunk with this number of characters."""

    def observe(self, characters: int, seconds: float, *, ended: bool) -> None:
        """Note how long the agent took for a chunk. ended: by itself, not by its timeout."""


@dataclass(frozen=True)
class FixedTimeout:
    """The same timeout for every chunk."""

    seconds: float = 12.0

    name: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        require_seconds("primary timeout", self.seconds)

    def timeout_s(self, characters: int) -> float:
        """Return the fixed timeout in seconds."""
        return self.seconds

    def observe(self, characters: int, seconds: float, *, ended: bool) -> None:
        """Do nothing: a fixed timeout does not adapt."""


@dataclass
class AdaptiveTimeout:
    """A quantile of the agent's recent times, scaled to the chunk's length, with some headroom.

    Time is taken to grow with the length by `per_character` (relative to that of an empty chunk), so that short chunks
    say something of long ones. quantile: of the last `window` chunks. headroom: the timeout is so many times the
    quantile. first_s: until `warm_up` chunks have been seen. least_s, most_s: it stays between them.

    A chunk that was cut has taken longer than its timeout by an unknown amount; it is noted as twice that. Left out,
    the timeout could only ever fall. Any thread may use it; what it says depends on what it has seen.
    """

    quantile: float = 0.9
    headroom: float = 1.25
    window: int = 50
    warm_up: int = 5
    per_character: float = 0.001
    first_s: float = 12.0
    least_s: float = 1.0
    most_s: float = 60.0
    _seen: deque[float] = field(init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    name: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        for name in ("headroom", "first_s", "least_s", "most_s"):
            require_seconds(name, getattr(self, name))
        if not 0 < self.quantile <= 1:
            raise ConfigurationError(f"quantile must be above 0 and at most 1, not {self.quantile!r}; try 0.9")
        if self.warm_up < 1 or self.window < self.warm_up:
            raise ConfigurationError(
                f"window must be at least warm_up, and that at least 1, not {self.window!r} and {self.warm_up!r}"
            )
        if self.per_character < 0 or self.least_s > self.most_s:
            raise ConfigurationError("per_character must be 0 or more, and least_s at most most_s")
        self._seen = deque(maxlen=self.window)

    def timeout_s(self, characters: int) -> float:
        """Return the timeout in seconds for the next chunk, with this number of characters."""
        with self._lock:
            seen = sorted(self._seen)
        if len(seen) < self.warm_up:
            return self.first_s
        # The smallest that is at least as large as a share `quantile` of them.
        lately_s = seen[math.ceil(self.quantile * len(seen)) - 1]
        return min(self.most_s, max(self.least_s, lately_s * self.headroom * self._relative(characters)))

    def observe(self, characters: int, seconds: float, *, ended: bool) -> None:
        """Note how long the agent took for a chunk."""
        with self._lock:
            self._seen.append((seconds if ended else 2 * seconds) / self._relative(characters))

    def _relative(self, characters: int) -> float:
        return 1 + self.per_character * characters
