"""The comparison that replays a recording: same questions, seeds and conditions, any alternatives and budget.

Where a recording holds no texts, it is rehearsed whether a user's graph runs on simulated ones.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.alternative_catalogue import CATALOGUE
from docmind_lab.core.budgets import Budget
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import RECORDED
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.comparison.comparison import DEFAULT_SEED, RUN_SEEDS, Alternatives, Comparison, simulated
from docmind_lab.experiments.comparison.documents import Documents, documents_in
from docmind_lab.experiments.measurement.measured_run import RunOrder
from docmind_lab.experiments.recordings.replay import ReplayOptions
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import OWN_PREFIX
from docmind_lab.systems.own import OwnGraph
from docmind_lab.systems.system_catalogue import DocMind, System
from docmind_lab.systems.workload_by_name import WORKLOADS
from docmind_lab.tables.traces.importers.recordings import Recording

# Inputs that lead through other nodes are rare beside the first ones, and each costs a run.
_MOST_INPUTS = 5

_rehearsed: set[tuple[str, str, str]] = set()
_BUDGET: Final = TypeAdapter(Budget)


def without_live_endpoints(settings: Settings) -> Settings:
    """Return the settings without live endpoints, since a replay calls none."""
    return settings.replaced(llm={"base_url": None}, database={"qdrant_url": None})


def replayed_comparison(
    recording: Recording,
    system: System,
    settings: Settings,
    *,
    own: OwnGraph | None = None,
    decision_timeout_s: float | None = None,
    alternatives: Alternatives = None,
    runs: int | None = None,
    seed: int = DEFAULT_SEED,
) -> Comparison:
    """Return the comparison of a replay: what the call says, and otherwise what was recorded.

    own: the names that a user's graph and its inputs have in this process. The other arguments are those of `compare`.
    Raises: ConfigurationError for what the recording has settled and was given all the same, for alternatives that
    cannot be told from the recording, and for other inputs than were recorded.
    """
    design = recording.design
    _require_not_settled(design, system, own, seed)
    documents = _documents(design, system) if own is None else Documents(own.corpus)
    retries = getattr(system, "retries", None)
    recorded = (_alternative(item["name"], item["options"], settings) for item in design["alternatives"])
    wanted_alternatives = tuple(recorded) if alternatives is None else alternatives
    budget = _BUDGET.validate_python(design.get("budget", {})) if system.budget is None else system.budget
    timeouts_s = (decision_timeout_s, budget.time_s, design["decision_timeout_s"])
    return Comparison(
        decision_timeout_s=next(timeout_s for timeout_s in timeouts_s if timeout_s is not None),
        runs=design["runs"] if runs is None else runs,
        seed=design["seed"],
        alternatives=parse_alternatives(wanted_alternatives, retries, budgeted_retries=settings.agents.max_retries),
        # Its tables are not used, and how its calls are slow together is in the recorded times; its name stands in the
        # replay's tables.
        profile=dataclasses.replace(
            LatencyProfile.from_dict(design["latency_profile"]),
            name=RECORDED,
            correlation=0.0,
            slowdown=0.0,
            of_roles={},
        ),
        faults=() if design["fault"] == "none" else tuple(Fault.parse(text) for text in design["fault"].split("+")),
        server_behaviour=_recorded_behaviour(design),
        client_retries=design["client_retries"] if retries is None else retries,
        horizon_factor=design["horizon_factor"],
        side_by_side=design["side_by_side"],
        router_injection=design["router_injection"],
        clock="virtual",
        documents=documents,
        node_mode=design["node_mode"],
        workload=recorded_workload(design, system) if own is None else own.workload,
        replay=recording.id,
        budget=budget,
        enforced=getattr(system, "enforced", False),
    )


def _recorded_behaviour(design: Mapping[str, Any]) -> ServerBehaviour:
    if "server_behaviour" in design:
        return ServerBehaviour.of(design["server_behaviour"], "of the recording")
    return STOPS if design["stops_on_disconnect"] else GOES_ON


def _require_not_settled(design: Mapping[str, Any], system: System, own: OwnGraph | None, seed: int) -> None:
    """Return if the system sets nothing that the recording has fixed."""
    if design.get("run_seeds") != RUN_SEEDS:
        raise ConfigurationError(
            "replay: this recording was made by an older version, which drew seeds in another way; record again"
        )
    settled = {"router_injection", "adoption"}
    if own is None and not has_own_documents(design):
        # A recording holds neither documents nor questions: the user's are named again.
        settled |= {"documents", "questions"}
    for field in dataclasses.fields(system):
        if field.name in settled and getattr(system, field.name) != field.default:
            raise ConfigurationError(f"{field.name}: the recording has settled it; leave it out of a replay")
    if own is None and system != DocMind() and system.kind != design["workload"]:
        raise ConfigurationError("system: the recording has settled it; leave it out of a replay")
    if seed not in (DEFAULT_SEED, design["seed"]):
        raise ConfigurationError(f"seed: the recording has seed {design['seed']}; leave it out of a replay")
    if own is not None and own.corpus != design["corpus"]:
        raise ConfigurationError("inputs: they are not those of the recording; pass the same file or list")


def has_own_documents(design: Mapping[str, Any]) -> bool:
    """Whether the recording was made with the user's documents or questions, which it does not contain."""
    return "library" in design or "questions" in design


def _documents(design: Mapping[str, Any], system: System) -> Documents:
    """Return the recorded documents and questions. Raises: ConfigurationError if the user now names different ones."""
    if not has_own_documents(design):
        return Documents(str(design["corpus"]))
    documents = documents_in(system)
    facts = documents.design()
    for name, parts in (("documents", ("corpus", "library")), ("questions", ("questions",))):
        if any(facts.get(part) != design.get(part) for part in parts):
            raise ConfigurationError(
                f"{name}: they are not those of the recording; name the documents and questions of your own that were "
                "recorded, unchanged"
            )
    return documents


def _alternative(name: str, options: Mapping[str, Any], settings: Settings) -> Alternative:
    variants = CATALOGUE[name].variants if name in CATALOGUE else ()
    labels = [name, *(f"{name}:{variant}" for variant in variants)]
    for label in labels:
        for retries in (settings.agents.max_retries, options.get("retries", 1)):
            (alternative,) = parse_alternatives([label], budgeted_retries=retries)
            if json.loads(options_json(alternative)) == options:
                return alternative
    raise ConfigurationError(
        f"alternatives: {name} was recorded with options {dict(options)} that have no name; pass the instance itself"
    )


def recorded_workload(design: Mapping[str, Any], system: System) -> str:
    """Return the recorded workload: one of the lab's, or another that the caller has also named.

    A recording is data, so no module is imported because it is named there.
    Raises: ConfigurationError for a workload that is not one of the lab's and was not named.
    """
    recorded = str(design["workload"])
    if recorded in WORKLOADS or recorded == system.kind:
        return recorded
    if recorded.startswith(OWN_PREFIX):
        raise ConfigurationError(
            f"graph: the recording is of {recorded.removeprefix(OWN_PREFIX)!r}, a graph of your own; name it and its "
            "inputs again (dl.graph(graph, inputs); --graph, --inputs)"
        )
    raise ConfigurationError(
        f"system: the recording is of {recorded!r}, and no module is imported because a recording names it; name it "
        f"yourself if you trust it (dl.workload(kind={recorded!r}); --system {recorded})"
    )


def simulated_name(workload: str) -> str:
    """Return the workload's name without `services=own`: in a replay a user's graph calls no endpoint."""
    name, mark, text = workload.partition("?")
    options = [option for option in text.split("&") if option and not option.startswith("services=")]
    return f"{name}{mark}{'&'.join(options)}" if options else name


def replaying(system: Simulated, folder: Path) -> Simulated:
    """The system over services that answer from the recording in the folder."""
    shared = {item.name: getattr(system.options, item.name) for item in dataclasses.fields(ServiceOptions)}
    place = {"folder": str(folder.resolve()), "model": system.settings.llm.model}
    return dataclasses.replace(system, options=ReplayOptions(**shared | place | {"faults": ()}))


def require_replayable(comparison: Comparison, recording: Recording, folder: Path, settings: Settings) -> None:
    """Return if a user's graph does not fail on simulated texts, by a run without a deadline for each of some inputs.

    A graph that takes its model's text apart by itself finds no structure in a simulated one. The lab's own systems,
    and recordings with texts, are not looked at.
    Raises: ConfigurationError for a run that fails where the recorded one did not.
    """
    if not comparison.workload.startswith(OWN_PREFIX) or recording.manifest.get("has_text"):
        return
    key = (recording.id, comparison.workload, comparison.documents.name)
    if key in _rehearsed:
        return
    alone = dataclasses.replace(
        comparison, alternatives=parse_alternatives("unguarded"), budget=Budget(), enforced=False
    )
    system = replaying(simulated(alone, settings), folder)
    with contextlib.closing(system.build()) as built:
        for order in _rehearsals(alone, recording):
            run = system.measure(built, order).run
            if run.outcome == "failed":
                error = f"{run.error_type} in node {run.error_node}" if run.error_node else run.error_type
                raise ConfigurationError(
                    f"replay: {folder} has no texts, and on simulated ones the graph fails with {error}, "
                    "where the recorded run did not; record again with the texts: record_text=True (--record-text)"
                )
    _rehearsed.add(key)


def _rehearsals(comparison: Comparison, recording: Recording) -> Iterator[RunOrder]:
    """Yield a run for each input of which a recorded run did not fail."""
    sound = {(run.seed, run.question_id) for run in recording.runs if run.outcome != "failed"}
    inputs: set[str] = set()
    for order in comparison.orders():
        name = order.question.id
        if (order.facts.seed, name) in sound and name not in inputs and len(inputs) < _MOST_INPUTS:
            inputs.add(name)
            yield order
