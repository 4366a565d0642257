"""One call under its limits: which bytes of its answer are tokens, and until when it may be silent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from docmind_lab.core.clock import Clock
from docmind_lab.core.deadlines import Deadline, nearer
from docmind_lab.core.limits import LimitName, LimitsOfCall

# Events that say that a model has begun, or that the connection is alive, and hold no token.
_WITHOUT_TOKEN: Final = re.compile(
    rb'data: ?\{\s*"type": ?"(ping|message_start|content_block_start'
    rb'|response\.(created|in_progress|queued|output_item\.added|content_part\.added))"'
)
# The first part of a chat completion says who speaks, and nothing else.
_ONLY_A_ROLE: Final = re.compile(
    rb'"delta": ?\{\s*(("role": ?"assistant"|"(content|refusal|reasoning_content)": ?(""|null))[\s,]*)+\}'
)
# The paths of interfaces that generate, of every provider.
_MODEL_PATHS: Final = re.compile(
    r"/(chat/completions|completions|responses|messages|api/chat|api/generate|model/[^/]+/(converse|invoke)[\w-]*)$"
    r"|:(stream)?(generateContent|rawPredict)$",
    re.IGNORECASE,
)


def asks_for_generation(path: str) -> bool:
    """Whether a path is one at which a model generates, judged by its last words; embeddings are none."""
    return _MODEL_PATHS.search(path.rstrip("/")) is not None


class TokenFinder:
    """Finds tokens in the bytes of an answer: events of a stream that hold one, and any bytes of another answer.

    White space by itself is none in JSON: servers send it to keep the connection alive.
    """

    def __init__(self, headers: Mapping[bytes, bytes] | None = None) -> None:
        """headers: of the response, by lower-case names."""
        known = headers or {}
        is_plain = known.get(b"content-encoding", b"identity") == b"identity"
        content_type = known.get(b"content-type", b"") if is_plain else b""
        self._is_event_stream, self._is_json = content_type.startswith(b"text/event-stream"), b"json" in content_type
        self._line, self._has_begun = b"", False

    def feed(self, part: bytes) -> bool:
        """Take bytes of the body; return whether they hold a token."""
        if not self._is_event_stream:
            return bool(part) and not (self._is_json and part.isspace())
        *lines, self._line = (self._line + part).split(b"\n")
        return any(self._holds_token(line) for line in lines)

    def _holds_token(self, line: bytes) -> bool:
        if not line.startswith(b"data:") or _WITHOUT_TOKEN.match(line):
            return False
        # Looked for until the first token only: it costs more than the rest.
        self._has_begun = self._has_begun or not _ONLY_A_ROLE.search(line)
        return self._has_begun


class LimitedCall:
    """One call under way, and what bounds it: its limits, and the deadline around it.

    Args:
        limits: Of the call.
        around: The deadline that bounds it too; None for none.
        clock: The clock on which it begins now.
    """

    def __init__(self, limits: LimitsOfCall, around: Deadline | None, clock: Clock) -> None:
        self._limits, self._around, self.clock = limits, around, clock
        self.started_at = clock.now()
        self._last_token_at: float | None = None

    def note_token(self, at: float) -> None:
        """Let the wait for the next token begin at an instant."""
        self._last_token_at = at

    @property
    def _nearest(self) -> tuple[float, LimitName]:
        """The instant at which the call is cut if no token comes until then, and the limit that cuts it."""
        limits, token_at = self._limits, self._last_token_at
        waits: list[tuple[float, float | None, LimitName]] = [
            (self.started_at, limits.total_s, "total"),
            (self.started_at, limits.wrap_up_s, "wrap_up"),
        ]
        if token_at is None and limits.first_token_s is not None:
            waits.append((self.started_at, limits.first_token_s, "first_token"))
        else:
            waits.append((self.started_at if token_at is None else token_at, limits.idle_s, "idle"))
        ends = ((since + limit_s, name) for since, limit_s, name in waits if limit_s is not None)
        return min(ends, key=lambda end: end[0], default=(math.inf, "total"))

    @property
    def in_force(self) -> Deadline | None:
        """What bounds the call now; once the run's deadline is lifted, its limits alone."""
        at_s, _ = self._nearest
        own = None if at_s == math.inf else Deadline(at_s, at_s - self.started_at, self.clock)
        near = nearer(own, None if self._around is None else self._around.in_force)
        return None if near is None else Deadline(near.at_s, near.limit_s, near.clock, lambda: self.in_force)

    @property
    def limit_over(self) -> LimitName | None:
        """The limit that may have ended a wait now; None while none has."""
        at_s, name = self._nearest
        is_over = at_s < math.inf and Deadline(at_s, at_s, self.clock).ends_a_wait
        return name if is_over else None
