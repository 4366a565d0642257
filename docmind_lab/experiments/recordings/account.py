"""Count how many calls of a replay were recorded, and how many had to be drawn.

print(account_of(study, recording))
of 2,412 calls 2,390 were recorded, 10 are another alternative's, 12 were not recorded and are drawn; …
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.recordings.replay import drawn_wait_s, find
from docmind_lab.experiments.recordings.timings import REPLAYED_KINDS
from docmind_lab.findings.recommendation_words import LOWER_BOUND
from docmind_lab.findings.study import Study
from docmind_lab.tables.traces.importers.recordings import Recording, RunKey

_RUN = ["alternative", "alternative_options", "seed", "question_id"]
_CALL = ["run_id", "call_id", "attempt", "kind", "role", "step"]


@dataclass(frozen=True)
class ReplayAccount:
    """Number of attempts in a replay, by where their times come from.

    recorded: the run's own recording. of_another_alternative: another run of the same question. not_recorded: drawn
    from what calls of their role took. cut_in_the_recording: those of the first two that the recording saw cut, so
    that what follows is drawn. longer_than_observed: drawn beyond what the recording could observe; they never end.
    """

    recorded: int
    of_another_alternative: int
    not_recorded: int
    cut_in_the_recording: int
    longer_than_observed: int = 0

    @property
    def calls(self) -> int:
        """Number of all attempts."""
        return self.recorded + self.of_another_alternative + self.not_recorded

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as the manifest holds them."""
        return asdict(self)

    def __str__(self) -> str:
        bias = f"; {self.longer_than_observed:,} {LOWER_BOUND}" if self.longer_than_observed else ""
        return (
            f"of {self.calls:,} calls {self.recorded:,} were recorded, {self.of_another_alternative:,} are another "
            f"alternative's, {self.not_recorded:,} were not recorded and are drawn; {self.cut_in_the_recording:,} were "
            f"cut in the recording, and what is past the cut is drawn{bias}"
        )


def account_of(study: Study, recording: Recording) -> ReplayAccount:
    """Count the calls of a replay by the source of their times. study: the replay.

    What was refused was never sent, and tools of a user's graph run again: neither counts.
    """
    runs = {
        str(run_id): (str(alternative), str(options), int(seed), str(question_id))
        for run_id, alternative, options, seed, question_id in study.runs[["run_id", *_RUN]].itertuples(index=False)
    }
    calls = study.calls
    is_sent = calls["kind"].isin(REPLAYED_KINDS) & (calls["outcome"] != "refused")
    client = calls[(calls["seen_from"] == "client") & is_sent]
    counts: Counter[str] = Counter()
    for run_id, call_id, attempt, kind, role, step in client[_CALL].itertuples(index=False):
        run = runs[str(run_id)]
        key = DrawKey(run[2], str(role), str(step), int(attempt))
        counts.update(_origin(recording, run, str(call_id), str(kind), key))
    return ReplayAccount(**{name: counts[name] for name in ReplayAccount.__dataclass_fields__})


def _origin(recording: Recording, run: RunKey, call_id: str, kind: str, key: DrawKey) -> Iterator[str]:
    match = find(recording, run, (call_id, key.attempt))
    if match is None:
        yield "not_recorded"
    else:
        yield "recorded" if match.run.key == run else "of_another_alternative"
        if not match.was_cut:
            return
        yield "cut_in_the_recording"
    if drawn_wait_s(recording, match, kind, key) == math.inf:
        yield "longer_than_observed"
