"""Whether a replay in virtual time repeats the live study that it was recorded from.

result = fidelity(live, replay)
result                          # outcomes run by run, and the distance of the two distributions
dl.plots.agreement(result)
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.agreement import SAME_OUTCOME, Agreement, pairs_of
from docmind_lab.findings.finding import Finding
from docmind_lab.tables.frames import StudyTables

DISTANCE: Final = 0.02
"""Greatest Kolmogorov–Smirnov distance of the completion times."""

_MICROSECONDS: Final = 6


class Fidelity(Agreement):
    """How well a replay repeats the live study that it was recorded from: the runs pair by pair, as on two clocks."""

    @property
    def distance(self) -> float:
        """Kolmogorov–Smirnov distance: the greatest difference of the shares of runs answered by any instant."""
        # Function-level: scipy.stats takes half a second to import.
        from scipy import stats  # noqa: PLC0415

        sides_s = [_completions(self.pairs, clock) for clock in ("wall", "virtual")]
        # A run without an answer stands behind every one with: only the order matters to the distance.
        never_s = 1.0 + float(np.nanmax(np.concatenate([*sides_s, [0.0]])))
        return float(stats.ks_2samp(*(np.nan_to_num(side, nan=never_s) for side in sides_s), method="asymp").statistic)

    @property
    def holds(self) -> bool:
        """Whether both the outcomes and the completion times agree well enough."""
        return self.same_outcome >= SAME_OUTCOME and self.distance <= DISTANCE

    def finding(self) -> Finding:
        """Return whether the replay tells the same story, and how the runs agree."""
        verdict = "the replay tells the same story" if self.holds else "the replay tells another story"
        title = (
            f"{len(self.pairs)} live runs and their replay: {self.same_outcome:.1%} with the same outcome "
            f"(at least {SAME_OUTCOME:.0%}), distance of the completion times {self.distance:.3f} "
            f"(at most {DISTANCE:g}): {verdict}"
        )
        numbers = {"same_outcome": self.same_outcome, "distance": self.distance, "holds": self.holds}
        return Finding((title, *super().finding().words), numbers, {"pairs": self.pairs})


def fidelity(live: StudyTables, replay: StudyTables) -> Fidelity:
    """Compare a live study with the replay of its recording under the same deadline.

    Raises: ConfigurationError for studies that share no run, as `agreement`.
    """
    # The live study names the profile of its services, or none; a replay says that its times are recorded.
    profile = sorted(set(live.runs["latency_profile"].astype("str")))
    if len(profile) != 1:
        raise ConfigurationError(f"live: its runs must have one latency profile, not {', '.join(profile) or 'none'}")
    return Fidelity(*pairs_of(replay.runs.assign(latency_profile=profile[0]), live.runs))


def _completions(pairs: pd.DataFrame, clock: str) -> npt.NDArray[np.float64]:
    """Return completion times, seconds; NaN for a run without an answer."""
    answered = pairs[f"{clock}_outcome"] == "answered"
    # Waits that are added up again end some 10⁻¹² s from where they did; that is no order of runs.
    return np.round(pairs[f"{clock}_returned_at_s"].where(answered).to_numpy(dtype=np.float64), _MICROSECONDS)
