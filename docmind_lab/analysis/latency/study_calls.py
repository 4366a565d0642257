"""The calls table of a study as observed calls: a study of live endpoints becomes a profile of them.

The server's rows are taken where there are any, else the client's; waiting for a slot, or for a connection, is taken
off, since it belongs to the load and not to the latency.
"""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd

from docmind_lab.analysis.latency.calls import ObservedCalls
from docmind_lab.core.errors import ConfigurationError

_MARKS: Final = {"seen_from", "queue_wait_s", "first_byte_at_s", "started_at_s", "latency_s", "outcome", "kind"}


class MeasuredTables(Protocol):
    """The three tables of a study, as docs/data-dictionary.md describes them."""

    @property
    def runs(self) -> pd.DataFrame:
        """The table runs."""

    @property
    def calls(self) -> pd.DataFrame:
        """The table calls."""

    @property
    def events(self) -> pd.DataFrame:
        """The table events."""


def is_calls_table(frame: pd.DataFrame) -> bool:
    """Whether it has the columns of the table `calls`."""
    return set(frame.columns) >= _MARKS


def calls_of_study(study: MeasuredTables) -> ObservedCalls:
    """The calls of a study's three tables.

    The server writes when it began to generate (event tokens_generated), so a first token is known there also of
    answers that came in one piece. A call unended at the horizon was cut by it.
    Raises: ConfigurationError for a study without calls.
    """
    if study.calls.empty:
        raise ConfigurationError("the study has no calls: give one whose runs called a model")
    source = f"the study {study.calls['study_id'].iloc[0]}"
    horizon_s = study.runs.set_index("run_id")["horizon_s"]
    return calls_of_calls_table(study.calls, source, horizon_s, _generation_began_at_s(study.events))


def calls_of_calls_table(
    calls: pd.DataFrame,
    source: str,
    horizon_s: pd.Series[Any] | None = None,
    generation_began_at_s: pd.Series[Any] | None = None,
) -> ObservedCalls:
    """The calls of a calls table alone, or with its runs' horizons by run_id and the instants of first tokens.

    generation_began_at_s: by (run_id, call_id, attempt). Without it the first byte is the first token, where the rest
    of the answer came later.
    """
    served = calls["seen_from"].astype("str") == "server"
    kind, outcome = calls["kind"].astype("str"), calls["outcome"].astype("str")
    kept = calls[(served if served.any() else ~served) & kind.isin(["llm", "retrieval"]) & (outcome != "refused")]
    side = "the server's" if served.any() else "the client's"
    waited_s = kept["queue_wait_s"].fillna(0.0)
    latency_s = kept["latency_s"] - waited_s
    if horizon_s is not None:
        latency_s = latency_s.fillna(kept["run_id"].map(horizon_s) - kept["started_at_s"] - waited_s)
    first_at_s = kept["first_byte_at_s"]
    if generation_began_at_s is not None and served.any():
        keys = pd.MultiIndex.from_frame(kept[["run_id", "call_id", "attempt"]])
        began_at_s = pd.Series(generation_began_at_s.reindex(keys).to_numpy(dtype="float64"), index=kept.index)
        first_at_s = began_at_s.fillna(first_at_s)
    llm = kept["kind"].astype("str") == "llm"
    return ObservedCalls.of(
        {
            "kind": kept["kind"].astype("str").to_numpy(),
            "complete": (kept["outcome"].astype("str") == "ok").to_numpy(),
            # Subtracted instants are exact to some 1e-16 of the run's length, which may come out below 0.
            "latency_s": np.maximum(0.0, latency_s.to_numpy(dtype="float64")),
            "first_token_s": np.maximum(0.0, (first_at_s - kept["started_at_s"] - waited_s).where(llm).to_numpy()),
            "output_tokens": kept["output_tokens"].to_numpy(dtype="float64"),
            "model": np.full(len(kept), ""),
            "session": kept["run_id"].astype("str").to_numpy(),
        },
        source,
        (f"Of the calls table {side} rows were taken, waits in queues taken off.",),
    )


def _generation_began_at_s(events: pd.DataFrame) -> pd.Series[Any]:
    """The instant of the first token, by (run_id, call_id, attempt)."""
    generated = events[events["event"].astype("str") == "tokens_generated"]
    details = pd.DataFrame([json.loads(text) for text in generated["detail"]], index=generated.index)
    if details.empty:
        return pd.Series(dtype="float64", index=pd.MultiIndex.from_arrays([[], [], []]))
    return details.assign(run_id=generated["run_id"]).groupby(["run_id", "call_id", "attempt"])["begun_at_s"].min()
