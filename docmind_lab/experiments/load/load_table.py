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

What is not said of load (decision timeout, alternatives, profile, …) may stand in it too, by the names of `run_load`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.load.arrivals import Arrivals, Constant, Poisson, Trace
from docmind_lab.experiments.load.load_run import run_load
from docmind_lab.experiments.sweeps.study_design import explain


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

    def processes(self) -> tuple[Arrivals, ...]:
        """Return one arrival process for each load.

        Raises: ConfigurationError for an unusable rate or trace, and for fields of another kind of arrivals.
        """
        kind = f"load: arrivals = {self.arrivals!r}"
        needed, other = "rates_per_s", "trace_instants_s"
        if self.arrivals == "trace":
            needed, other = other, needed
        if not getattr(self, needed):
            raise ConfigurationError(f"{kind} needs {needed}")
        if getattr(self, other):
            raise ConfigurationError(f"{kind} has no use for {other}; leave it out")
        if self.arrivals == "trace":
            trace = Trace(self.trace_instants_s)
            return tuple(trace.faster(speed) for speed in self.trace_speeds)
        return tuple((Poisson if self.arrivals == "poisson" else Constant)(rate) for rate in self.rates_per_s)


def _table_of_run_load() -> type[ArrivalsTable]:
    """Return the model of the table: the keywords of `run_load`, with the types that they have in TOML."""
    types = get_type_hints(run_load) | {
        "alternatives": tuple[str, ...] | None,
        "profile": str,
        "fault": tuple[str, ...],
    }
    keywords = [each for each in inspect.signature(run_load).parameters.values() if each.name not in _BESIDE]
    fields = {each.name: (types[each.name], each.default) for each in keywords}
    return create_model("LoadTable", __base__=ArrivalsTable, **fields)  # type: ignore[call-overload,no-any-return]


# Keywords that are no fields of a table: what it says otherwise, who computes, and where the results go.
_BESIDE: Final = {"arrivals", "workers", "settings", "out", "progress"}
LoadTable: Final = _table_of_run_load()


def load_options(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `run_load` from a `[load]` table: `run_load(**load_options(table), out=…)`.

    Raises: ConfigurationError naming every field that does not fit, and how.
    """
    try:
        # As JSON types: a TOML array is a list, and a whole number may stand for a float.
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
        checked = LoadTable.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(explain(error, LoadTable, "load")) from error
    options = checked.model_dump(exclude_unset=True, exclude={*ArrivalsTable.model_fields})
    return options | {"arrivals": checked.processes()}
