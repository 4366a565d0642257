"""How far traces of the control, replayed under each alternative, agree with the runs that were really made.

result = agreement_with_stack(study)    # of the control and other alternatives, with one decision timeout
result                                  # the share that agrees, and each difference
result.pairs                            # one row per run
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.text import percent
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.findings.what_if.outcomes import Replay
from docmind_lab.tables.conditions import require_one_condition
from docmind_lab.tables.frames import StudyTables
from docmind_lab.tables.traces.rules import RULES_OF
from docmind_lab.tables.traces.traced_studies import traces_of_study

WITHIN_S: Final = 1e-6
"""How far two instants may be apart that count as the same, seconds."""
SAME_SHARE: Final = 0.995
"""Least share of runs with the same outcome and the same measures."""

_MEASURES: Final = ("caller_overrun_s", "calls_after_deadline", "busy_after_deadline_s", "tokens_after_deadline")


@dataclass(frozen=True, eq=False, repr=False)
class StackAgreement(MakesFinding):
    """Runs under an alternative, as they were made and as the traces of their controls say.

    pairs: one row per run that was really made under an alternative. Columns: run_id, workload, fault,
    server_behaviour, alternative, alternative_options, seed; outcome and each measure, as made and with the prefix
    trace_; known (whether a trace can say), same.
    """

    pairs: pd.DataFrame

    @property
    def same_share(self) -> float:
        """Share of the runs that a trace can say of which are the same; NaN if there is none."""
        return float(self.pairs.loc[self.pairs["known"], "same"].mean())

    @property
    def differences(self) -> pd.DataFrame:
        """The runs that a trace says something else of."""
        return self.pairs[self.pairs["known"] & ~self.pairs["same"]]

    def finding(self) -> Finding:
        """Return the share that agrees, and each difference."""
        known = int(self.pairs["known"].sum())
        title = (
            f"{percent(self.same_share, 2)} of {known} runs are the same under replay (outcome, late calls, and late "
            f"seconds to a microsecond); of {len(self.pairs) - known} more a trace cannot say"
        )
        columns = ["run_id", "outcome", "trace_outcome", "busy_after_deadline_s", "trace_busy_after_deadline_s"]
        rest = self.differences[columns].reset_index(drop=True)
        return Finding((title, *([] if rest.empty else [rest])), {"same_share": self.same_share}, {"pairs": self.pairs})


def agreement_with_stack(study: StudyTables) -> StackAgreement:
    """Replay the control of a study under its other alternatives, and compare with the runs of these.

    Args:
        study: Runs of the control and of other alternatives, in one condition.

    Raises:
        ConfigurationError: There is no control, or there are several conditions.
    """
    runs = study.runs
    require_one_condition(runs)
    traces = traces_of_study(study)
    timeout_s, horizon_s = float(runs["decision_timeout_s"].iloc[0]), float(runs["horizon_s"].iloc[0])
    replay = Replay(traces, ServerBehaviour.named(str(runs["server_behaviour"].iloc[0])))
    place = {seed: row for row, seed in enumerate(traces.runs["session"])}
    frames = []
    arms = runs[["alternative", "alternative_options"]].astype("str").drop_duplicates()
    for named in filter(None, map(RULES_OF.get, arms.itertuples(index=False, name=None))):
        outcomes = replay.under(named.rule, [timeout_s], horizon_factor=horizon_s / timeout_s)
        measured = runs[(runs["alternative"] == named.alternative) & (runs["alternative_options"] == named.options)]
        measured = measured[measured["seed"].astype("str").isin(place)]
        rows = np.array([place[str(seed)] for seed in measured["seed"]], dtype=np.int64)
        replayed = {name: values[rows] for name, values in outcomes.columns(timeout_s).items()}
        frames.append(_pairs(measured, replayed, outcomes.known[rows, 0]))
    if not frames:
        raise ConfigurationError("the study has no alternative beside its control: measure some with it")
    return StackAgreement(pd.concat(frames, ignore_index=True))


def _pairs(measured: pd.DataFrame, replayed: dict[str, Any], known: np.ndarray[Any, Any]) -> pd.DataFrame:
    first = ["run_id", "workload", "fault", "server_behaviour", "alternative", "alternative_options", "seed"]
    frame = measured[[*first, "outcome", *_MEASURES]].reset_index(drop=True)
    frame = frame.assign(**{f"trace_{name}": values for name, values in replayed.items()}, known=known)
    same = frame["outcome"].astype("str") == frame["trace_outcome"]
    for name in _MEASURES:
        here, there = frame[name].to_numpy(dtype=np.float64), frame[f"trace_{name}"].to_numpy()
        same &= np.isclose(here, there, rtol=0.0, atol=WITHIN_S, equal_nan=True)
    return frame.assign(same=same)
