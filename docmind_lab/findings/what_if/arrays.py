"""The tables of traces as arrays, ordered by run: what `outcomes` computes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, upwards

Bools = NDArray[np.bool_]


class Rows:
    """Rows of several runs, ordered by run, with sums and extremes over the rows of each.

    Each run has one row more, which stands for nothing, so that none is without rows.
    """

    def __init__(self, run: NDArray[np.int64], runs: int, columns: dict[str, tuple[Floats, float]]) -> None:
        """columns: name → the values of the rows, and the value of the row that stands for nothing."""
        owner = np.concatenate([run, np.arange(runs)])
        order = np.argsort(owner, kind="stable")
        self.owner = owner[order]
        self.first = np.searchsorted(self.owner, np.arange(runs))
        self._values = {
            name: np.concatenate([values, np.full(runs, nothing)])[order] for name, (values, nothing) in columns.items()
        }

    def __getitem__(self, name: str) -> Floats:
        """A column, as an array of one column."""
        return self._values[name][:, None]

    def sum(self, cells: NDArray[Any]) -> Floats:
        """Sums of the rows of each run."""
        return np.asarray(np.add.reduceat(cells, self.first, axis=0), dtype=np.float64)

    def max(self, cells: Floats) -> Floats:
        """Largest of the rows of each run."""
        return np.asarray(np.maximum.reduceat(cells, self.first, axis=0))

    def min(self, cells: Floats) -> Floats:
        """Smallest of the rows of each run."""
        return np.asarray(np.minimum.reduceat(cells, self.first, axis=0))


@dataclass(frozen=True)
class Around:
    """What is around each span: rows of the spans, by place.

    inner: the innermost step around it, or the outermost call where it is in none; itself where it is in neither.
    outer: the outermost step around it, in the same way. call: the innermost call that it was made inside of; −1 where
    there is none.
    """

    inner: NDArray[np.int64]
    outer: NDArray[np.int64]
    call: NDArray[np.int64]


def around_spans(spans: pd.DataFrame) -> Around:
    """Find what is around each span. spans: those of several runs, each with its place among them in `run`."""
    run, kind = spans["run"].to_numpy(), spans["kind"].astype("str").to_numpy()
    row = {key: place for place, key in enumerate(zip(run, spans["span_id"], strict=True))}
    parents = [row.get(key) for key in zip(run, spans["parent_id"], strict=True)]
    around = Around(np.arange(len(spans)), np.arange(len(spans)), np.full(len(spans), -1))
    for place in range(len(spans)):
        _, *above = upwards(place, parents.__getitem__)
        steps = [each for each in above if kind[each] == "step"]
        calls = [each for each in above if kind[each] not in ("step", "agent")]
        around.call[place] = calls[0] if calls else -1
        if steps and kind[place] in CALL_KINDS:
            around.inner[place] = steps[0]
        elif calls and not steps:
            around.inner[place] = calls[-1]
        if steps or calls:
            around.outer[place] = (steps or calls)[-1]
    return around


def step_rows(spans: pd.DataFrame, step: NDArray[np.int64], runs: int) -> Rows:
    """The steps at whose end a stop flag is looked at: those around calls, and those that hold nothing."""
    kind = spans["kind"].astype("str").to_numpy()
    holds = set(zip(spans["run"], spans["parent_id"], strict=True))
    keys = zip(spans["run"], spans["span_id"], strict=True)
    is_leaf = np.array([key not in holds for key in keys], dtype=np.bool_)
    places = np.unique(step[np.isin(kind, CALL_KINDS) | ((kind == "step") & is_leaf)])
    chosen = spans.iloc[places]
    started, ended = chosen["started_at_s"].to_numpy(), chosen["ended_at_s"].fillna(np.inf).to_numpy()
    return Rows(chosen["run"].to_numpy(), runs, {"started": (started, np.inf), "ended": (ended, -np.inf)})


def outermost_step_rows(spans: pd.DataFrame, outer: NDArray[np.int64], runs: int) -> Rows:
    """The outermost steps, with the start of the last step inside each: what it brings is there if that one ran."""
    is_step = (spans["kind"].astype("str") == "step").to_numpy()
    started = spans["started_at_s"].to_numpy()
    last = np.full(len(spans), -np.inf)
    np.maximum.at(last, outer[is_step], started[is_step])
    chosen = spans[is_step & (outer == np.arange(len(spans)))]
    ended = chosen["ended_at_s"].fillna(np.inf).to_numpy()
    return Rows(
        chosen["run"].to_numpy(), runs, {"ended": (ended, -np.inf), "last_started": (last[chosen.index], np.inf)}
    )


def call_rows(spans: pd.DataFrame, around: Around, runs: int) -> Rows:
    """The calls: when their client and their server saw them begin and end. Without a server's log it is the same."""
    is_call = np.isin(spans["kind"].astype("str"), CALL_KINDS)
    calls, started = spans[is_call], spans["started_at_s"].to_numpy()
    row = np.full(len(spans) + 1, -1)
    row[:-1][is_call] = rows_of_calls(calls)
    ended = calls["ended_at_s"].fillna(np.inf).to_numpy()
    logged = calls["server_started_at_s"].notna().to_numpy()
    server_started = np.where(logged, calls["server_started_at_s"], calls["started_at_s"])
    server_ended = np.where(logged, calls["server_ended_at_s"].fillna(np.inf), ended)
    first_byte = calls["first_byte_at_s"].to_numpy()
    kind = calls["kind"].astype("str")
    columns = {
        "started": (calls["started_at_s"].to_numpy(), np.inf),
        "ended": (ended, -np.inf),
        "server_started": (server_started, np.inf),
        "server_ended": (server_ended, -np.inf),
        "served_from": (server_started + calls["queue_wait_s"].fillna(0.0).to_numpy(), np.inf),
        "generating_from": (np.where(np.isnan(first_byte), np.inf, first_byte), 0.0),
        "streams": ((first_byte < server_ended).astype(np.float64), 0.0),
        "is_peer": ((kind == "peer").to_numpy(dtype=np.float64), 0.0),
        "is_model": ((kind == "llm").to_numpy(dtype=np.float64), 0.0),
        "inside": (row[around.call[is_call]].astype(np.float64), -1.0),
        "is_error": ((calls["outcome"].astype("str") == "error").to_numpy(dtype=np.float64), 0.0),
        "inner_from": (started[around.inner[is_call]], np.inf),
        "outer_from": (started[around.outer[is_call]], np.inf),
    }
    return Rows(calls["run"].to_numpy(), runs, columns)


def rows_of_calls(calls: pd.DataFrame) -> NDArray[np.int64]:
    """The row of each call among `call_rows`: in order of runs, each with one row of nothing after its own."""
    order = np.argsort(calls["run"].to_numpy(), kind="stable")
    place = np.empty(len(calls), dtype=np.int64)
    place[order] = np.arange(len(calls)) + calls["run"].to_numpy()[order]
    return place


def generation_rows(spans: pd.DataFrame, generation: pd.DataFrame, rows: Rows, runs: int) -> Rows:
    """The stretches in which tokens came; of a call without any, from its first byte to its end."""
    calls = spans[spans["kind"].isin(CALL_KINDS)]
    frame = calls[["trace_id", "span_id", "run"]].assign(call=rows_of_calls(calls).astype(np.float64))
    stretches = generation.merge(frame, on=["trace_id", "span_id"], how="inner")
    without = ~calls["span_id"].isin(stretches["span_id"]) | ~calls["trace_id"].isin(stretches["trace_id"])
    others = calls[without & calls["output_tokens"].notna() & calls["ended_at_s"].notna()]
    begun = others["first_byte_at_s"].fillna(others["started_at_s"])
    call_of = frame.loc[others.index, "call"]
    starts = np.full(len(rows.owner), np.inf)
    np.minimum.at(starts, stretches["call"].to_numpy(dtype=np.int64), stretches["begun_at_s"].to_numpy())
    known = np.isfinite(starts)
    # When the first tokens begin to come is when the prompt has been read, also for an answer in one piece.
    rows["generating_from"][known, 0] = starts[known]
    columns = {
        "call": (np.concatenate([stretches["call"].to_numpy(), call_of.to_numpy()]), 0.0),
        "begun": (np.concatenate([stretches["begun_at_s"].to_numpy(), begun.to_numpy()]), 0.0),
        "ended": (np.concatenate([stretches["ended_at_s"].to_numpy(), others["ended_at_s"].to_numpy()]), -np.inf),
        "tokens": (np.concatenate([stretches["tokens"].to_numpy(), others["output_tokens"].to_numpy()]), 0.0),
    }
    run = np.concatenate([stretches["run"].to_numpy(), others["run"].to_numpy()]).astype(np.int64)
    return Rows(run, runs, columns)
