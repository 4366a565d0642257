"""`load_on_traces`: recorded runs that arrive as queries at given rates, under every alternative."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.core.alternative_catalogue import label_of, order_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.core.text import count_of
from docmind_lab.experiments.batch import workers_for
from docmind_lab.experiments.batch.cell_run import Progress
from docmind_lab.experiments.load.arrivals import Arrivals, processes_of
from docmind_lab.experiments.load.load_design import LoadCell, TracedLoadDesign
from docmind_lab.experiments.load.load_run import LoadCellResult, offer_load
from docmind_lab.experiments.load.load_study import LoadOnTraces
from docmind_lab.experiments.load.measures import crowd_measures, with_types
from docmind_lab.experiments.load.on_traces.shapes import Recorded, shapes_of
from docmind_lab.experiments.load.on_traces.traced_crowd import Crowd
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.findings.what_if.outcomes import ENDINGS
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.traces.rules import NamedRule, rules_of
from docmind_lab.tables.traces.trace_tables import Traces

# One run of a trace costs about a thousandth of a run of the whole stack.
_QUERIES_LIKE_A_RUN: Final = 1_000
# In the name of an arm where the study has several of them.
_FACTORS: Final = ("decision_timeout_s", "slots", "queue_policy")


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
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
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
    crew = workers_for(design.total_queries // _QUERIES_LIKE_A_RUN, workers)
    compute = functools.partial(run_traced_cell, design)
    return offer_load(design, Settings(), compute, crew, _study_of, out=out, progress=progress)


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


def run_traced_cell(design: TracedLoadDesign, cell: LoadCell[NamedRule], attempt: int = 1) -> LoadCellResult:
    """Run a crowd and return its measures. attempt: counts, as for `run_cell`."""
    begun_s = time.process_time()
    instants_s = design.instants_of(cell)
    shapes = (design.recorded.of_query(number, cell.seed) for number in range(len(instants_s)))
    rows = Crowd(design, cell).run(instants_s, shapes)
    scheduled_at_s, returned_at_s = np.asarray(instants_s), np.asarray(rows.returned_at_s)
    queries = _queries(cell, scheduled_at_s, returned_at_s, np.asarray(rows.outcome, dtype=np.int8))
    window_from_s, window_until_s = design.window_s(cell.decision_timeout_s, instants_s[-1])
    asked = queries.assign(
        late_s=0.0,
        slots=pd.array([cell.slots] * len(queries), dtype="Int64"),
        window_from_s=window_from_s,
        window_until_s=window_until_s,
    )
    # fmin: a caller that was not back has not left before the deadline.
    wanted_until_s = np.fmin(scheduled_at_s + cell.decision_timeout_s, returned_at_s)
    servings = pd.DataFrame(
        {
            "received_at_s": np.asarray(rows.received_at_s),
            "served_from_s": np.asarray(rows.served_from_s),
            "left_at_s": np.asarray(rows.left_at_s),
            "wanted_until_s": wanted_until_s[np.asarray(rows.request_query, dtype=np.int64)],
        }
    )
    varied = {
        "alternative": cell.arm.alternative,
        "alternative_options": cell.arm.options,
        "decision_timeout_s": cell.decision_timeout_s,
        "queue_policy": cell.queue_policy,
        "arrivals": cell.arrivals.kind,
        "offered_per_s": cell.arrivals.rate_per_s,
        "replicate": cell.replicate,
        "slots": cell.slots,
        "callers": None,
    }
    measures = varied | crowd_measures(asked, servings)
    cpu_s = time.process_time() - begun_s
    return LoadCellResult(cell.id, queries, measures=measures, events=rows.events, cpu_s=cpu_s)


def _queries(
    cell: LoadCell[NamedRule], scheduled_at_s: Floats, returned_at_s: Floats, outcome: NDArray[np.int8]
) -> pd.DataFrame:
    """Return the rows of a crowd in the table `queries` of a study."""
    answered = outcome == ENDINGS.index("answered")
    return pd.DataFrame(
        {
            "scheduled_at_s": scheduled_at_s,
            "response_s": returned_at_s - scheduled_at_s,
            "in_time": answered & (returned_at_s <= scheduled_at_s + cell.decision_timeout_s),
            "outcome": pd.Categorical.from_codes(outcome, categories=pd.Index(ENDINGS)),
            "offered_per_s": cell.arrivals.rate_per_s,
            "replicate": np.int32(cell.replicate),
            "crowd": pd.Categorical([_crowd_name(cell)]).take([0] * len(outcome)),
        }
    )


def _crowd_name(cell: LoadCell[NamedRule]) -> str:
    """Return the name of a crowd in the table `queries`: the levels that it has."""
    load = (cell.arrivals.kind, f"{cell.arrivals.rate_per_s:g}", cell.replicate)
    parts = (*load, f"{cell.decision_timeout_s:g}", cell.slots, cell.queue_policy, cell.arm.label)
    return " ".join(map(str, parts))


def _study_of(done: Sequence[LoadCellResult], manifest: Mapping[str, Any]) -> LoadOnTraces:
    done = sorted(done, key=lambda result: str(result.queries["crowd"].iloc[0]))
    queries = pd.concat([each.queries.astype({"crowd": "str"}) for each in done], ignore_index=True)
    counted = {**manifest, "events": sum(each.events for each in done)}
    return LoadOnTraces(_with_arms([each.measures for each in done]), queries.astype({"crowd": "category"}), counted)


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
