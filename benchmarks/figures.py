"""What a benchmark finds: figures with an interval and a target, and how they are shown."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Percentile intervals settle to the second digit well before this many resamples.
_RESAMPLES = 2_000
_HEADINGS = ("what", "figure", "95 % interval", "target", "")


@dataclass(frozen=True)
class Figure:
    """One number of a benchmark.

    unit: "" for a ratio. interval: where 95 % of bootstrap resamples lie; None where there is no sample behind it.
    at_most: the target; None for a figure that is shown beside another.
    """

    what: str
    value: float
    unit: str = ""
    interval: tuple[float, float] | None = None
    at_most: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the target is met; empty without one."""
        if self.at_most is None:
            return ""
        return "met" if self.value <= self.at_most else "not met"

    def cells(self) -> tuple[str, ...]:
        """The figure as a row of the table."""
        interval = "" if self.interval is None else " – ".join(self._shown(bound) for bound in self.interval)
        target = "" if self.at_most is None else f"≤ {self._shown(self.at_most)}"
        return self.what, self._shown(self.value), interval, target, self.verdict

    def _shown(self, value: float) -> str:
        return f"{value:.3f}" if not self.unit else f"{value:.1f} {self.unit}"


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned lines."""
    rows = [_HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers, row[-1]]).rstrip())
    return "\n".join(lines)


def sampled(
    what: str,
    sample: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = statistics.median,
    *,
    unit: str = "",
    at_most: float | None = None,
) -> Figure:
    """A statistic of a sample, with a bootstrap interval (percentiles of resamples, seeded)."""
    draw = random.Random(7)
    resampled = sorted(statistic(draw.choices(sample, k=len(sample))) for _ in range(_RESAMPLES))
    interval = resampled[int(0.025 * _RESAMPLES)], resampled[int(0.975 * _RESAMPLES) - 1]
    return Figure(what, statistic(sample), unit, interval, at_most)


def percentile_95(sample: Sequence[float]) -> float:
    """The smallest value of the sample that at least 95 % of it do not exceed."""
    return sorted(sample)[max(0, -(-95 * len(sample) // 100) - 1)]
