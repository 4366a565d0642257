"""How many calls of a replay were recorded, and how many had to be drawn.

print(account_of(study, recording))
of 2,412 calls 2,390 were recorded, 10 are another alternative's, 12 were not recorded and are drawn; …
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import pandas as pd

from docmind_lab.recordings.recording import Recording
from docmind_lab.recordings.timings import REPLAYED_KINDS

_RUN = ["alternative", "alternative_options", "seed", "question_id"]


class HasCalls(Protocol):
    """A study, or anything else with its tables of runs and calls."""

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run."""
        ...

    @property
    def calls(self) -> pd.DataFrame:
        """One row per attempt and side."""
        ...


@dataclass(frozen=True)
class ReplayAccount:
    """Attempts of a replay, by where their times are from.

    recorded: the run's own recording. of_another_alternative: another run of the same question. not_recorded: drawn
    from what calls of their role took. cut_in_the_recording: of the former two, those that the recording saw cut and
    not end, so that what is past the cut is drawn.
    """

    recorded: int
    of_another_alternative: int
    not_recorded: int
    cut_in_the_recording: int

    @property
    def calls(self) -> int:
        """All of them."""
        return self.recorded + self.of_another_alternative + self.not_recorded

    def to_dict(self) -> dict[str, Any]:
        """As a manifest has it."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"of {self.calls:,} calls {self.recorded:,} were recorded, {self.of_another_alternative:,} are another "
            f"alternative's, {self.not_recorded:,} were not recorded and are drawn; {self.cut_in_the_recording:,} were "
            "cut in the recording, and what is past the cut is drawn"
        )


def account_of(study: HasCalls, recording: Recording) -> ReplayAccount:
    """The account of a replay. study: the replay's tables.

    What was refused was never sent, and tools of a user's graph run again: neither counts.
    """
    asked = {
        str(run_id): (str(alternative), str(options), int(seed), str(question_id))
        for run_id, alternative, options, seed, question_id in study.runs[["run_id", *_RUN]].itertuples(index=False)
    }
    calls = study.calls
    is_sent = calls["kind"].isin(REPLAYED_KINDS) & (calls["outcome"] != "refused")
    client = calls[(calls["seen_from"] == "client") & is_sent]
    found: Counter[str] = Counter()
    for run_id, call_id, attempt in client[["run_id", "call_id", "attempt"]].itertuples(index=False):
        found.update(_origin(recording, asked[str(run_id)], (str(call_id), int(attempt))))
    return ReplayAccount(**{name: found[name] for name in ReplayAccount.__dataclass_fields__})


def _origin(recording: Recording, run: tuple[str, str, int, str], key: tuple[str, int]) -> list[str]:
    own = recording.run_of(*run)
    call = own.call(*key) if own is not None else None
    if call is not None:
        return ["recorded", *_cut(call.end == "cut")]
    others = [other.call(*key) for other in recording.others_of(run[2], run[3])]
    ends = [other.end for other in others if other is not None]
    if not ends:
        return ["not_recorded"]
    return ["of_another_alternative", *_cut(all(end == "cut" for end in ends))]


def _cut(was_cut: bool) -> list[str]:
    return ["cut_in_the_recording"] if was_cut else []
