"""Latency profiles: how long a simulated model or vector store takes for each call.

    profile = LatencyProfile.named("typical")
    latency = profile.draw_llm(DrawKey(seed=7, role="planner", step="1"))
    latency.service_s(output_tokens=150)        # seconds from the start of service to the last token

The latency of a model call is queue wait + first token + output tokens × inter-token. The wait is not drawn:
it follows from the server's load and the profile's `slots`. The built-in profiles are quantile tables of
public measurements; `data/README.md` has their sources, their cautions and what is assumed, not measured.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.statistics.latency import dependence
from docmind_lab.statistics.latency.quantiles import DurationFit, QuantileTable, require_factor

if TYPE_CHECKING:
    from docmind_lab.statistics.latency.observed_calls import Source

PROFILE_NAMES: tuple[str, ...] = ("fast", "typical", "heavy_tail", "local_gpu", "coding_2026", "typical/10")
"""The built-in profiles, for `LatencyProfile.named`."""


@dataclass(frozen=True)
class LlmLatency:
    """One drawn latency of a model call, without the queue wait.

    first_token_s: from the start of service to the first token. inter_token_s: for each output token.
    hangs: the server accepts the request and never sends a byte; the two durations then never come to pass.
    """

    first_token_s: float
    inter_token_s: float
    hangs: bool

    def service_s(self, output_tokens: int) -> float:
        """Return the seconds from the start of service to the last token; infinite if the call hangs."""
        return math.inf if self.hangs else self.first_token_s + output_tokens * self.inter_token_s


@dataclass(frozen=True)
class LatencyProfile(ShownAsCode):
    """The latencies of one system's model and vector store, from which simulated calls are drawn.

    Args:
        name: Name in tables and figures, with the options that are not the default: "typical?correlation=0.5".
        description: Which system the profile describes.
        source: Measurement or assumption that the profile rests on.
        first_token_s: Quantiles of the time to the first token, seconds.
        inter_token_s: Quantiles of the time for each token, seconds.
        retrieval_s: Quantiles of the time of a search, seconds.
        hang_probability: Share of model calls that never answer, in [0, 1].
        slots: Model calls that the server works on at once; the others wait in its queue. None is no limit.
        time_scale: The factor that `scaled` has applied to the tables; 1 is as measured. Draws ignore it.
        rank_correlation: Spearman's rho between first-token and inter-token latency, in [-1, 1].
        correlation: How much of a call's slowness is its run's, in [0, 1]; see `dependence`.
        slowdown: What each other call under way when a call starts adds to its time per token, as a share of it.
        of_roles: Profiles of single roles, which their calls are drawn from in place of this one. The slots of the
            server are this one's.
        evidence: What a fitted profile rests on, by table, None for others. Equal profiles may differ in it, and
            manifests and files leave it out.

    Raises:
        ConfigurationError: A value is out of range.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    name: str
    description: str
    source: str
    first_token_s: QuantileTable
    inter_token_s: QuantileTable
    retrieval_s: QuantileTable
    hang_probability: float = 0.0
    slots: int | None = None
    time_scale: float = 1.0
    rank_correlation: float = 0.0
    correlation: float = dependence.OPTIONS["correlation"]
    slowdown: float = dependence.OPTIONS["slowdown"]
    of_roles: Mapping[str, LatencyProfile] = field(default_factory=dict, hash=False)
    evidence: Mapping[str, DurationFit] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigurationError("name must not be empty: tables show it as the latency profile")
        if not 0 <= self.hang_probability <= 1:
            raise ConfigurationError(f"hang_probability must lie in [0, 1]: got {self.hang_probability}")
        if self.slots is not None and self.slots < 1:
            raise ConfigurationError(f"slots must be at least 1, or None for no limit: got {self.slots}")
        if not -1 <= self.rank_correlation <= 1:
            raise ConfigurationError(f"rank_correlation must lie in [-1, 1]: got {self.rank_correlation}")
        require_factor(self.time_scale, "time_scale")
        dependence.check_options(self.options)
        object.__setattr__(self, "name", dependence.name_with_options(self.name, self.options))

    @property
    def options(self) -> dict[str, float]:
        """The options by which calls are slow together, such as "correlation"; see `dependence`."""
        return {name: getattr(self, name) for name in dependence.OPTIONS}

    @property
    def level(self) -> str:
        """The profile in tables: its name, and those of single roles: "typical,judge=slow"."""
        return ",".join([self.name, *(f"{role}={one.name}" for role, one in self.of_roles.items())])

    def of_role(self, role: str) -> LatencyProfile:
        """Return the profile that the calls of a role are drawn from.

        Args:
            role: The role; of a user's own graph, a node.
        """
        return self.of_roles.get(role, self)

    def __repr__(self) -> str:
        slots = "no limit of slots" if self.slots is None else f"{self.slots} slots"
        cells = {name: repr(getattr(self, name)).removeprefix("QuantileTable: ") for name in _TABLE_FIELDS}
        cells |= {role: one.name for role, one in self.of_roles.items()}
        title = f"LatencyProfile {self.name!r}: {slots}, {self.hang_probability:.3g} of the calls hang"
        return "\n".join([title, *(f"  {name}: {cell}" for name, cell in cells.items())])

    def draw_llm(self, key: DrawKey) -> LlmLatency:
        """Draw the latency of a model call; the same key always gives the same latency.

        Args:
            key: Names the call.
        """
        if key.role in self.of_roles:
            return self.of_roles[key.role].draw_llm(key)
        first_level, inter_level = (
            dependence.level_in_run(key, what, self.correlation) for what in ("first_token", "inter_token")
        )
        if self.rank_correlation:
            inter_level = dependence.with_rank_correlation(first_level, inter_level, self.rank_correlation)
        return LlmLatency(
            first_token_s=self.first_token_s.at(first_level),
            inter_token_s=self.inter_token_s.at(inter_level),
            hangs=key.uniform("hang") < self.hang_probability,
        )

    def draw_retrieval(self, key: DrawKey) -> float:
        """Draw the seconds of a search, from the request to the whole answer.

        Args:
            key: Names the search.
        """
        if key.role in self.of_roles:
            return self.of_roles[key.role].draw_retrieval(key)
        return self.retrieval_s.at(dependence.level_in_run(key, "retrieval", self.correlation))

    def scaled(self, factor: float) -> LatencyProfile:
        """Return the profile with every duration times a factor, which its name and description mention.

        `named("typical").scaled(0.1).name` is "typical/10", and `scaled(10)` of that "typical" again. Hangs, slots and
        correlation stay.

        Args:
            factor: Positive and finite.

        Raises:
            ConfigurationError: The factor is something else.
        """
        require_factor(factor)
        product = self.time_scale * factor
        time_scale = 1.0 if math.isclose(product, 1.0) else product
        (old_suffix, old_note), (suffix, note) = _scale_marks(self.time_scale), _scale_marks(time_scale)
        return replace(
            self,
            name=dependence.base_name(self.name).removesuffix(old_suffix) + suffix,
            description=self.description.removesuffix(old_note) + note,
            first_token_s=self.first_token_s.scaled(factor),
            inter_token_s=self.inter_token_s.scaled(factor),
            retrieval_s=self.retrieval_s.scaled(factor),
            of_roles={role: one.scaled(factor) for role, one in self.of_roles.items()},
            time_scale=time_scale,
            evidence=None,
        )

    @classmethod
    def named(cls, name: str) -> LatencyProfile:
        """Return a built-in profile or one from a file: "typical", "mine.json" (written by `docmind-lab profile`).

        Args:
            name: A number after a slash divides every duration: "typical/10". Options follow a question mark:
                "typical/10?correlation=0.5&slowdown=0.1"; see `dependence`. Profiles of single roles follow a comma:
                "typical,judge=mine-judge.json"; see `latency_profile`.

        Raises:
            ConfigurationError: The name is unknown, or the file cannot be used.
        """
        if "," in name:
            return latency_profile(name)
        name, mark, options = name.partition("?")
        if mark:
            return replace(cls.named(name), **dependence.parse_options(options, f"{name}?{options}"))  # type: ignore[arg-type]
        if file := re.fullmatch(r"(.+\.json)(?:/([1-9][0-9]*))?", name):
            result = _load_file(file[1])
            return result.scaled(1 / int(file[2])) if file[2] else result
        base, slash, divisor = name.partition("/")
        if slash and base in PROFILE_NAMES and divisor.isdecimal() and int(divisor) > 1:
            return cls.named(base).scaled(1 / int(divisor))
        if name not in PROFILE_NAMES:
            nearest = difflib.get_close_matches(name, PROFILE_NAMES, n=1, cutoff=0.4)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
            names = f"{', '.join(PROFILE_NAMES)}, and files that end in .json"
            raise ConfigurationError(f"no latency profile is named {name!r}.{hint} Known: {names}")
        data = _load_shipped(name)
        stored = data["profiles"][name]["profile"]
        tables = {column: {"levels": data["levels"], "values_s": stored[column]} for column in _TABLE_FIELDS}
        return cls.from_dict(stored | tables)

    @classmethod
    def fit(
        cls,
        source: Source,
        columns: Mapping[str, str] | None = None,
        *,
        ok: Sequence[str] = (),
        model: str | None = None,
        node: str | None = None,
        name: str | None = None,
        slots: int | None = None,
    ) -> LatencyProfile:
        """Fit a profile to measured calls; docs/measurements.md explains it.

        Args:
            source: A DataFrame, a CSV, JSON lines, Parquet or OTLP JSON file, an export of a tracing tool.
            columns: Field → its column and unit, such as {"latency_s": "duration_ms:ms"}.
            ok: The outcomes that mean a complete answer. Other calls were cut, and count as longer than that.
            model: The model whose calls alone are taken; all of them when left out.
            node: The node of a graph whose calls alone are taken; all of them when left out.
            name: Name of the profile, in tables and figures; that of the source when left out.
            slots: Model calls that the server works on at once; None is no limit.

        Returns:
            A profile whose `evidence` has the observed quantiles beside the fitted ones.

        Raises:
            ConfigurationError: The message names the file, the column and the remedy.
        """
        # Function-level: they import pandas and scipy, and built-in profiles need neither.
        from docmind_lab.statistics.latency.fitting import fit_calls  # noqa: PLC0415
        from docmind_lab.statistics.latency.observed_calls import read_calls  # noqa: PLC0415

        calls = read_calls(source, columns, ok).only("node", node).only("model", model)
        return cls(**fit_calls(calls, cls.named("typical").retrieval_s, name), slots=slots)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the profile, without its evidence, to a JSON file, which `named` reads, and return its path.

        Args:
            path: The file; its name ends in .json.

        Raises:
            ConfigurationError: It ends in something else, or it cannot be written.
        """
        target = Path(path)
        if target.suffix != ".json":
            raise ConfigurationError(f"a profile's file must end in .json, so that --latencies knows it: got {target}")
        content = {"schema_version": _SCHEMA_VERSION, "profile": self.to_dict()}
        return write_or_refuse(target, as_text(json.dumps(content, indent=1, allow_nan=False) + "\n"))

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON types, for manifests; `from_dict` reads it back equal. Without the evidence."""
        out = {item.name: getattr(self, item.name) for item in fields(self) if item.compare}
        out["of_roles"] = {role: one.to_dict() for role, one in self.of_roles.items()}
        for name in _TABLE_FIELDS:
            out[name] = {"levels": list(out[name].levels), "values_s": list(out[name].values_s)}
        # Left out where they are the default, so that the ids of studies without them stay what they were.
        defaults: dict[str, Any] = {**dependence.OPTIONS, "slots": None, "of_roles": {}}
        return {name: value for name, value in out.items() if name not in defaults or value != defaults[name]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LatencyProfile:
        """Read a profile that `to_dict` wrote.

        Args:
            data: What `to_dict` returned.

        Raises:
            ConfigurationError: Fields do not fit; the message names them.
        """
        try:
            # As JSON, in which a list may stand for a tuple, and nothing else for anything else.
            return _PROFILE.validate_json(json.dumps(data))
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise ConfigurationError(f"latency profile fields: {'; '.join(problems)}") from error


_PROFILE: Final = TypeAdapter(LatencyProfile)
_TABLE_FIELDS = ("first_token_s", "inter_token_s", "retrieval_s")
_SCHEMA_VERSION: Final = 1


@functools.cache
def _load_shipped(name: str) -> dict[str, Any]:
    year = "_2026" if name.endswith("_2026") else ""
    file = resources.files("docmind_lab.core.data") / f"latency_profiles{year}.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _load_file(path: str) -> LatencyProfile:
    """Return the profile in a file that `LatencyProfile.save` wrote, or that holds what `to_dict` returns.

    Raises: ConfigurationError naming the file and what does not fit.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"latency profile {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigurationError(f"latency profile {path} is not JSON: {error}; make it again") from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"latency profile {path} is not a JSON object; docmind-lab profile makes one")
    version = content.get("schema_version", _SCHEMA_VERSION)
    if version != _SCHEMA_VERSION:
        raise ConfigurationError(f"latency profile {path} has schema_version {version}, known is {_SCHEMA_VERSION}")
    try:
        return LatencyProfile.from_dict(content.get("profile", content))
    except (ConfigurationError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"latency profile {path}: {error}; docmind-lab profile makes one") from error


def _scale_marks(time_scale: float) -> tuple[str, str]:
    """Return what the name of a profile says of its scale, and what its description says."""
    if time_scale == 1:
        return "", ""
    divisor = f"{1 / time_scale:g}"
    suffix = f"/{divisor}" if divisor.isdigit() else f"*{time_scale:g}"
    return suffix, f" Scaled, not measured: every duration times {time_scale:g}."


EVERY_ROLE: Final = "*"
"""The roles without a profile of their own, in what `latency_profile` reads."""

ProfileChoice = str | LatencyProfile | Mapping[str, str | LatencyProfile]
"""What says which latencies to draw: a profile, its name, or profiles by role."""


def latency_profile(chosen: ProfileChoice | Sequence[str], rest: str = "typical") -> LatencyProfile:
    """Return the latency profile that a choice means, with those of single roles in it.

        latency_profile({"*": "typical", "judge": "mine-judge.json"})
        latency_profile("typical,judge=mine-judge.json")
        latency_profile(["typical", "judge=mine-judge.json"])

    chosen: a profile, its name, or profiles by role; "*" is every other role. rest: name of the profile of the roles
    that nothing is said of. Raises: ConfigurationError (a name is unknown, or a role has two profiles).
    """
    if isinstance(chosen, LatencyProfile):
        return chosen
    by_role = dict(chosen) if isinstance(chosen, Mapping) else _profiles_by_role(chosen)
    named = {EVERY_ROLE: rest} | by_role
    profiles = {role: LatencyProfile.named(one) if isinstance(one, str) else one for role, one in named.items()}
    of_all = profiles.pop(EVERY_ROLE)
    for role, one in profiles.items():
        if one.of_roles:
            raise ConfigurationError(f"profile {role}={one.level}: a role has one profile; name one without a comma")
    return replace(of_all, of_roles={**of_all.of_roles, **profiles}) if profiles else of_all


def require_roles(profile: LatencyProfile, roles: Collection[str]) -> None:
    """Return if each role that has a profile of its own is among the known ones; else raise ConfigurationError."""
    for role, one in profile.of_roles.items():
        if role not in roles:
            raise ConfigurationError(
                f"profile {role}={one.name}: no role is {role!r}; name one of {', '.join(roles)}, or leave {role}= out "
                "for all of them"
            )


def _profiles_by_role(named: str | Sequence[str]) -> dict[str, str]:
    """Read "typical,judge=mine.json", or its parts."""
    result: dict[str, str] = {}
    for part in [part for text in ([named] if isinstance(named, str) else named) for part in text.split(",")]:
        # The options of a profile have such signs too: typical?correlation=0.5.
        before, sign, after = part.partition("=")
        role, name = (before.strip(), after.strip()) if sign and "?" not in before else (EVERY_ROLE, part.strip())
        if role in result:
            who = "every role" if role == EVERY_ROLE else f"role {role}"
            raise ConfigurationError(
                f"profile: {who} has two, {result[role]} and {name}; name one, and others as ROLE=NAME"
            )
        result[role] = name
    return result
