"""`run_load`: queries that arrive at given rates, under every alternative; how a worker computes one crowd of them.

`load_options` has its arguments from a `[load]` table of a study file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.errors import ConfigurationError, SimulationStalled
from docmind_lab.core.progress import Interrupted, Progress, shows_progress
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Workers, workers_for
from docmind_lab.experiments.batch.cell_run import compute_cells
from docmind_lab.experiments.batch.cells import CellResult
from docmind_lab.experiments.comparison.comparison import require_propagation, simulated
from docmind_lab.experiments.comparison.own_graph import faults_in
from docmind_lab.experiments.load.crowd import run_crowd
from docmind_lab.experiments.load.load_design import Arrivals, Constant, LoadCell, LoadDesign, Poisson, processes_of
from docmind_lab.experiments.load.load_study import LoadStudy, QueryRows, rows_of_query
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.sweeps.study_design import explain
from docmind_lab.findings.study import prepare_folder
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import ProfileChoice, latency_profile
from docmind_lab.systems.workload_by_name import workload_kind
from docmind_lab.tables.manifest import MachineUse, manifest_of

# The queue under study is the provider's. A pool that ran out of connections would be a second one in front of it. The
# openai client's own default, which is made for many conversations at once, is 1,000.
_CONNECTIONS = 1_000


@shows_progress("queries", "offering")
def run_load(
    arrivals: Sequence[float | Arrivals],
    *,
    decision_timeout_s: float = 20.0,
    queries: int = 200,
    replicates: int = 8,
    seed: int = 7,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: ProfileChoice = "local_gpu",
    slots: int | None = None,
    callers: int | None = None,
    server: str = STOPS.name,
    retries: int | None = None,
    router_injection: bool | None = None,
    horizon_factor: float = HORIZON_FACTOR,
    warm_up_s: float | None = None,
    fault: str | Fault | Sequence[str | Fault] = (),
    workers: int | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> LoadStudy:
    """Run the same arrivals under every alternative, at each load, in virtual time.

        study = run_load([0.3, 0.5, 0.7], alternatives="A,B,C", slots=4)
        study                                   # goodput at each load, and what abandoned work took of the slots
        study.summary(counted_from="start")     # as a system counts that looks at its own clock only
        dl.plots.goodput(study)

    Faults, alternatives, profiles, the server, retries and settings are as `compare` takes them.

    Args:
        arrivals: Loads, each a rate in queries a second (Poisson) or a process: `Poisson`, `Constant`.
        decision_timeout_s: Seconds for each query, counted from when the system starts it.
        queries: Queries that arrive in each replicate.
        replicates: Repeats of each load and alternative, with other arrivals, questions and latencies; intervals are
            over them.
        seed: Draws arrivals, questions and latencies.
        slots: Model calls that the provider works on at once; None for the profile's own.
        callers: Queries that the system takes at once, the others wait; None for no limit.
        horizon_factor: Each query is watched for so many decision timeouts; what is left of it is cut then.
        warm_up_s: Queries that arrive earlier are not counted; None for the horizon. Neither are those of the last
            decision timeout.
        workers: Processes; None for one on each core, or none for a few queries.
        out: Folder for the tables.
        progress: Called with (done, all) queries as crowds are done. None draws a bar, from 2 s on.

    Interrupted, it returns the study of the finished crowds, which are in `out` by then, if there is one.
    Raises: ConfigurationError for a value that cannot be used; SimulationError for a crowd that ends its worker twice;
    SimulationStalled for one that left virtual time; KeyboardInterrupt when no crowd was finished.
    """
    settings = settings or Settings()
    provider = latency_profile(profile, "local_gpu")
    design = LoadDesign(
        arrivals=processes_of(arrivals),
        alternatives=parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries),
        profile=provider if slots is None else dataclasses.replace(provider, slots=slots),
        decision_timeout_s=decision_timeout_s,
        queries=queries,
        replicates=replicates,
        seed=seed,
        callers=callers,
        server_behaviour=ServerBehaviour.named(server),
        client_retries=retries,
        horizon_factor=horizon_factor,
        warm_up_s=warm_up_s,
        router_injection=settings.agents.enable_router_injection if router_injection is None else router_injection,
        faults=faults_in(workload_kind(LoadDesign.workload), fault, is_own=False),
    )
    require_propagation(design.alternatives, settings)
    if name := live_endpoint_of(settings):
        raise ConfigurationError(f"{name}: load is offered to simulated services; leave it out")
    settings = settings.replaced(agents={"enable_router_injection": design.router_injection})
    return offer_load(design, settings, workers_for(design.total_queries, workers), out=out, progress=progress)


# ---- a `[load]` table of a study file


def load_options(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `run_load` from a `[load]` table: `run_load(**load_options(table), out=…)`.

    Its fields are the keywords of `run_load`, and in place of `arrivals` two of its own:

        [load]
        arrivals = "constant"               # left out, "poisson"
        rates_per_s = [0.3, 0.5, 0.7]       # one load each
        slots = 4

    Raises: ConfigurationError naming every field that does not fit, and how.
    """
    try:
        # As JSON types: a TOML array is a list, and a whole number may stand for a float.
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
        options = _LoadTable.model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise ConfigurationError(explain(error, _LoadTable, "load")) from error
    process = Constant if options.get("arrivals") == "constant" else Poisson
    return options | {"arrivals": tuple(process(rate_per_s) for rate_per_s in options.pop("rates_per_s"))}


# Keywords that are no fields of a table: who computes, and where the results go.
_BESIDE: Final = {"workers", "settings", "out", "progress"}
_IN_TOML: Final[dict[str, Any]] = {
    "arrivals": (Literal["poisson", "constant"], "poisson"),
    "rates_per_s": (tuple[float, ...], ...),
    "alternatives": (tuple[str, ...] | None, None),
    "profile": (str, ""),
    "fault": (tuple[str, ...], ()),
}


def _table_of_run_load() -> type[BaseModel]:
    """Return the model of the table: the keywords of `run_load`, with the types that they have in TOML."""
    types = get_type_hints(run_load)
    keywords = [each for each in inspect.signature(run_load).parameters.values() if each.name not in _BESIDE]
    fields: dict[str, Any] = {each.name: (types[each.name], each.default) for each in keywords} | _IN_TOML
    strict = ConfigDict(extra="forbid", frozen=True, strict=True)
    return create_model("LoadTable", __config__=strict, **fields)


_LoadTable: Final = _table_of_run_load()


# ---- its crowds


def offer_load(
    design: LoadDesign,
    settings: Settings,
    crew: Workers,
    *,
    out: str | os.PathLike[str] | None,
    progress: Progress | None,
) -> LoadStudy:
    """Compute the crowds of a design on workers, and return their study.

    Interrupted, it returns the study of the finished crowds.
    Raises: Interrupted without one; the error of a crowd that failed twice.
    """
    folder = None if out is None else prepare_folder(out)
    cells = list(design.cells())
    compute = functools.partial(run_load_cell, design, settings)
    done: list[CellResult[QueryRows]] = []
    interrupted = ""
    use = MachineUse()
    try:
        # How long a crowd takes depends on the machine: none is given up for being slow.
        with crew, contextlib.closing(compute_cells(cells, compute, crew, patience_s=math.inf)) as some:
            for result in some:
                if result.error is not None:
                    raise result.error
                done.append(result)
                use.add_workers(result.cpu_s)
                if progress is not None:
                    progress(len(done) * design.queries, design.total_queries)
    except KeyboardInterrupt:
        if not done:
            raise Interrupted("no crowd was finished") from None
        interrupted = f"{len(done)} of {len(cells)} crowds"
    complete = len(done) == len(cells)
    manifest = manifest_of(design.design(), settings, study_id=design.study_id, complete=complete)
    manifest |= {"interrupted": interrupted} if interrupted else {}
    spent = {"cpu_s": sum(each.cpu_s for each in done), "machine_use": use.to_dict(len(done) * design.queries)}
    study = LoadStudy.of((query for each in done for query in each.measured), manifest | spent)
    if folder is not None:
        study.save(folder)
    return study


# ---- a crowd, in a worker


def run_load_cell(design: LoadDesign, settings: Settings, cell: LoadCell, attempt: int = 1) -> CellResult[QueryRows]:
    """Run a crowd and return its rows; a crowd that left virtual time has none, and spoils its process.

    attempt: counts, for executors that take the same call for the same result. Raises: what a run raises.
    """
    queries = design.queries_of(cell)
    window_from_s, window_until_s = design.window_s(queries[-1].scheduled_at_s)
    rows_of = functools.partial(
        rows_of_query,
        arrivals=cell.arrivals.kind,
        offered_per_s=cell.arrivals.rate_per_s,
        slots=design.profile.slots,
        callers=design.callers,
        replicate=cell.replicate,
        window_from_s=window_from_s,
        window_until_s=window_until_s,
    )
    system = simulated(design, settings)
    built = system.built_once(_CONNECTIONS)
    door = built.door(system.options)
    started_s = time.process_time()
    try:
        rows = run_crowd(queries, built.workload, door, keep=rows_of, callers=design.callers)
    except SimulationStalled as error:
        return CellResult(cell.id, stalled=f"of crowd {cell.id}: {error}")
    return CellResult(cell.id, rows, cpu_s=time.process_time() - started_s)
