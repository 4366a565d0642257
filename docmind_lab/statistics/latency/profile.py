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
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency import dependence

if TYPE_CHECKING:
    from docmind_lab.statistics.latency.durations import DurationFit
    from docmind_lab.statistics.latency.sources import Source

PROFILE_NAMES: tuple[str, ...] = ("fast", "typical", "heavy_tail", "local_gpu", "coding_2026", "typical/10")
"""The built-in profiles, for `LatencyProfile.named`."""


@dataclass(frozen=True)
class QuantileTable:
    """Quantiles of a duration: `values_s[i]` seconds is the quantile at `levels[i]`.

    levels: strictly increasing, from 0 (smallest observation) to 1 (largest). values_s: finite, not negative,
    non-decreasing. Raises ConfigurationError if they are not.
    """

    levels: tuple[float, ...]
    values_s: tuple[float, ...]

    @classmethod
    def constant(cls, seconds: float) -> QuantileTable:
        """The table of a duration that is always the same."""
        return cls((0.0, 1.0), (seconds, seconds))

    def __post_init__(self) -> None:
        lengths = (len(self.levels), len(self.values_s))
        if lengths[0] < 2 or lengths[0] != lengths[1]:
            raise ConfigurationError(f"levels and values_s need one length, at least 2: got {lengths}")
        if (self.levels[0], self.levels[-1]) != (0, 1) or not all(a < b for a, b in pairwise(self.levels)):
            raise ConfigurationError(
                "levels must increase strictly from 0 (smallest observation) to 1 (largest): "
                f"got {self.levels[0]} … {self.levels[-1]}; sort them and drop repeats"
            )
        # Written so that a NaN fails it: every comparison with one is false.
        rising = all(a <= b for a, b in pairwise(self.values_s))
        if not (rising and self.values_s[0] >= 0 and self.values_s[-1] < math.inf):
            raise ConfigurationError("values_s must be finite seconds from 0 up that never decrease: sort them")

    def at(self, level: float) -> float:
        """Return the seconds at a level in [0, 1]: the inverse of the distribution function, linear between levels.

        Linear, because the table holds what was measured: no shape is imposed between two quantiles, and no
        tail is invented beyond the largest observation. Raises ConfigurationError outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ConfigurationError(f"level must lie in [0, 1]: got {level}")
        right = min(bisect_right(self.levels, level), len(self.levels) - 1)
        low_s, high_s = self.values_s[right - 1], self.values_s[right]
        share = (level - self.levels[right - 1]) / (self.levels[right] - self.levels[right - 1])
        # Rounding may carry the sum past the end of its segment, which would break monotonicity.
        return min(low_s + (high_s - low_s) * share, high_s)

    def __repr__(self) -> str:
        named = ((0.5, "median"), (0.9, "p90"), (0.99, "p99"), (1.0, "most"))
        return f"QuantileTable: {', '.join(f'{name} {self.at(level):.3g} s' for level, name in named)}"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

    def scaled(self, factor: float) -> QuantileTable:
        """Return the table with every duration times `factor`. Raises ConfigurationError unless it is positive."""
        _check_factor(factor)
        return QuantileTable(self.levels, tuple(value_s * factor for value_s in self.values_s))


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
class LatencyProfile:
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
        brownout: Share of runs in which every duration is longer.
        brownout_factor: Factor by which everything takes longer in those runs.
        slowdown: What each other call under way when a call starts adds to its time per token, as a share of it.
        of_roles: Profiles of single roles, which their calls are drawn from in place of this one. The slots of the
            server are this one's.
        evidence: What a fitted profile rests on, by table, None for others. Equal profiles may differ in it, and
            manifests leave it out.

    Raises:
        ConfigurationError: A value is out of range.
    """

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
    brownout: float = dependence.OPTIONS["brownout"]
    brownout_factor: float = dependence.OPTIONS["brownout_factor"]
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
        _check_factor(self.time_scale, field="time_scale")
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
        """Return the profile that the calls of a role are drawn from."""
        return self.of_roles.get(role, self)

    def __repr__(self) -> str:
        own = [f"  {role}: {one.name}" for role, one in self.of_roles.items()]
        return "\n".join([self._title(), *(f"  {name}: {table}" for name, table in self._tables().items()), *own])

    def _repr_html_(self) -> str:
        cells = self._tables() | {role: one.name for role, one in self.of_roles.items()}
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(table)}</td></tr>" for name, table in cells.items())
        about = f"<p>{escape(self.description)} Source: {escape(self.source)}</p>"
        return f"<p><b>{escape(self._title())}</b></p><table>{''.join(rows)}</table>{about}"

    def _title(self) -> str:
        slots = "no limit of slots" if self.slots is None else f"{self.slots} slots"
        return f"LatencyProfile {self.name!r}: {slots}, {self.hang_probability:.3g} of the calls hang"

    def _tables(self) -> dict[str, str]:
        return {name: repr(getattr(self, name)).removeprefix("QuantileTable: ") for name in _TABLE_FIELDS}

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
        slower = self._slower(key)
        return LlmLatency(
            first_token_s=self.first_token_s.at(first_level) * slower,
            inter_token_s=self.inter_token_s.at(inter_level) * slower,
            hangs=key.uniform("hang") < self.hang_probability,
        )

    def draw_retrieval(self, key: DrawKey) -> float:
        """Draw the seconds of a search, from the request to the whole answer.

        Args:
            key: Names the search.
        """
        if key.role in self.of_roles:
            return self.of_roles[key.role].draw_retrieval(key)
        return self.retrieval_s.at(dependence.level_in_run(key, "retrieval", self.correlation)) * self._slower(key)

    def _slower(self, key: DrawKey) -> float:
        return self.brownout_factor if dependence.is_in_brownout(key, self.brownout) else 1.0

    def scaled(self, factor: float) -> LatencyProfile:
        """Return the profile with every duration times a factor, which its name and description mention.

        `named("typical").scaled(0.1).name` is "typical/10", and `scaled(10)` of that "typical" again. Hangs, slots and
        correlation stay.

        Args:
            factor: Positive and finite.

        Raises:
            ConfigurationError: The factor is something else.
        """
        _check_factor(factor)
        product = self.time_scale * factor
        time_scale = 1.0 if math.isclose(product, 1.0) else product
        return replace(
            self,
            name=dependence.base_name(self.name).removesuffix(_name_suffix(self.time_scale)) + _name_suffix(time_scale),
            description=self.description.removesuffix(_scale_note(self.time_scale)) + _scale_note(time_scale),
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
                "typical/10?correlation=0.5&brownout=0.1"; see `dependence`. Profiles of single roles follow a comma:
                "typical,judge=mine-judge.json"; see `latency_profile`.

        Raises:
            ConfigurationError: The name is unknown, or the file cannot be used.
        """
        if "," in name:
            from docmind_lab.statistics.latency.by_role import latency_profile  # noqa: PLC0415 - it is a layer above

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
            known = f"{', '.join(PROFILE_NAMES)}, and files that end in .json"
            raise ConfigurationError(f"no latency profile is named {name!r}.{hint} Known: {known}")
        data = _load_shipped(name)
        stored = data["profiles"][name]["profile"]
        tables = {column: {"levels": data["levels"], "values_s": stored[column]} for column in _TABLE_FIELDS}
        return cls.from_dict(stored | tables)

    @classmethod
    def fit(
        cls, source: Source, columns: Mapping[str, str] | None = None, *, ok: Sequence[str] = (), **options: Any
    ) -> LatencyProfile:
        """Fit a profile to measured calls; docs/own-latencies.md explains it.

        Args:
            source: A DataFrame, a CSV, JSON lines, Parquet or OTLP JSON file, a study or its folder.
            columns: Field → its column and unit, such as {"latency_s": "duration_ms:ms"}.
            ok: The outcomes that mean a complete answer. Other calls were cut, and count as longer than that.
            options: The fields of `latency.fitting.FitOptions`.

        Returns:
            A profile whose `evidence` has the observed quantiles; `plots.latency_fit` shows where it fits badly.

        Raises:
            ConfigurationError: The message names the file, the column and the remedy.
        """
        # Function-level: readers and fits import pandas and scipy, and are a layer above this one.
        from docmind_lab.statistics.latency.fitting import FitOptions, fit_profile  # noqa: PLC0415 - as above

        unknown = sorted(options.keys() - {item.name for item in fields(FitOptions)})
        if unknown:
            known = ", ".join(item.name for item in fields(FitOptions))
            raise ConfigurationError(f"fit has no option {unknown[0]!r}: there are {known}")
        return fit_profile(source, columns, ok=ok, options=FitOptions(**options))

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON types, for manifests; `from_dict` reads it back equal. Without the evidence."""
        out = {item.name: getattr(self, item.name) for item in fields(self) if item.compare}
        # Left out where they are the default, so that the ids of studies without them stay what they were.
        out = {name: value for name, value in out.items() if dependence.OPTIONS.get(name) != value}
        out.pop("of_roles")
        if self.of_roles:
            out["of_roles"] = {role: one.to_dict() for role, one in self.of_roles.items()}
        for name in _TABLE_FIELDS:
            out[name] = {"levels": list(out[name].levels), "values_s": list(out[name].values_s)}
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LatencyProfile:
        """Read a profile that `to_dict` wrote. Raises ConfigurationError with the field that does not fit."""
        values = dict(data)
        unknown, missing = sorted(values.keys() - _FIELD_TYPES), sorted(_REQUIRED_FIELDS - values.keys())
        if unknown or missing:
            raise ConfigurationError(f"latency profile fields: missing {missing}, unknown {unknown}")
        for name, value in values.items():
            # bool is an int to isinstance, and is never meant here.
            if not isinstance(value, _FIELD_TYPES[name]) or isinstance(value, bool):
                raise ConfigurationError(f"latency profile field {name!r} cannot be {value!r}")
        values |= {name: _table_from(name, values[name]) for name in _TABLE_FIELDS}
        values["of_roles"] = {role: cls.from_dict(one) for role, one in values.get("of_roles", {}).items()}
        return cls(**values)


_TABLE_FIELDS = ("first_token_s", "inter_token_s", "retrieval_s")
_REQUIRED_FIELDS = {"name", "description", "source", *_TABLE_FIELDS}
_FIELD_TYPES: dict[str, Any] = {
    **dict.fromkeys(("name", "description", "source"), str),
    **dict.fromkeys(_TABLE_FIELDS, Mapping),
    **dict.fromkeys(("hang_probability", "time_scale", "rank_correlation", *dependence.OPTIONS), (int, float)),
    "slots": (int, type(None)),
    "of_roles": Mapping,
}


@functools.cache
def _load_shipped(name: str) -> dict[str, Any]:
    year = "_2026" if name.endswith("_2026") else ""
    file = resources.files("docmind_lab.core.data") / f"latency_profiles{year}.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _load_file(path: str) -> LatencyProfile:
    from docmind_lab.statistics.latency.fitting import load_profile  # noqa: PLC0415 - imports pandas, and built-in profiles need none

    return load_profile(path)


def _table_from(name: str, data: Mapping[str, Any]) -> QuantileTable:
    try:
        return QuantileTable(*(tuple(float(x) for x in data[column]) for column in ("levels", "values_s")))
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{name} needs two lists of numbers, levels and values_s") from error


def _check_factor(factor: float, *, field: str = "factor") -> None:
    if not 0 < factor < math.inf:
        raise ConfigurationError(f"{field} must be positive and finite: got {factor}")


def _name_suffix(time_scale: float) -> str:
    divisor = f"{1 / time_scale:g}"
    scale = f"/{divisor}" if divisor.isdigit() else f"*{time_scale:g}"
    return "" if time_scale == 1 else scale


def _scale_note(time_scale: float) -> str:
    return "" if time_scale == 1 else f" Scaled, not measured: every duration times {time_scale:g}."
