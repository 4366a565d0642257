"""What a recommended decision timeout assumes of the latencies of its runs, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from docmind_lab.recordings.recording import RECORDED


def is_replay(runs: pd.DataFrame) -> bool:
    """Whether any of the runs replays a recording, whose shares answered in time are lower bounds."""
    return bool((runs["latency_profile"].astype("str") == RECORDED).any())


def assumptions_of(runs: pd.DataFrame) -> Iterator[str]:
    """A sentence for each assumption that the runs rest on."""
    if is_replay(runs):
        yield (
            "A replay: calls that the recording cut are drawn from calls of their role that took longer, and never end "
            "where none was observed. So a share in time is a lower bound wherever a decision timeout is longer than "
            "the recording's; record with a longer one to know more."
        )
