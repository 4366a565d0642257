"""The panel over real processes: its code, run by itself, makes the same three tables."""

from __future__ import annotations

import pandas as pd
import pytest

from docmind_lab.views.panels import tune


@pytest.mark.full
@pytest.mark.wall
def test_the_code_makes_the_same_tables_also_of_runs_that_were_known() -> None:
    # Processes start, import the stack and index a corpus: seconds, minutes on a machine that does much else.
    panel = tune(decision_timeout_s=20.0, runs=2, alternatives=("B",))
    try:
        panel.wait(300)
        # The runs of B come from the store, under the names of another study.
        panel.alternatives = ("A", "B")
        study = panel.wait(300)
        names: dict[str, object] = {}
        exec(panel.code, names)
        for table in ("runs", "calls", "events"):
            pd.testing.assert_frame_equal(getattr(study, table), getattr(names["study"], table))
    finally:
        panel.close()
