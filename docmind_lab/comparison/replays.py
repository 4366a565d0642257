"""The comparison that replays a recording: its questions, seeds and conditions, under any alternatives and budget."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.names import VARIANTS, parse_alternatives
from docmind_lab.budgets import Budget, Price
from docmind_lab.comparison.design import Comparison
from docmind_lab.errors import ConfigurationError
from docmind_lab.recordings.recording import Recording
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings

RECORDED = "recorded"
"""The level of `latency_profile` in a replay."""

# What `compare` takes when no seed is named.
_UNSAID_SEED = 7


@dataclass(frozen=True)
class Asked:
    """What is asked of a replay; None for as it was recorded. own: workload and inputs of a user's graph, by the names
    that they have in this process. budget: tokens, calls and cost of each run.
    """

    decision_timeout_s: float | None = None
    runs: int | None = None
    seed: int = 7
    alternatives: Sequence[str | Alternative] | str | None = None
    retries: int | None = None
    own: tuple[str, str] | None = None
    budget: Budget | None = None


def off_endpoints(settings: Settings) -> Settings:
    """The settings without live endpoints, which a replay does not ask."""
    return settings.replaced(llm={"base_url": None}, database={"qdrant_url": None})


def replayed_comparison(
    recording: Recording, asked: Asked, settled: Mapping[str, bool], settings: Settings
) -> Comparison:
    """The comparison of a replay. settled: name of an option that the recording has settled → whether it was given.

    Raises: ConfigurationError for one that was given, for alternatives that cannot be told from the recording, and for
    other inputs than were recorded.
    """
    design = recording.design
    _require_only_asked(design, asked, settled)
    chosen = _recorded_alternatives(design, settings) if asked.alternatives is None else asked.alternatives
    workload, corpus = asked.own or (simulated_name(str(design["workload"])), str(design["corpus"]))
    client_retries = design["client_retries"]
    budget = _recorded_budget(design) if asked.budget is None else asked.budget
    timeouts_s = (asked.decision_timeout_s, budget.time_s, design["decision_timeout_s"])
    return Comparison(
        decision_timeout_s=next(timeout_s for timeout_s in timeouts_s if timeout_s is not None),
        runs=design["runs"] if asked.runs is None else asked.runs,
        seed=design["seed"],
        alternatives=parse_alternatives(chosen, asked.retries, budgeted_retries=settings.agents.max_retries),
        # Its tables are not used; the name stands in the replay's.
        profile=dataclasses.replace(LatencyProfile.from_dict(design["latency_profile"]), name=RECORDED),
        faults=() if design["fault"] == "none" else tuple(Fault.parse(text) for text in design["fault"].split("+")),
        stops_on_disconnect=design["stops_on_disconnect"],
        client_retries=client_retries if asked.retries is None else asked.retries,
        horizon_factor=design["horizon_factor"],
        side_by_side=design["side_by_side"],
        router_injection=design["router_injection"],
        clock="virtual",
        corpus=corpus,
        node_colour=design["node_colour"],
        workload=workload,
        replay=recording.id,
        budget=budget,
    )


def _recorded_budget(design: Mapping[str, Any]) -> Budget:
    said = dict(design.get("budget", {}))
    price = said.pop("price", None)
    return Budget(**said, price=None if price is None else Price(**price))


def _require_only_asked(design: Mapping[str, Any], asked: Asked, settled: Mapping[str, bool]) -> None:
    for name, is_given in settled.items():
        if is_given:
            raise ConfigurationError(f"{name}: the recording has settled it; leave it out of a replay")
    if asked.seed not in (_UNSAID_SEED, design["seed"]):
        raise ConfigurationError(f"seed: the recording has seed {design['seed']}; leave it out of a replay")
    if asked.own is not None and asked.own[1] != design["corpus"]:
        raise ConfigurationError("inputs: they are not those of the recording; pass the same file or list")


def _recorded_alternatives(design: Mapping[str, Any], settings: Settings) -> tuple[Alternative, ...]:
    return tuple(_alternative(item["name"], item["options"], settings) for item in design["alternatives"])


def _alternative(name: str, options: Mapping[str, Any], settings: Settings) -> Alternative:
    labels = [name, *(f"{base}:{variant}" for base, variant in VARIANTS if base == name)]
    for label in labels:
        for retries in (settings.agents.max_retries, options.get("retries", 1)):
            (found,) = parse_alternatives([label], budgeted_retries=retries)
            if json.loads(options_json(found)) == options:
                return found
    raise ConfigurationError(
        f"alternatives: {name} was recorded with options {dict(options)} that have no name; pass the instance itself"
    )


def simulated_name(workload: str) -> str:
    """The workload on simulated services: a user's graph that asked its own endpoints asks nobody now."""
    name, mark, said = workload.partition("?")
    options = [option for option in said.split("&") if option and not option.startswith("services=")]
    return f"{name}{mark}{'&'.join(options)}" if options else name
