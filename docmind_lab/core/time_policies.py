"""Policies for the time before a deadline: second requests, and agents that know how much time is left.

    TimePolicies.parse("hedge:2s")                           # a second request after two seconds
    TimePolicies.parse("aware+wind_down:0.25")               # the model is told; no tools in the last quarter

To enforce a deadline is one thing, to spend its time well another. Each policy applies to a run under an alternative
that propagates the deadline. None is on by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.time_left import TELLING_STYLES, TellingStyle


@dataclass(frozen=True)
class Hedge:
    """Sends a second request for a call that takes long, and keeps the answer that comes first.

    The other request is cancelled. What its server does then, and what it costs, is the server's behaviour.

    Args:
        after_s: Seconds that a call takes before the second request is sent.
    """

    after_s: float

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return f"hedge:{self.after_s:g}s"


@dataclass(frozen=True)
class Aware:
    """Tells the model how much time is left, in a line of the system message.

    Args:
        style: How it is told, one of `TELLING_STYLES`.
    """

    style: TellingStyle = "seconds"

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("aware", self, self.style)


@dataclass(frozen=True)
class WindDown:
    """Takes the tools from agents when little time is left, so that they answer with what they have.

    Args:
        share: Of the time limit: with less than that left, no tool is offered and no further search begins.
    """

    share: float = 0.25

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("wind_down", self, self.share)


@dataclass(frozen=True)
class Anytime:
    """Keeps a draft of the answer current, so that a run that is cut has something to return."""

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return "anytime"


@dataclass(frozen=True)
class TimePolicies:
    """The policies that are in force for a run.

    Args:
        hedge: When a second request is sent.
        aware: How the model is told of the time left.
        wind_down: When agents lose their tools.
        anytime: Whether a draft is kept current.
    """

    hedge: Hedge | None = None
    aware: Aware | None = None
    wind_down: WindDown | None = None
    anytime: Anytime | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the policies in force."""
        return tuple(part.text.partition(":")[0] for part in vars(self).values() if part is not None)

    @property
    def text(self) -> str:
        """The policies as `parse` reads them; empty for none."""
        return "+".join(part.text for part in vars(self).values() if part is not None)

    @classmethod
    def parse(cls, text: str) -> TimePolicies:
        """Return the policies that a text names.

        Args:
            text: Names joined by "+", each with one value after a colon where that is not the default: "hedge:2s",
                "aware:words", "wind_down:0.3", "anytime". Empty or "none" for none.

        Raises:
            ConfigurationError: A name is unknown or stands twice, or a value cannot be used.
        """
        chosen: dict[str, Any] = {}
        for part in (each.strip() for each in text.split("+")):
            if part in ("", "none"):
                continue
            name, _, value = part.partition(":")
            if name not in _MAKERS:
                raise ConfigurationError(f"unknown policy {part!r}; the policies are {', '.join(_MAKERS)}")
            if name in chosen:
                raise ConfigurationError(f"policies {text!r}: {name} stands there twice")
            try:
                chosen[name] = _MAKERS[name](value)
            except ValueError as error:
                raise ConfigurationError(f"policy {part!r}: {error}") from error
        return cls(**chosen)


def _text(name: str, policy: Any, value: float | str) -> str:
    """Return the name, with its one value where that is not the default."""
    is_default = policy == _MAKERS[name]("")
    return name if is_default else f"{name}:{value if isinstance(value, str) else f'{value:g}'}"


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise ValueError(f"give a number above 0 and below 1, such as 0.9, not {text!r}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"give seconds above 0, such as 2s, not {text!r}")
    return value


def _hedge(value: str) -> Hedge:
    return Hedge(_seconds(value))


def _aware(value: str) -> Aware:
    style = next((style for style in TELLING_STYLES if style == (value or "seconds")), None)
    if style is None:
        raise ValueError(f"give one of {', '.join(TELLING_STYLES)}, not {value!r}")
    return Aware(style)


def _wind_down(value: str) -> WindDown:
    return WindDown(_share(value)) if value else WindDown()


def _anytime(value: str) -> Anytime:
    if value:
        raise ValueError(f"it takes no value; leave out {value!r}")
    return Anytime()


_MAKERS: Final[dict[str, Callable[[str], Any]]] = {
    "hedge": _hedge,
    "aware": _aware,
    "wind_down": _wind_down,
    "anytime": _anytime,
}
"""Name of a policy, which is its field of `TimePolicies` → what makes it of its value."""


def policy_names() -> tuple[str, ...]:
    """Return the names of the policies."""
    return tuple(_MAKERS)
