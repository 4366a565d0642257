"""The comparison that replays a recording: same questions, seeds and conditions, any alternatives and budget."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.catalogue import CATALOGUE
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import RECORDED
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import RUN_SEEDS, Comparison
from docmind_lab.experiments.comparison.documents import Documents, documents_of
from docmind_lab.experiments.comparison.request import DEFAULT_SEED, DEFAULT_WORKLOAD, CompareRequest
from docmind_lab.experiments.recordings.recording import Recording
from docmind_lab.services.faults import Fault
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE
from docmind_lab.workloads.kinds import OWN_PREFIX, WORKLOADS


def without_live_endpoints(settings: Settings) -> Settings:
    """Return the settings without live endpoints, since a replay calls none."""
    return settings.replaced(llm={"base_url": None}, database={"qdrant_url": None})


def replayed_comparison(
    recording: Recording, request: CompareRequest, clock: ClockName, settings: Settings
) -> Comparison:
    """Return the comparison of a replay: what the request says, and otherwise what was recorded.

    request: for a user's graph, by the names that it and its inputs have in this process.
    Raises: ConfigurationError for what the recording has settled and was given all the same, for alternatives that
    cannot be told from the recording, and for other inputs than were recorded.
    """
    design = recording.design
    _require_not_settled(design, request, clock)
    documents = _documents(design, request)
    chosen = _recorded_alternatives(design, settings) if request.alternatives is None else request.alternatives
    client_retries = design["client_retries"]
    budget = _recorded_budget(design) if request.budget is None else request.budget
    timeouts_s = (request.decision_timeout_s, budget.time_s, design["decision_timeout_s"])
    return Comparison(
        decision_timeout_s=next(timeout_s for timeout_s in timeouts_s if timeout_s is not None),
        runs=design["runs"] if request.runs is None else request.runs,
        seed=design["seed"],
        alternatives=parse_alternatives(chosen, request.retries, budgeted_retries=settings.agents.max_retries),
        # Its tables are not used; the name stands in the replay's.
        # How its calls are slow together is in the recorded times.
        profile=dataclasses.replace(
            LatencyProfile.from_dict(design["latency_profile"]),
            name=RECORDED,
            correlation=0.0,
            brownout=0.0,
            slowdown=0.0,
            of_roles={},
        ),
        faults=() if design["fault"] == "none" else tuple(Fault.parse(text) for text in design["fault"].split("+")),
        stops_on_disconnect=design["stops_on_disconnect"],
        client_retries=client_retries if request.retries is None else request.retries,
        horizon_factor=design["horizon_factor"],
        side_by_side=design["side_by_side"],
        router_injection=design["router_injection"],
        clock="virtual",
        documents=documents,
        node_mode=design["node_mode"],
        workload=recorded_workload(design, request.workload) if not request.names_own_graph else request.workload,
        replay=recording.id,
        budget=budget,
        enforced=request.enforced,
    )


def _recorded_budget(design: Mapping[str, Any]) -> Budget:
    said = dict(design.get("budget", {}))
    price = said.pop("price", None)
    return Budget(**said, price=None if price is None else Price(**price))


def _require_not_settled(design: Mapping[str, Any], request: CompareRequest, clock: ClockName) -> None:
    """Return if the request sets nothing that the recording has fixed."""
    if design.get("run_seeds") != RUN_SEEDS:
        raise ConfigurationError(
            "replay: this recording was made by an older version, which drew seeds in another way; record again"
        )
    settled = {"profile": request.profile is not None, "fault": bool(request.fault), "clock": clock != "virtual"}
    settled |= {
        "stops_on_disconnect": not request.stops_on_disconnect,
        "server_behaviour": request.server_behaviour is not None,
        "side_by_side": request.side_by_side is not None,
    }
    settled |= {"cpu_charge": bool(request.cpu_charge), "model_variation": bool(request.model_variation)}
    settled |= {"model_under_pressure": request.model_under_pressure != DEFAULT_UNDER_PRESSURE}
    settled |= {"adoption": bool(request.adoption)}
    settled |= {"router_injection": request.router_injection is not None}
    if not request.names_own_graph:
        is_named_again = request.workload == design["workload"] not in WORKLOADS
        settled |= {"workload": request.workload != DEFAULT_WORKLOAD and not is_named_again}
        # A recording holds neither documents nor questions: the user's are named again.
        settled |= {} if has_own_documents(design) else request.names_documents
    for name, is_given in settled.items():
        if is_given:
            raise ConfigurationError(f"{name}: the recording has settled it; leave it out of a replay")
    if request.seed not in (DEFAULT_SEED, design["seed"]):
        raise ConfigurationError(f"seed: the recording has seed {design['seed']}; leave it out of a replay")
    if request.names_own_graph and request.documents != design["corpus"]:
        raise ConfigurationError("inputs: they are not those of the recording; pass the same file or list")


def has_own_documents(design: Mapping[str, Any]) -> bool:
    """Whether the recording was made with the user's documents or questions, which it does not contain."""
    return "library" in design or "questions" in design


def _documents(design: Mapping[str, Any], request: CompareRequest) -> Documents:
    """Return the recorded documents and questions. Raises: ConfigurationError if the user now names different ones."""
    if request.names_own_graph or not has_own_documents(design):
        return Documents(str(design["corpus"]))
    documents = documents_of(request.documents, request.questions)
    found = documents.design()
    for name, parts in (("documents", ("corpus", "library")), ("questions", ("questions",))):
        if any(found.get(part) != design.get(part) for part in parts):
            raise ConfigurationError(
                f"{name}: they are not those of the recording; name the documents and questions of your own that were "
                "recorded, unchanged"
            )
    return documents


def _recorded_alternatives(design: Mapping[str, Any], settings: Settings) -> tuple[Alternative, ...]:
    return tuple(_alternative(item["name"], item["options"], settings) for item in design["alternatives"])


def _alternative(name: str, options: Mapping[str, Any], settings: Settings) -> Alternative:
    variants = CATALOGUE[name].variants if name in CATALOGUE else ()
    labels = [name, *(f"{name}:{variant}" for variant in variants)]
    for label in labels:
        for retries in (settings.agents.max_retries, options.get("retries", 1)):
            (found,) = parse_alternatives([label], budgeted_retries=retries)
            if json.loads(options_json(found)) == options:
                return found
    raise ConfigurationError(
        f"alternatives: {name} was recorded with options {dict(options)} that have no name; pass the instance itself"
    )


def recorded_workload(design: Mapping[str, Any], named: str) -> str:
    """Return the recorded workload: one of the lab's, or another that the caller has also named.

    A recording is data, so no module is imported because it is named there.

    Args:
        design: The recording's design.
        named: The workload that the caller named.

    Raises:
        ConfigurationError: The workload is not one of the lab's, and the caller did not name it.
    """
    recorded = str(design["workload"])
    if recorded in WORKLOADS or recorded == named:
        return recorded
    if recorded.startswith(OWN_PREFIX):
        raise ConfigurationError(
            f"graph: the recording is of {recorded.removeprefix(OWN_PREFIX)!r}, a graph of your own; name it and its "
            "inputs again (graph=..., inputs=...; --graph, --inputs)"
        )
    raise ConfigurationError(
        f"workload: the recording is of {recorded!r}, and no module is imported because a recording names it; name it "
        f"yourself if you trust it (workload={recorded!r}; --workload {recorded})"
    )


def simulated_name(workload: str) -> str:
    """Return the workload's name without `services=own`: in a replay a user's graph calls no endpoint."""
    name, mark, said = workload.partition("?")
    options = [option for option in said.split("&") if option and not option.startswith("services=")]
    return f"{name}{mark}{'&'.join(options)}" if options else name
