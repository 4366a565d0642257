"""The design of a study: factors × levels × repeats, from Python or TOML, and the resulting combinations.

    StudyDesign.of({"factors": {"alternatives": ["A", "B"], "decision_timeout_s": [5, 10]}, "repeats": 20})
    StudyDesign.read("study.toml")

    seed = 7                            # keys questions, latencies, faults; each repeat has a seed of its own
    repeats = 20                        # questions asked in each combination

    [system]                            # what is under the deadline, as `compare` takes it
    graph = "my_app:graph"
    inputs = "inputs.jsonl"

    [world]                             # what it meets
    latencies = "typical"

    [factors]                           # a level, or a list of them
    alternatives = ["unguarded", "A", "B"]
    decision_timeout_s = [5, 10, 20]
    faults = ["none", "hang:planner"]

All combinations of one repeat have one seed, so they meet the same question, latencies and faults (common random
numbers).
"""

from __future__ import annotations

import functools
import json
import os
import tomllib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.comparison.comparison import RUN_SEEDS, alternatives_json, short_label, study_id_of
from docmind_lab.experiments.sweeps.factors import FIELDS, StudyFields, alternatives_of, profile_of
from docmind_lab.experiments.sweeps.planning import SweepPlan, plan_of
from docmind_lab.experiments.sweeps.settled import SETTLED_FACTORS, fields_in, settled_by_recording
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE
from docmind_lab.systems.base.workload_kind import shown_name

MOST_RUNS = 1_000_000


class StudyDesign(StudyFields):
    """Everything that determines a study. Raises: ConfigurationError naming the field, from `of` and `read`.

    `StudyFields` says what its fields are.
    """

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Build a design from a mapping of values and check it as a whole.

        Raises: ConfigurationError naming each field that does not fit, with what does.
        """
        if not isinstance(values.get("factors", {}), Mapping):
            raise ConfigurationError(f"factors: a table with the levels of each, not {values['factors']!r}")
        try:
            design = cls.model_validate(fields_in(values))
            if design.replay is not None:
                design = design.model_copy(update=settled_by_recording(design))
        except ValidationError as error:
            raise ConfigurationError(explain(error, cls)) from error
        at_most = design.factors.combinations * design.repeats
        if at_most > MOST_RUNS:
            raise ConfigurationError(
                f"repeats: the study would have up to {at_most:,} runs, above {MOST_RUNS:,}: leave out levels, or "
                "repeat less"
            )
        _ = design.plan  # what cannot be run is said here, not when it is run
        return design

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a design from a TOML file. Raises: ConfigurationError naming the file and what is wrong in it."""
        values = read_study_file(path)
        try:
            return cls.of(values)
        except ConfigurationError as error:
            raise ConfigurationError(f"study file {path}: {error}") from error

    @functools.cached_property
    def plan(self) -> SweepPlan:
        """The combinations of the design, and those that are impossible."""
        return plan_of(self)

    @property
    def total_runs(self) -> int:
        """Number of runs of all combinations together."""
        return len(self.plan.combinations) * self.repeats

    def to_dict(self) -> dict[str, Any]:
        """Return everything that determines the runs, as JSON; equal designs give equal JSON."""
        # Only where there are some: a study without second budgets is the one that it was before there were any.
        unsaid = {name for name in FIELDS if getattr(self.factors, name) == (NO_BUDGETS,)}
        unsaid |= {"adoption"} if self.factors.adoption == (0.0,) else set()
        simulation = self.simulation
        changed = {name: simulation[name] for name in ("cpu_charge", "model_variation") if simulation[name]}
        if simulation["model_under_pressure"] != DEFAULT_UNDER_PRESSURE:
            changed["model_under_pressure"] = simulation["model_under_pressure"]
        changed |= {} if self.price is None else {"price": self.price}
        values = self.model_dump(mode="python", exclude={"factors", "system", "world", "price"}) | changed
        factors = self.factors.model_dump(mode="python", exclude={"alternative", "latency_profile", *unsaid})
        factors["alternative"] = alternatives_json(alternatives_of(self.factors))
        if self.replay is None:
            factors["latency_profile"] = [profile_of(item).to_dict() for item in self.factors.latency_profile]
        else:
            # By its name: the folder may lie elsewhere tomorrow. What it settles, its own manifest has.
            values["replay"] = self.recording.id
            factors = {name: levels for name, levels in factors.items() if name not in SETTLED_FACTORS}
        values |= self.library.design() | {"run_seeds": RUN_SEEDS}
        if "workload" in factors:
            factors["workload"] = [shown_name(name) for name in self.workloads]
        jsonable: dict[str, Any] = json.loads(json.dumps({**values, "factors": factors}))
        return jsonable

    def __repr__(self) -> str:
        title = f"StudyDesign {self.name!r}, seed {self.seed}"
        try:
            runs = f"{len(self.plan.combinations)} combinations × {self.repeats} repeats = {self.total_runs:,} runs"
            named = [short_label(item) for item in alternatives_of(self.factors)]
        except ConfigurationError as error:
            # A name that nothing has is found when the runs are planned, and to look at a design must not raise.
            return f"{title}: {error}"
        profiles = [profile_of(item).level for item in self.factors.latency_profile]
        workloads = [shown_name(name) for name in self.workloads]
        levels = {**dict(self.factors), "alternative": named, "latency_profile": profiles, "workload": workloads}
        is_named = self.own is not None or self.replay is not None
        shown = self.factors.model_fields_set | ({"workload"} if is_named else set())
        shown |= {name for name, values in levels.items() if len(values) > 1}
        lines = [f"  {name}: {', '.join(map(_level, values))}" for name, values in levels.items() if name in shown]
        lines += [] if self.replay is None else [f"  replay: {self.replay}"]
        lines += [] if self.price is None else [f"  price: {self.price} for a million tokens read and written"]
        return "\n".join([f"{title}: {runs}", *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def study_id(self) -> str:
        """Id derived from the design: equal designs have equal ids."""
        design = self.to_dict()
        if "workload" in design["factors"]:
            # The whole names: files of one name in two folders are two.
            design["factors"]["workload"] = list(self.workloads)
        return study_id_of(self.name, design)


def _level(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_study_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of the file. Raises: ConfigurationError naming the file and what is wrong with it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"study file {path} cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"study file {path} is not TOML: {error}") from error


def explain(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """Explain each field that does not fit the model, in one line each. prefix: the table that holds the fields."""
    lines = []
    for problem in error.errors():
        names, inner = _field(problem["loc"], model)
        field = ".".join(([prefix] if prefix else []) + names)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{field}: there is no such field; there are {', '.join(sorted(inner.model_fields))}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{field}: {message}, not {problem['input']!r}" if names else f"{field}: {message}")
    return "; ".join(dict.fromkeys(lines))


def _field(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return the names that lead to a field, and the model it belongs to, without kinds and indices of levels."""
    names: list[str] = []
    for part in map(str, location):
        names.append(part)
        known = model.model_fields.get(part)
        if known is None or not (isinstance(known.annotation, type) and issubclass(known.annotation, BaseModel)):
            break
        model = known.annotation
    return names, model
