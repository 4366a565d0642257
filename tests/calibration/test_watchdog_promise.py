"""Whether limits kill no more healthy calls than they promise, on calls they were not made with; `watchdog_trials`."""

from __future__ import annotations

from pathlib import Path

import pytest
from advice_trials import HEADER, Calibration
from watchdog_trials import KINDS

DOCS = Path(__file__).parents[2] / "docs" / "limits.md"


@pytest.mark.parametrize("kind", ["shared", "cut", "coding"])
def test_limits_keep_their_promise_on_other_calls(kind: str) -> None:
    """The small form: few repetitions, which limits that are too tight do not survive."""
    result = Calibration.over(5, KINDS[kind]())
    assert result.given > 0
    assert result.is_within_claim, result.row()


@pytest.mark.full
def test_the_table_in_the_docs_is_what_two_hundred_repetitions_give() -> None:
    results = [Calibration.over(200, kind()) for kind in KINDS.values()]
    # Of all repetitions: one that gives no limit kills no call.
    assert all(result.given - result.kept <= 0.05 * 200 for result in results)
    assert "\n".join([HEADER, *(result.row() for result in results)]) in DOCS.read_text(encoding="utf-8")
