"""A `[load]` table of a study file, checked.

    [load]
    arrivals = "poisson"                # or "constant", "trace"
    rates_per_s = [0.3, 0.5, 0.7]       # of poisson and constant
    queries = 200
    replicates = 8
    slots = 4                           # of the provider; left out, the profile's own
    callers = 8                         # queries at once; left out, no limit
    warm_up_s = 100.0                   # left out, the horizon
    fault = ["brownout=3@60-120"]       # of the services; left out, none
    clock = "wall"                      # over sockets; left out, virtual time

What is not said of load (decision timeout, alternatives, profile, …) may stand in it too, by the names of `run_load`.

With `traces = "traces.jsonl"` the queries are recorded runs, and the other fields are those of `load_on_traces`:

    [load]
    traces = "traces.jsonl"             # or anything that `docmind-lab traces import` reads
    rates_per_s = [0.3, 0.5]
    queries = 10_000
    decision_timeout_s = [20, 40]       # one or several; slots and queue_policy too
    queue_policy = ["first_come", "deadline_first"]
    server_behaviour = "goes-on"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from docmind_lab.analysis.traces.importers import import_traces
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import STOPS
from docmind_lab.experiments.load.arrivals import Arrivals, Constant, Poisson, Trace
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.experiments.sweeps.design import explain


class ArrivalsTable(BaseModel):
    """The fields of a `[load]` table that say when queries come.

    Arrivals "trace" have two of their own: `trace_instants_s`, what was recorded, and `trace_speeds`, how many times as
    fast it is played.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    arrivals: Literal["poisson", "constant", "trace"] = "poisson"
    rates_per_s: tuple[float, ...] = ()
    trace_instants_s: tuple[float, ...] = ()
    trace_speeds: tuple[float, ...] = (1.0,)

    @model_validator(mode="after")
    def _one_kind_of_arrivals(self) -> Self:
        given, other = (
            ("trace_instants_s", "rates_per_s") if self.arrivals == "trace" else ("rates_per_s", "trace_instants_s")
        )
        if not getattr(self, given):
            raise ValueError(f"arrivals = {self.arrivals!r} needs {given}")
        if getattr(self, other):
            raise ValueError(f"arrivals = {self.arrivals!r} has no use for {other}; leave it out")
        return self

    def processes(self) -> tuple[Arrivals, ...]:
        """Return one arrival process for each load. Raises: ConfigurationError for an unusable rate or trace."""
        if self.arrivals == "trace":
            trace = Trace(self.trace_instants_s)
            return tuple(trace.faster(speed) for speed in self.trace_speeds)
        return tuple((Poisson if self.arrivals == "poisson" else Constant)(rate) for rate in self.rates_per_s)


class LoadTable(ArrivalsTable):
    """The fields of a `[load]` table of an agent, with the names and units of `run_load`."""

    decision_timeout_s: float = 20.0
    queries: int = 200
    replicates: int = 8
    seed: int = 7
    alternatives: tuple[str, ...] | None = None
    profile: str = "local_gpu"
    slots: int | None = None
    callers: int | None = None
    stops_on_disconnect: bool = True
    retries: int | None = None
    router_injection: bool | None = None
    horizon_factor: float = HORIZON_FACTOR
    warm_up_s: float | None = None
    fault: tuple[str, ...] = ()
    clock: Literal["virtual", "wall"] = "virtual"


class TracedLoadTable(ArrivalsTable):
    """The fields of a `[load]` table of recorded runs, with the names and units of `load_on_traces`."""

    traces: str
    decision_timeout_s: float | tuple[float, ...] = 20.0
    queries: int = 10_000
    replicates: int = 8
    seed: int = 7
    alternatives: tuple[str, ...] | None = None
    slots: int | tuple[int, ...] | None = 4
    queue_policy: str | tuple[str, ...] = "first_come"
    server_behaviour: str = STOPS.name
    horizon_factor: float = HORIZON_FACTOR
    warm_up_s: float | None = None
    brownout: str | None = None
    in_order: bool = False


def load_options(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `run_load` from a `[load]` table: `run_load(**load_options(table), out=…)`.

    For a table with `traces` they are those of `load_on_traces`, and the runs are read.

    Raises: ConfigurationError naming every field that does not fit, and how.
    """
    model = TracedLoadTable if "traces" in table else LoadTable
    try:
        # As JSON types: a TOML array is a list, and a whole number may stand for a float.
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
        checked = model.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(explain(error, model, "load")) from error
    options = {"arrivals": checked.processes(), **checked.model_dump(exclude={*ArrivalsTable.model_fields, "traces"})}
    return options | ({"traces": import_traces(checked.traces)} if isinstance(checked, TracedLoadTable) else {})
