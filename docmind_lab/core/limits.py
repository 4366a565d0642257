"""Limits of one call, beside the deadline of its run: until its first token, between tokens, and in total.

    Limits(first_token_s=8, idle_s=5)                         # of model calls
    Limits(total_s=60, tool_s=10, by_role={"judge": Limits(total_s=5)})
    Limits.of("first_token=8/idle=5/total@judge=5")           # as the name of an arm has them: A+limits:first_token=8

A deadline says when the run is over. A limit says when one call is not worth waiting for any longer, so that it can be
tried again. The network seam enforces both.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_seconds
from docmind_lab.core.shown import ShownAsCall

LimitName = Literal["first_token", "idle", "total", "wrap_up"]

_NAMES: Final = ("first_token", "idle", "total", "tool")
_EXAMPLE: Final = "limits:first_token=8/idle=5"


class LimitsOfCall(NamedTuple):
    """The limits of one call, in seconds; None for no limit.

    Args:
        first_token_s: From the start of the request to the first token of its answer.
        idle_s: From one token to the next, and to the first one where that has no limit of its own.
        total_s: From the start of the request to the end of its answer.
        wrap_up_s: From the start of a tool's request until its run is to be wrapped up.
    """

    first_token_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = None
    wrap_up_s: float | None = None


class LimitCut(NamedTuple):
    """One call that a limit has cut.

    Args:
        limit: Which one: "first_token", "idle" or "total".
        role: Who made the call: the node of a graph.
        host: The host that it was made to.
        after_s: Seconds from the start of its request to the cut.
    """

    limit: LimitName
    role: str
    host: str
    after_s: float


@dataclass(frozen=True, repr=False)
class Limits(ShownAsCall):
    """Limits of single calls, beside the deadline of the run. Each is in seconds above 0; None for no limit.

    A token is an event of a streamed answer, or bytes of any other answer. A comment, a ping or white space that only
    keeps a connection open is none. An answer that is not streamed has its first token when its body begins, so for
    such calls `first_token_s` bounds the whole wait.

    Args:
        first_token_s: Of a model call, from its request to its first token.
        idle_s: Of a model call, from one token to the next; before the first token only without `first_token_s`.
        total_s: Of a model call, from its request to the end of its answer.
        tool_s: Of every other request, such as a tool's or a search, from its start to its end.
        by_role: Role, or node of a graph → the limits that take the place of these for its calls, each by itself.

    Raises:
        ConfigurationError: A value is not a finite number above 0, or limits of a role have roles.
    """

    first_token_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = None
    tool_s: float | None = None
    by_role: Mapping[str, Limits] = field(default_factory=dict, hash=False)

    noun: ClassVar[str] = "dl.Limits"
    name: ClassVar[str] = "limits"

    def __post_init__(self) -> None:
        for name, seconds in self._given.items():
            require_seconds(f"{name}_s", seconds)
        for role, limits in self.by_role.items():
            if not isinstance(limits, Limits):
                raise ConfigurationError(f"by_role[{role!r}] must be Limits, not {limits!r}; try Limits(total_s=5)")
            if limits.by_role:
                raise ConfigurationError(f"by_role[{role!r}] has roles of its own; name them beside it")
        object.__setattr__(self, "by_role", dict(sorted(self.by_role.items())))

    def __repr__(self) -> str:
        parts = [f"{name}_s={seconds:g}" for name, seconds in self._given.items()]
        return f"{self.noun}({', '.join(parts + ([f'by_role={self.by_role!r}'] if self.by_role else []))})"

    @property
    def _given(self) -> dict[str, float]:
        """The limits that there are, by name."""
        values = {name: getattr(self, f"{name}_s") for name in _NAMES}
        return {name: seconds for name, seconds in values.items() if seconds is not None}

    @classmethod
    def of(cls, value: str) -> Self:
        """Return the limits for a text such as "first_token=8/idle=5/total@judge=5".

        Args:
            value: Limits joined by "/", each as NAME=SECONDS, or as NAME@ROLE=SECONDS for the calls of one role.

        Raises:
            ValueError: It is no such text.
        """
        values_by_role: dict[str, dict[str, Any]] = {"": {}}
        for part in value.split("/"):
            name_and_role, _, seconds = part.strip().partition("=")
            name, _, role = name_and_role.partition("@")
            if name not in _NAMES:
                raise ValueError(f"give limits by name, such as {_EXAMPLE}; the names are {', '.join(_NAMES)}")
            try:
                values_by_role.setdefault(role, {})[f"{name}_s"] = float(seconds.removesuffix("s"))
            except ValueError:
                raise ValueError(f"give {name} in seconds, such as {_EXAMPLE}, not {seconds!r}") from None
        for_all_roles = values_by_role.pop("")
        try:
            return cls(**for_all_roles, by_role={role: Limits(**values) for role, values in values_by_role.items()})
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

    @property
    def text(self) -> str:
        """The limits as the name of an arm has them."""
        parts = [f"{name}={seconds:g}" for name, seconds in self._given.items()]
        for role, limits in self.by_role.items():
            parts += [f"{name}@{role}={seconds:g}" for name, seconds in limits._given.items()]
        return f"{self.name}:{'/'.join(parts)}"

    def of_call(self, role: str, *, is_model: bool) -> LimitsOfCall:
        """Return the limits of one call.

        Args:
            role: Who makes it; of a node inside another, "outer/inner", which has the limits of either, the inner
                first.
            is_model: Whether it is made to a model.
        """
        return _of_call(self, role, is_model)


@functools.lru_cache(maxsize=1024)
def _of_call(limits: Limits, role: str, is_model: bool) -> LimitsOfCall:
    names = [role, *reversed(role.split("/"))]
    own = next((limits.by_role[name] for name in names if name in limits.by_role), Limits())
    seconds = {**limits._given, **own._given}
    if not is_model:
        return LimitsOfCall(total_s=seconds.get("tool"))
    return LimitsOfCall(seconds.get("first_token"), seconds.get("idle"), seconds.get("total"))
