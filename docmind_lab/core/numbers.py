"""Numbers that are given: one check for each kind, whose error names the number and says what will do.

require_seconds("decision timeout", 20)         # above 0
require_allowance("slack_s", 0.0)               # seconds, 0 or more
require_share("adoption", 0.5, "hops")          # from 0 to 1
require_count("replicates", 8, most=1000)       # whole
"""

from __future__ import annotations

import math

from docmind_lab.core.errors import ConfigurationError


def require_number(
    name: str,
    value: object,
    what: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    remedy: str = "",
) -> float:
    """Return a finite number as a float. what: what it must be, in words. Raises: ConfigurationError naming it."""
    # float() would also take True and "2".
    is_number = hasattr(value, "__float__") and not isinstance(value, bool)
    number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    if not (math.isfinite(number) and number > above and least <= number <= most):
        raise ConfigurationError(f"{name} must be {what}, not {value!r}{remedy and f'; {remedy}'}")
    return number


def require_seconds(name: str, value: object) -> float:
    """Return a finite number of seconds above 0. Raises: ConfigurationError naming the parameter."""
    return require_number(name, value, "a finite number of seconds above 0", above=0, remedy="try 2.0")


def require_allowance(name: str, value: object) -> float:
    """Return 0 or more finite seconds. Raises: ConfigurationError naming the parameter."""
    return require_number(name, value, "0 or more finite seconds", least=0, remedy="try 0.01")


def require_share(name: str, value: object, of: str) -> float:
    """Return a share as a float. of: what it is a share of. Raises: ConfigurationError if it is not from 0 to 1."""
    return require_number(name, value, f"a share of the {of} from 0 to 1", least=0, most=1)


def require_count(name: str, value: object, least: int = 1, most: int | None = None, remedy: str = "") -> int:
    """Return a whole number. most: None for no largest. Raises: ConfigurationError naming it, and what to try."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= (value if most is None else most):
        return value
    what = f"a whole number from {least} up" if most is None else f"a whole number between {least} and {most}"
    raise ConfigurationError(f"{name} must be {what}, not {value!r}; {remedy or f'try {max(1, least)}'}")
