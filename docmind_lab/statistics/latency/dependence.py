"""Dependence between the calls of a run: options of a latency profile, off by default, and their draws.

    heavy_tail/3?correlation=0.5            half of a call's slowness is its run's
    local_gpu?slowdown=0.2                  each other call under way adds a fifth to the time per token

Correlation is a Gaussian copula: the normal score of a call's level is √ρ × that of its run + √(1 − ρ) × its own. So ρ
is the correlation of the scores of two calls of a run, and every call's distribution stays what it is. Runs of one seed
share their part, whatever alternative they are under. Hangs are drawn for each call alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from statistics import NormalDist
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey, keyed_uniform

OPTIONS: Final[Mapping[str, float]] = {"correlation": 0.0, "slowdown": 0.0}
"""The options by name, with their default values."""

# A key's uniform number can be 0.0, and can round to 1.0; the normal quantile is infinite at both.
_SMALLEST_LEVEL = 2.0**-53
_NORMAL = NormalDist()
_SUFFIX = re.compile(rf"\?(?:{'|'.join(OPTIONS)})=.*\Z", re.DOTALL)


def check_options(values: Mapping[str, float]) -> None:
    """Check the options of a profile. Raises: ConfigurationError naming the one that cannot be used."""
    if not 0 <= values["correlation"] <= 1:
        raise ConfigurationError(f"correlation must lie in [0, 1]: got {values['correlation']}")
    if not 0 <= values["slowdown"] < math.inf:
        raise ConfigurationError(f"slowdown must be 0 or more: got {values['slowdown']}")


def parse_options(text: str, name: str) -> dict[str, float]:
    """Read the options written after the question mark of a profile's name.

    text: options such as "correlation=0.5&slowdown=0.2". Raises: ConfigurationError (an option is unknown, named twice
    or no number).
    """
    result: dict[str, float] = {}
    for part in text.split("&"):
        option, _, value = part.partition("=")
        if option not in OPTIONS or option in result:
            raise ConfigurationError(
                f"latency profile {name!r}: {part!r} is no option; write each of {', '.join(OPTIONS)} once, as in "
                "typical?correlation=0.5"
            )
        try:
            result[option] = float(value)
        except ValueError as error:
            raise ConfigurationError(f"latency profile {name!r}: {option} {value!r} is not a number") from error
    return result


def name_with_options(name: str, values: Mapping[str, float]) -> str:
    """Return the name of a profile with its options replaced by those that differ from the defaults."""
    phrases = [f"{option}={values[option]:g}" for option, default in OPTIONS.items() if values[option] != default]
    base = base_name(name)
    return f"{base}?{'&'.join(phrases)}" if phrases else base


def base_name(name: str) -> str:
    """Return the name of a profile without its options."""
    return _SUFFIX.sub("", name)


def correlation_in(name: str) -> float:
    """Return the correlation in the name of a profile; 0 if the name has none."""
    result = re.search(r"[?&]correlation=([^&]+)", name.removeprefix(base_name(name)))
    return float(result[1]) if result else 0.0


def without_correlation(name: str) -> str:
    """Return the name of a profile without its correlation, and with its other options."""
    base = base_name(name)
    parts = [part for part in name.removeprefix(base)[1:].split("&") if part and not part.startswith("correlation=")]
    return f"{base}?{'&'.join(parts)}" if parts else base


def normal_score(level: float) -> float:
    """Return the standard normal quantile at a level in [0, 1], finite at 0 and 1."""
    return _NORMAL.inv_cdf(min(max(level, _SMALLEST_LEVEL), 1 - _SMALLEST_LEVEL))


def level_in_run(key: DrawKey, what: str, correlation: float) -> float:
    """Return the uniform level of a call; with correlation, the calls of a run share a part of it.

    key: the call's key; the run is its seed. what: name of what is drawn, such as "first_token". correlation:
    correlation of the normal scores of two calls of a run.
    """
    level = key.uniform(what)
    if not correlation:
        return level
    of_run = normal_score(keyed_uniform(key.seed, "run", what))
    return _NORMAL.cdf(math.sqrt(correlation) * of_run + math.sqrt(1 - correlation) * normal_score(level))


def with_rank_correlation(first_level: float, own_level: float, rank_correlation: float) -> float:
    """Return a uniform level that has the given Spearman's rho with `first_level` (a Gaussian copula).

    Pearson's r of the normals behind it is 2 sin(pi rho / 6) (Pearson 1907).
    """
    r = 2 * math.sin(math.pi * rank_correlation / 6)
    first, own = normal_score(first_level), normal_score(own_level)
    return _NORMAL.cdf(r * first + math.sqrt(max(0.0, 1 - r * r)) * own)
