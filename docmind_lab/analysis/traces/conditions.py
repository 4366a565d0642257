"""The decision timeout that each condition of a study asks for, from the traces of its control.

timeouts_by(study, ["latency_profile", "fault"], range(5, 200, 5), target=0.8)
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from docmind_lab.analysis.study import Study
from docmind_lab.analysis.traces.rules import CONTROLS
from docmind_lab.analysis.traces.studies import traces_of_study
from docmind_lab.analysis.traces.what_if import what_if
from docmind_lab.core.errors import ConfigurationError


def timeouts_by(
    study: Study, columns: Sequence[str], decision_timeout_s: Sequence[float], *, target: float = 0.95
) -> pd.DataFrame:
    """Return the smallest decision timeout that is sure to reach the target, by condition.

    Args:
        study: Runs of the control among them; how they were enforced does not matter for the share in time.
        columns: Columns of `runs` that say the condition; the last one becomes the columns of the table.
        decision_timeout_s: Decision timeouts to choose from, seconds.
        target: Share of runs answered in time, of which the lower bound has to reach it.

    Returns:
        Seconds, one row and column per condition; NaN where no decision timeout is sure.

    Raises:
        ConfigurationError: The study has no control or no such column, or the target is not between 0 and 1.
    """
    unknown = [name for name in columns if name not in study.runs]
    if unknown or len(columns) < 2:
        raise ConfigurationError(f"columns must name two or more columns of runs, not {list(columns)}")
    runs = study.runs[study.runs["alternative"].isin(CONTROLS)]
    if runs.empty:
        raise ConfigurationError("the study has no run without a deadline: measure unguarded too")
    groups = runs.groupby(list(columns), observed=True)["run_id"]
    found = {
        key: what_if(traces_of_study(study, ids), decision_timeout_s, "control").smallest(target) for key, ids in groups
    }
    return pd.Series(found).rename_axis(list(columns)).unstack()
