"""`load_on_traces`: recorded runs that arrive as queries at given rates, under every alternative."""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.core.catalogue import label_of, order_of
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.core.text import count_of
from docmind_lab.experiments.batch import Workers, workers_for
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.load.arrivals import Arrivals, processes_of
from docmind_lab.experiments.load.measures import crowd_measures, goodput_differences, load_summary, with_types
from docmind_lab.experiments.load.on_traces.crowd import Crowd, CrowdRows
from docmind_lab.experiments.load.on_traces.design import TracedCell, TracedLoadDesign
from docmind_lab.experiments.load.on_traces.shapes import Recorded, shapes_of
from docmind_lab.experiments.load.study import SavedStudy, study_of_crowds
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.findings.finding import Finding
from docmind_lab.findings.study import MANIFEST
from docmind_lab.findings.what_if.outcomes import ENDINGS
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.manifest import manifest_of
from docmind_lab.tables.traces.model import Traces
from docmind_lab.tables.traces.rules import NamedRule, rules_of

# One run of a trace costs about a thousandth of a run of the whole stack.
_QUERIES_LIKE_A_RUN: Final = 1_000
# In the name of an arm where the study has several of them.
_FACTORS: Final = ("decision_timeout_s", "slots", "queue_policy")


QUANTILES: Mapping[str, float] = {"response_p90_s": 0.9, "response_p99_s": 0.99}
"""The quantiles of response times beside the median, by column."""


@dataclass(frozen=True)
class TracedCellResult(CellOutcome):
    """A crowd's measures by name, with what was varied; a row for each query; and the number of events."""

    row: Mapping[str, Any] = field(default_factory=dict)
    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    events: int = 0


def run_traced_cell(cell: TracedCell, attempt: int = 1) -> TracedCellResult:
    """Run a crowd and return its measures. attempt: counts, as for `run_cell`."""
    begun_s = time.process_time()
    instants_s = cell.arrivals.instants(cell.design.queries, cell.seed)
    shapes = (cell.design.recorded.of_query(number, cell.seed) for number in range(len(instants_s)))
    rows = Crowd(cell).run(instants_s, shapes)
    asked = _queries(cell, np.asarray(instants_s), rows)
    measured = crowd_measures(asked, _requests(asked, rows), "arrival")
    first = asked.iloc[0]
    counted = asked[asked["scheduled_at_s"].between(first["window_from_s"], first["window_until_s"], inclusive="left")]
    response_s = np.sort(counted["response_s"].fillna(np.inf).to_numpy())
    quantiles = {name: _quantile(response_s, level) for name, level in QUANTILES.items()}
    varied = {
        "alternative": cell.named.alternative,
        "alternative_options": cell.named.options,
        "decision_timeout_s": cell.decision_timeout_s,
        "queue_policy": cell.policy,
        "arrivals": cell.arrivals.kind,
        "offered_per_s": cell.arrivals.rate_per_s,
        "replicate": cell.replicate,
        "slots": cell.slots,
        "callers": None,
    }
    kept = asked[["scheduled_at_s", "response_s", "in_time", "outcome"]].assign(
        offered_per_s=cell.arrivals.rate_per_s, replicate=cell.replicate, crowd=cell.id
    )
    kept = kept.astype({"crowd": "category", "replicate": "int32"})
    cpu_s = time.process_time() - begun_s
    return TracedCellResult(cell.id, varied | measured | quantiles, kept, rows.events, cpu_s=cpu_s)


def _quantile(in_order: Floats, level: float) -> float:
    """The value below which this share is. An observation and no point between two: one of them may be infinite."""
    return float(in_order[min(len(in_order) - 1, int(level * len(in_order)))]) if len(in_order) else float("nan")


def _queries(cell: TracedCell, scheduled_at_s: Floats, rows: CrowdRows) -> pd.DataFrame:
    timeout_s = cell.decision_timeout_s
    returned_at_s = np.asarray(rows.returned_at_s)
    outcome: NDArray[np.int8] = np.asarray(rows.outcome, dtype=np.int8)
    response_s = returned_at_s - scheduled_at_s
    in_time = (outcome == ENDINGS.index("answered")) & (returned_at_s <= scheduled_at_s + timeout_s)
    return pd.DataFrame(
        {
            "scheduled_at_s": scheduled_at_s,
            "response_s": response_s,
            "returned_at_s": response_s,
            "in_time": in_time,
            "answered_in_time": in_time,
            "outcome": pd.Categorical.from_codes(outcome, categories=pd.Index(ENDINGS)),
            "late_s": 0.0,
            "slots": pd.array([cell.slots] * len(outcome), dtype="Int64"),
            "second_budgets": pd.Categorical([NO_BUDGETS]).take([0] * len(outcome)),
            "stop_reason": pd.Categorical([""]).take([0] * len(outcome)),
            "window_from_s": cell.design.counted_from_s(timeout_s),
            "window_until_s": float(scheduled_at_s[-1]) - timeout_s,
            "wanted_until_s": np.fmin(scheduled_at_s + timeout_s, returned_at_s),
        }
    )


def _requests(asked: pd.DataFrame, rows: CrowdRows) -> pd.DataFrame:
    query = np.asarray(rows.request_query, dtype=np.int64)
    return pd.DataFrame(
        {
            "received_at_s": np.asarray(rows.received_at_s),
            "served_from_s": np.asarray(rows.served_from_s),
            "left_at_s": np.asarray(rows.left_at_s),
            "wanted_until_s": asked["wanted_until_s"].to_numpy()[query],
        }
    )


@dataclass(frozen=True, eq=False, repr=False)
class LoadOnTraces(SavedStudy):
    """The result of `load_on_traces`, with the measures and figures of a load study.

    crowds: one row per crowd: the columns of `LoadStudy.replicates`, what was varied, and response_p90_s and
    response_p99_s (inf where fewer queries than that had anything by the horizon). queries: one row per query:
    scheduled_at_s (since the begin of its crowd), response_s (NaN: not back by the horizon), in_time, outcome,
    offered_per_s, replicate, crowd. manifest: what was run, and the CPU seconds and events that it took.
    """

    crowds: pd.DataFrame
    queries: pd.DataFrame
    manifest: Mapping[str, Any] = field(default_factory=dict)

    TABLE_NAMES = ("crowds", "queries")

    def replicates(self) -> pd.DataFrame:
        """Return one row for each crowd, the unit of every interval."""
        return self.crowds

    def summary(self) -> pd.DataFrame:
        """Return one row for each load and arm, with intervals over replicates and mean quantiles of response times."""
        keys = ["arrivals", "offered_per_s", "arm"]
        quantiles = self.crowds.groupby(keys, observed=True)[list(QUANTILES)].mean().reset_index()
        quantiles["arm"] = quantiles["arm"].astype(self.crowds["arm"].dtype)
        return load_summary(self.crowds).merge(quantiles, on=keys, validate="one_to_one")

    def differences(self, reference: str) -> pd.DataFrame:
        """Return how much more or less goodput each arm has than the reference: see `goodput_differences`."""
        return goodput_differences(self.crowds, reference)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> LoadOnTraces:
        """Read a study that `save` wrote. Raises: RecordError if there is none, or a newer version wrote it."""
        folder = Path(directory)
        if (folder / MANIFEST).exists() and not (folder / f"{cls.TABLE_NAMES[0]}.parquet").exists():
            raise RecordError(f"{folder} holds no load study on traces: it has no {cls.TABLE_NAMES[0]}.parquet")
        manifest, (crowds, queries) = cls.read_folder(folder)
        return cls(crowds, queries, manifest)

    @property
    def title(self) -> str:
        """One line that says what was run."""
        design = self.manifest["design"]
        timeouts = ", ".join(f"{each:g}" for each in design["decision_timeout_s"])
        slots = ", ".join("no limit of" if each is None else str(each) for each in design["slots"])
        return (
            f"{count_of(design['recorded_runs'], 'recorded run')} under load · {timeouts} s decision timeout · "
            f"{slots} slots · {len(self.queries):,} queries"
        )

    def _display_table(self) -> pd.DataFrame:
        table = self.summary()
        return pd.DataFrame(
            {
                "offered /s": table["offered_per_s"].map("{:.3g}".format),
                "arm": table["arm"].astype("str"),
                "goodput /s": table["goodput_per_s"].map("{:.3f}".format),
                "in time": table["share_in_time"].map("{:.1%}".format),
                "collapsed": [f"{row.collapsed} of {row.replicates}" for row in table.itertuples()],
                "slots busy": table["busy_share"].map("{:.0%}".format),
                "slots on abandoned": table["abandoned_share"].map("{:.1%}".format),
                "live queue wait": table["live_queue_wait_s"].map("{:.2f} s".format),
                "response p50": table["response_median_s"].map("{:.1f} s".format),
                "p99": table["response_p99_s"].map("{:.1f} s".format),
            }
        )

    def finding(self) -> Finding:
        """Return the measures of each load and alternative."""
        return Finding((self.title, self._display_table()))


def load_on_traces(
    traces: Traces,
    arrivals: Sequence[float | Arrivals],
    *,
    decision_timeout_s: float | Sequence[float] = 20.0,
    alternatives: str | Sequence[str] | None = None,
    slots: int | Sequence[int | None] | None = 4,
    queue_policy: str | Sequence[str] = "first_come",
    queries: int = 10_000,
    replicates: int = 8,
    seed: int = 7,
    server_behaviour: ServerBehaviour | str = STOPS,
    horizon_factor: float = HORIZON_FACTOR,
    warm_up_s: float | None = None,
    brownout: str | Fault | None = None,
    in_order: bool = False,
    workers: int | None = None,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> LoadOnTraces:
    """Offer recorded runs as queries to one model server, and return what each alternative gets done.

        study = load_on_traces(traces, [0.3, 0.5], alternatives="A,B,C", queue_policy=["first_come", "drop_expired"])
        study                               # goodput at each load, and what abandoned work took of the slots
        dl.plots.goodput(study)

    No agent runs: a query is a recorded run whose model calls wait for slots. A client's own limit on its wait, and a
    server that is slower when it is busy, are not in it; `run_load` has both. What is not named here is as it has it.

    Args:
        traces: Runs that nothing cut, such as those of a control.
        decision_timeout_s: Seconds for each query; several are compared.
        alternatives: Letters or names such as "A,B:drain"; None for all that a trace can say of.
        slots: Model calls that the server works on at once, None for no limit; several are compared.
        queue_policy: Which waiting call is next, one of `POLICIES`; several are compared.
        server_behaviour: What the server does with a call whose client has left.
        brownout: When the server is slower, as "brownout=3@600-900", seconds from the first call; None for never.
        in_order: Whether query n is the nth run, rather than one that is drawn.
        executor: Computes the crowds instead, such as `distributed.Client.get_executor()` for a cluster of Dask.

    Raises: as `run_load`; ConfigurationError for a run that was cut, and an alternative that would have changed a path.
    """
    if isinstance(server_behaviour, str):
        server_behaviour = ServerBehaviour.named(server_behaviour)
    rules = rules_of(alternatives if alternatives is None or isinstance(alternatives, str) else tuple(alternatives))
    _require_same_path(traces, rules)
    design = TracedLoadDesign(
        recorded=Recorded(shapes_of(traces), in_order),
        arrivals=processes_of(arrivals),
        rules=rules,
        decision_timeouts_s=_several(decision_timeout_s),
        slots=_several(slots),
        queue_policies=_several(queue_policy),
        queries=queries,
        replicates=replicates,
        seed=seed,
        behaviour=server_behaviour,
        horizon_factor=horizon_factor,
        warm_up_s=warm_up_s,
        brownout=Fault.parse(brownout) if isinstance(brownout, str) else brownout,
    )
    crew = Workers.of(executor) if executor else workers_for(design.total_queries // _QUERIES_LIKE_A_RUN, workers)
    return study_of_crowds(
        list(design.cells()),
        run_traced_cell,
        TracedCellResult,
        crew,
        functools.partial(_study_of, design),
        queries=queries,
        out=out,
        progress=progress,
        stop=stop,
    )


def _several(value: Any) -> tuple[Any, ...]:
    return (value,) if value is None or isinstance(value, str | int | float) else tuple(value)


def _require_same_path(traces: Traces, rules: Sequence[NamedRule]) -> None:
    """Raise ConfigurationError for an alternative under which some of the runs would have taken another path."""
    adapts = traces.runs["adapts"].any()
    own = traces.runs["retries"].astype("str").str.fullmatch(r"sdk:[1-9][0-9]*")
    failing = set(traces.spans.loc[traces.spans["outcome"].astype("str") == "error", "trace_id"])
    retried = traces.runs.loc[own, "trace_id"].isin(failing).any()
    for named in rules:
        if named.rule.propagates and (adapts or retried):
            why = "adapt to the time left" if adapts else "retry otherwise with a deadline"
            raise ConfigurationError(
                f"{named.label}: some runs would {why}, so a trace cannot say what becomes of them: leave it out, or "
                "offer the load to the agent itself (run_load)"
            )


def _study_of(design: TracedLoadDesign, done: Sequence[TracedCellResult], spent: dict[str, Any]) -> LoadOnTraces:
    done = sorted(done, key=lambda result: result.cell_id)
    complete = len(done) * design.queries == design.total_queries
    manifest = manifest_of(design.design(), Settings(), study_id=design.study_id, complete=complete)
    manifest |= spent | {"events": sum(each.events for each in done)}
    queries = [each.queries.astype({"crowd": "str"}) for each in done]
    frame = pd.concat(queries, ignore_index=True).astype({"crowd": "category"})
    return LoadOnTraces(_with_arms([each.row for each in done]), frame, manifest)


def _with_arms(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows with a column `arm`: the alternative, and what else the study varies."""
    frame = pd.DataFrame(rows)
    varied = [name for name in _FACTORS if frame[name].nunique(dropna=False) > 1]
    places: dict[str, tuple[Any, ...]] = {}
    arms = []
    for row in frame.to_dict("records"):
        alternative, options = str(row["alternative"]), str(row["alternative_options"])
        arms.append(", ".join([label_of(alternative, options), *(_in_words(name, row[name]) for name in varied)]))
        # A missing number of slots, which is no limit, comes after every number.
        others = ((math.inf if pd.isna(row[name]) else row[name]) for name in varied)
        places[arms[-1]] = (*order_of(alternative, options), *others)
    return with_types(frame.assign(arm=arms), pd.Index(sorted(places, key=places.__getitem__)))


def _in_words(name: str, value: Any) -> str:
    if name == "slots":
        return "no limit of slots" if pd.isna(value) else count_of(int(value), "slot")
    return f"{value:g} s" if name == "decision_timeout_s" else str(value).replace("_", " ")
