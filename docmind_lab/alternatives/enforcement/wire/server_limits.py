"""The deadline of work that another process asked for: the smaller of what came and what the service allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from docmind_lab.core.duration_headers import smallest_s, whole_milliseconds
from docmind_lab.core.errors import BudgetRefused, ConfigurationError
from docmind_lab.core.numbers import require_allowance, require_seconds
from docmind_lab.network.deadline_headers import deadline_in_force

METADATA_KEY: Final = "docmind-lab/remaining-ms"
"""The key under which A2A messages and MCP requests carry the time left, in whole milliseconds."""

_MOST_MS: Final = 10**15  # more than 30,000 years; a longer number may be too large for a float
_LEAST_S: Final = 0.005  # as `PropagationPolicy.floor_s`: less is not worth a request


@dataclass(frozen=True)
class ServerLimits:
    """What a service allows, whatever its caller says.

    at_most_s: seconds that a request may take; None for no limit of the service's own. transit_s: taken off what the
    caller says, for the way here and back. least_s: what a request needs at least; with less left it is refused at
    once.

    Raises: ConfigurationError for a value that cannot be used, or if `at_most_s` is not above `least_s`.
    """

    at_most_s: float | None = None
    transit_s: float = 0.0
    least_s: float = _LEAST_S

    def __post_init__(self) -> None:
        require_allowance("transit_s", self.transit_s)
        require_allowance("least_s", self.least_s)
        if self.at_most_s is not None and require_seconds("at_most_s", self.at_most_s) <= self.least_s:
            raise ConfigurationError(
                f"at_most_s must be more than least_s ({self.least_s:g}), not {self.at_most_s:g}, "
                "or every request is refused"
            )

    def admitted_s(self, came_s: float | None, label: str) -> float | None:
        """Return the seconds that the work may take, of those that its caller said; None for no limit.

        Raises: BudgetRefused if less than `least_s` is left, so that the work must not begin.
        """
        if came_s is None:
            return self.at_most_s
        left_s = came_s - self.transit_s
        if left_s < self.least_s or left_s <= 0:
            raise BudgetRefused(
                f"{label}: refused, because its caller waits for {max(0.0, left_s):.3f} s more and it needs at least "
                f"{self.least_s:.3f} s; nothing was begun",
                role=label,
                limit_s=max(0.0, left_s),
                elapsed_s=0.0,
                source="wire",
            )
        return left_s if self.at_most_s is None else min(left_s, self.at_most_s)


def remaining_metadata(metadata: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the metadata of a message with the time left added; unchanged outside every deadline.

    If it has a smaller duration already, that one stays.
    """
    added, deadline = dict(metadata or {}), deadline_in_force()
    if deadline is not None:
        own_s = read_metadata_s(added)
        left_s = deadline.remaining()
        added[METADATA_KEY] = whole_milliseconds(left_s if own_s is None else min(left_s, own_s))
    return added


def read_metadata_s(metadata: Mapping[str, object] | None) -> float | None:
    """Return the seconds that the sender still waits; None if the metadata does not say, or not readably.

    It is JSON or a protobuf Struct, whose numbers are floats.
    """
    value = (metadata or {}).get(METADATA_KEY)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1000 if 0 <= value < _MOST_MS else None
    return smallest_s([value]) if isinstance(value, str) else None
