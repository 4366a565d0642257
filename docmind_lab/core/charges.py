"""CPU time that is charged to virtual time: computing takes none there unless a study asks for it."""

from __future__ import annotations

import math
from typing import Literal

from docmind_lab.core.errors import ConfigurationError

CpuCharge = float | Literal["measured"]
"""CPU seconds of each request; "measured" for those that the process has used since the request before."""


def checked_charge(charge: object) -> CpuCharge:
    """The charge. Raises: ConfigurationError if it is none."""
    if charge == "measured":
        return "measured"
    if isinstance(charge, int | float) and not isinstance(charge, bool) and 0 <= charge < math.inf:
        return float(charge)
    raise ConfigurationError(f"cpu_charge must be 0 or more CPU seconds of each request, or 'measured', not {charge!r}")


def parse_charge(text: str) -> CpuCharge:
    """The charge that a command line names: a number or "measured". Raises: ConfigurationError if it is none."""
    try:
        return checked_charge(text if text == "measured" else float(text))
    except ValueError as error:
        raise ConfigurationError(f"cpu_charge must be a number of CPU seconds or 'measured', not {text!r}") from error
