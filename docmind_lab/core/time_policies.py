"""Policies for the time before a deadline: limits of calls, second requests, agents that know the time left and end.

    TimePolicies.parse("limits:first_token=8/idle=5")        # a call is cut once it is not worth waiting for
    TimePolicies.parse("wrap_up:8s")                         # the last eight seconds are for the answer
    TimePolicies.parse("hedge:2s")                           # a second request after two seconds
    TimePolicies.parse("aware+wind_down:0.25")               # the model is told; no tools in the last quarter
    time_left_line(4.2, 20.0)                                # "Time left: 4.2 s of 20 s."
    share_left("… Time left: 4.2 s of 20 s.")                # 0.21

To enforce a deadline is one thing, to spend its time well another. Each policy applies to a run under an alternative
that propagates the deadline. None is on by default.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.limits import Limits
from docmind_lab.core.numbers import require_number
from docmind_lab.core.shown import ShownAsCall

Tell = Literal["seconds", "nothing"]


class _Policy:
    """The base class of policies, each a dataclass of at most one value."""

    name: ClassVar[str]
    unit: ClassVar[str] = ""

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the policy for the text of its value, here of none. Raises: ValueError with the remedy."""
        if value:
            raise ValueError(f"it takes no value; leave out {value!r}")
        return cls()

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it: its name, with its value where that is not the default."""
        options: tuple[Any, ...] = dataclasses.fields(self)  # type: ignore[arg-type]
        values = [getattr(self, option.name) for option in options if getattr(self, option.name) != option.default]
        return ":".join([self.name, *(f"{value:g}{self.unit}" for value in values)])


@dataclass(frozen=True)
class Hedge(_Policy):
    """Sends a second request for a call that takes more than `after_s` seconds, and keeps the answer that comes first.

    The other request is cancelled. What its server does then, and what it costs, is the server's behaviour.
    """

    after_s: float

    name: ClassVar[str] = "hedge"
    unit: ClassVar[str] = "s"

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the policy for a text such as "2s". Raises: ValueError with the remedy."""
        return cls(_number(value, cls.unit, math.inf, "seconds above 0, such as 2s"))


@dataclass(frozen=True)
class Aware(_Policy):
    """Tells the model how much time is left, in a line of the system message."""

    name: ClassVar[str] = "aware"


@dataclass(frozen=True)
class WindDown(_Policy):
    """Takes the tools from agents when little time is left, so that they answer with what they have.

    With less than this share of the time limit left, no tool is offered and no further search begins.
    """

    share: float = 0.25

    name: ClassVar[str] = "wind_down"

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the policy for a share, or for "". Raises: ValueError with the remedy."""
        return cls(_number(value, "", 1.0, "a number above 0 and below 1, such as 0.9")) if value else cls()


@dataclass(frozen=True)
class Anytime(_Policy):
    """Keeps a draft of the answer current, so that a run that is cut has something to return."""

    name: ClassVar[str] = "anytime"


@dataclass(frozen=True, repr=False)
class WrapUp(_Policy, ShownAsCall):
    """Keeps the end of a run's time for its answer: the model is told of it, and no tool begins any more.

    It applies to every model call of a run and of its sub-agents, at the network seam; see docs/runway.md.

    Args:
        reserve_s: Seconds before the deadline at which the reserve begins, or an interval of them, such as
            `findings.final_call_s(study)`: its estimate.
        tell: "seconds" adds a line on the time left to each request to a model; "nothing" adds none.
        stop_tools: Whether models are offered no tools in the reserve, tools that they call all the same are refused
            with a message, and requests of tools under way end where it begins.

    Raises:
        ConfigurationError: A value that cannot be used, or a policy that would do nothing.
    """

    reserve_s: Any
    tell: Tell = "seconds"
    stop_tools: bool = True

    noun: ClassVar[str] = "dl.WrapUp"
    name: ClassVar[str] = "wrap_up"

    def __post_init__(self) -> None:
        if hasattr(self.reserve_s, "estimate"):
            object.__setattr__(self, "reserve_s", self.reserve_s.estimate)
        what = "a finite number of seconds above 0, such as 8.0"
        remedy = "dl.findings.final_call_s(study, quantile=0.9) measures it"
        require_number("reserve_s", self.reserve_s, what, above=0, remedy=remedy)
        if self.tell not in ("seconds", "nothing"):
            raise ConfigurationError(f"tell must be 'seconds' or 'nothing', not {self.tell!r}")
        if self.tell == "nothing" and not self.stop_tools:
            raise ConfigurationError("tell='nothing' and stop_tools=False: it would do nothing; leave one of them out")

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the policy for a text such as "8s", "8s/silent" or "8s/keep_tools".

        Args:
            value: The text.

        Raises:
            ValueError: It is no such text.
        """
        seconds, *rest = value.split("/")
        reserve_s = _number(
            seconds, "s", math.inf, "seconds above 0, such as wrap_up:8s (findings.final_call_s measures them)"
        )
        if rest not in ([], ["silent"], ["keep_tools"]):
            raise ValueError(f"after the seconds comes silent or keep_tools, not {'/'.join(rest)!r}")
        return cls(reserve_s, "nothing" if "silent" in rest else "seconds", "keep_tools" not in rest)

    @property
    def text(self) -> str:
        """The policy as the name of an arm has it."""
        silent, keeps = self.tell == "nothing", not self.stop_tools
        return f"{self.name}:{self.reserve_s:g}s{'/silent' if silent else ''}{'/keep_tools' if keeps else ''}"

    def line(self, left_s: float, limit_s: float) -> str:
        """Return the line for a model with so many seconds of its limit left; empty if it is told nothing.

        Args:
            left_s: Seconds until the deadline.
            limit_s: Seconds that the run was given.
        """
        return f"{time_left_line(left_s, limit_s)} {ANSWER_NOW}" if self.tell == "seconds" else ""


ANSWER_NOW: Final = "Answer now with what you have."
"""What a model is told in the reserve, after the time left."""


WrapUpDeed = Literal["told", "untold", "refused", "cut"]


class WrapUpNote(NamedTuple):
    """One thing that was done to wrap a run up.

    Args:
        what: "told" of a request to a model that was changed, "untold" of one that could not be; "refused" of a tool
            that did not begin, "cut" of one whose request ended with the reserve's beginning.
        of: The host of the request, or the tool.
        left_s: Seconds that were left.
        line: The line that was sent; empty for none.
    """

    what: WrapUpDeed
    of: str
    left_s: float
    line: str = ""


def _number(text: str, unit: str, below: float, request: str) -> float:
    try:
        value = float(text.removesuffix(unit))
    except ValueError:
        value = math.nan
    if not 0 < value < below:
        raise ValueError(f"give {request}, not {text!r}")
    return value


_KINDS: Final[dict[str, Any]] = {kind.name: kind for kind in (Limits, Hedge, Aware, WindDown, Anytime, WrapUp)}


def policy_names() -> tuple[str, ...]:
    """Return the names of the policies, which are the fields of `TimePolicies`."""
    return tuple(_KINDS)


@dataclass(frozen=True)
class TimePolicies:
    """The policies that are in force for a run."""

    limits: Limits | None = None
    hedge: Hedge | None = None
    aware: Aware | None = None
    wind_down: WindDown | None = None
    anytime: Anytime | None = None
    wrap_up: WrapUp | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the policies in force."""
        return tuple(name for name, policy in vars(self).items() if policy is not None)

    @property
    def text(self) -> str:
        """The policies as `parse` reads them; empty for none."""
        return "+".join(policy.text for policy in vars(self).values() if policy is not None)

    @classmethod
    def parse(cls, text: str) -> TimePolicies:
        """Return the policies that a text names.

        Args:
            text: Names joined by "+", each with one value after a colon where that is not the default: "hedge:2s",
                "aware", "wind_down:0.3", "anytime", "limits:idle=5/total=60", "wrap_up:8s". Empty or "none" for none.

        Raises:
            ConfigurationError: A name is unknown or stands twice, or a value cannot be used.
        """
        chosen: dict[str, Any] = {}
        for part in (each.strip() for each in text.split("+")):
            if part in ("", "none"):
                continue
            name, _, value = part.partition(":")
            if name not in _KINDS:
                raise ConfigurationError(f"unknown policy {part!r}; the policies are {', '.join(_KINDS)}")
            if name in chosen:
                raise ConfigurationError(f"policies {text!r}: {name} stands there twice")
            try:
                chosen[name] = _KINDS[name].of(value)
            except ValueError as error:
                raise ConfigurationError(f"policy {part!r}: {error}") from error
        return cls(**chosen)


# ---- the line of a prompt that says how much time is left

_LINE = re.compile(r"^Time left: (?P<left>[\d.]+) s of (?P<limit>[\d.]+) s\.(?: |$)", re.MULTILINE)


def time_left_line(left_s: float, limit_s: float) -> str:
    """Return the line that tells a model how many seconds of its limit are left."""
    return f"Time left: {max(0.0, left_s):.1f} s of {limit_s:g} s."


def share_left(prompt: str) -> float | None:
    """Return the share of the time that a prompt says is left; None where it says nothing."""
    line = _LINE.search(prompt)
    if line is None:
        return None
    limit_s = float(line["limit"])
    return float(line["left"]) / limit_s if limit_s else 0.0
