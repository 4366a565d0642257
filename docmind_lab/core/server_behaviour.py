"""What a model server does with a call whose client has left, in each phase of a call.

    ServerBehaviour.named("llama-cpp-2026.10")      # measured, and shipped with the package
    ServerBehaviour.read("server.json")             # a file that `docmind-lab probe server` wrote
    STOPS, GOES_ON                                  # the two extremes

The doors play it on both clocks.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docmind_lab.core.errors import ConfigurationError

Phase = Literal["queue", "prefill", "generation", "before_first_token", "mid_stream"]
"""Where a call can be when its client leaves.

queue: it waits for a slot of the server. prefill: a call without streaming whose prompt is being read. generation: a
call without streaming that is being answered. before_first_token and mid_stream: the same two of a streaming call.
"""
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)

WorkEnds = Literal["at_once", "at_next_write", "at_its_end", "unknown"]
"""When the server's work on the call ends.

at_once: soon after the client has left. at_next_write: when the server next writes to the client, as a server does that
notices a closed connection only by writing to it. at_its_end: with the whole answer, which nobody reads.
"""


class PhaseBehaviour(BaseModel):
    """What the server does with a call whose client leaves in one phase.

    Args:
        work_ends: When the work ends.
        delay_s: Seconds from the client's leaving to the end of the work, median; for `at_once` it is played.
        checks_every_s: The server looks for a client that has left so often, counted from the start of the call; then
            the work ends at the next look, whatever `delay_s` is. None where it notices by itself.
        low_s: Least of the measured delays, or the lower end of their interval, seconds.
        high_s: Largest of them, seconds.
        late_tokens: Tokens generated after the client had left, median; None where nobody counts them.
        trials: Calls that were left in this phase.
        evidence: Where the delay is from: the server's log or counters, the wait of another request, or an assumption.
        note: What is to be known of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    work_ends: WorkEnds
    delay_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    checks_every_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    low_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    high_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    late_tokens: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    trials: int = Field(default=0, ge=0)
    evidence: Literal["log", "counters", "wait of another request", "assumed"] = "assumed"
    note: str = ""


class ServerBehaviour(BaseModel):
    """What a server does with calls whose client has left.

    Args:
        name: How tables and titles call it.
        server: The server and its version.
        measured_on: Day, as YYYY-MM-DD; empty for what was assumed.
        command: What repeats the measurement.
        phases: The behaviour in each phase. A phase that is left out, or unknown, is played to its end: the server is
            given no credit for what nobody saw.
        limits: Whether the server ends a call by itself when the request asks for it: "honoured", "late", "ignored" or
            "refused", by the name of the parameter or header.
        other_requests: When the work on a request that is no model call ends, such as a search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    server: str = ""
    measured_on: str = ""
    command: str = ""
    phases: dict[Phase, PhaseBehaviour]
    limits: dict[str, str] = Field(default_factory=dict)
    other_requests: Literal["at_once", "at_its_end"] = "at_once"

    @model_validator(mode="after")
    def _require_delays(self) -> Self:
        for phase, behaviour in self.phases.items():
            if behaviour.work_ends == "at_once" and behaviour.delay_s is None:
                raise ValueError(f"phases.{phase}: work that ends at_once needs delay_s")
        return self

    def __hash__(self) -> int:
        # Its mappings have none of their own; a study groups runs by the behaviour of their servers.
        return hash(self.to_json())

    def delay_s(self, phase: Phase | None, since_start_s: float) -> float:
        """Seconds after its client has left at which the work on a request ends; inf for never by that.

        phase: of a model call; None for any other request. since_start_s: how long ago the request had come.
        """
        if phase is None:
            return 0.0 if self.other_requests == "at_once" else math.inf
        behaviour = self.phases.get(phase)
        if behaviour is None or behaviour.work_ends != "at_once":
            return math.inf
        if behaviour.checks_every_s is None:
            return behaviour.delay_s or 0.0
        checks = math.floor(since_start_s / behaviour.checks_every_s) + 1
        return checks * behaviour.checks_every_s - since_start_s

    def ends_at_next_write(self, phase: Phase | None) -> bool:
        """Whether the work ends when the server next writes to the client that has left."""
        return phase is not None and phase in self.phases and self.phases[phase].work_ends == "at_next_write"

    def to_json(self) -> str:
        """The profile as JSON, which `read` reads back equal."""
        return self.model_dump_json(indent=2, exclude_defaults=True) + "\n"

    @classmethod
    def of(cls, data: Mapping[str, object], source: str) -> Self:
        """The profile of these values. Raises: ConfigurationError naming the source and each field that is wrong."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            fields = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'profile'}: {each['msg']}" for each in error.errors()
            )
            raise ConfigurationError(f"server behaviour {source}: {fields}") from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The profile in a JSON file. Raises: ConfigurationError for a file that is none."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"server behaviour {path} cannot be read ({error})") from error
        if not isinstance(data, dict):
            raise ConfigurationError(f"server behaviour {path}: it must be a JSON object")
        return cls.of(data, str(path))

    @classmethod
    def named(cls, name: str) -> Self:
        """One of the extremes, one that ships with the package, or the one in a file that ends in .json.

        Raises: ConfigurationError naming those that there are.
        """
        if name.endswith(".json"):
            return cls.read(name)
        choices = {"stops": STOPS, "goes-on": GOES_ON} | {each.name: each for each in shipped_behaviours()}
        if name not in choices:
            raise ConfigurationError(
                f"server behaviour must be one of {', '.join(choices)} or a .json file that docmind-lab probe server "
                f"wrote, not {name!r}"
            )
        return cls.model_validate(choices[name].model_dump())


STOPS: Final = ServerBehaviour(
    name="stops", phases={phase: PhaseBehaviour(work_ends="at_once", delay_s=0.0) for phase in PHASES}
)
GOES_ON: Final = ServerBehaviour(
    name="goes-on",
    phases={phase: PhaseBehaviour(work_ends="at_its_end") for phase in PHASES},
    other_requests="at_its_end",
)


def shipped_behaviours() -> tuple[ServerBehaviour, ...]:
    """The behaviours of servers that were measured, by name."""
    folder = importlib.resources.files("docmind_lab.core.data").joinpath("server_behaviours")
    if not folder.is_dir():
        return ()
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    return tuple(ServerBehaviour.of(json.loads(file.read_text(encoding="utf-8")), file.name) for file in files)
