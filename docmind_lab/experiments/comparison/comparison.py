"""What to compare: the design of a comparison, and the runs that follow from it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.async_form import on_event_loop
from docmind_lab.alternatives.base import AroundAlternative, Inputs, Outcome, RunLog, Runnable, options_json
from docmind_lab.alternatives.enforcement.enforced_agent import EnforcedAgent
from docmind_lab.core.alternative_catalogue import label_of
from docmind_lab.core.budgets import Budget, require_one_time_budget
from docmind_lab.core.clock import CLOCKS, ClockName
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_count, require_number, require_seconds, require_share
from docmind_lab.core.randomness import keyed_uniform, run_seed
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR, RunFacts, horizon_of
from docmind_lab.experiments.measurement.measured_run import RunOrder
from docmind_lab.services.faults import Fault
from docmind_lab.services.scripted_model.variation import VARYING_ROLES
from docmind_lab.services.server import ServiceConditions, ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile, require_roles
from docmind_lab.systems.base.node_modes import NodeMode, checked_node_mode, effective_node_mode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.workload_kind import WorkloadKind, shown_name
from docmind_lab.systems.workload_by_name import workload_kind


def node_mode_of(alternative: Alternative, node_mode: NodeMode = "own") -> str:
    """The level of the `node_mode` factor for an alternative over nodes of this mode."""
    return effective_node_mode(alternative.node_mode, checked_node_mode(node_mode))


def short_label(alternative: Alternative) -> str:
    """The label of an alternative and its options, with single spaces."""
    return " ".join(label_of(alternative.name, options_json(alternative)).split())


def alternatives_json(alternatives: Iterable[Alternative]) -> list[dict[str, Any]]:
    """The names and options of alternatives, as a design has them."""
    return [{"name": item.name, "options": json.loads(options_json(item))} for item in alternatives]


def study_id_of(name: str, design: Mapping[str, Any]) -> str:
    """The id of a study, derived from its design: equal designs have equal ids."""
    text = json.dumps(design, sort_keys=True)
    return f"{name}-{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"


def require_propagation(alternatives: Iterable[Alternative], settings: Settings) -> None:
    """Return if the settings leave alternatives that propagate what they are. Raises: ConfigurationError."""
    propagating = [alternative.name for alternative in alternatives if alternative.propagates]
    if propagating and not settings.agents.enable_deadline_propagation:
        raise ConfigurationError(
            f"agents.enable_deadline_propagation=false would make {', '.join(propagating)} another alternative; "
            "leave it on, or leave the alternative out"
        )


# Runs wait for servers nearly all the time; four side by side use about a third of one core, and a deadline still
# comes to within a few milliseconds. More would begin to measure each other.
SIDE_BY_SIDE = 4
DEFAULT_SEED = 7

Alternatives = Sequence[str | Alternative] | str | None
"""Levels, letters ("A"), variants ("A:per_read", "B:naive") or instances; None for all."""

_MOST_RUNS = 10_000

# How run seeds follow from the study's. Studies made under another rule have other ids.
RUN_SEEDS = "hashed"


@dataclass(frozen=True)
class Enforced(AroundAlternative):
    """Runs a user's graph through `enforce`, and returns the alternative's own outcome."""

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph as `EnforcedAgent.invoke` does."""
        agent = EnforcedAgent(runnable, deadline.limit_s, self.alternative, deadline_key=_deadline_key(runnable))
        call = agent.call_for(None, deadline=deadline)
        outcome = agent.outcome_of(call, inputs, None, recorder)
        agent.let_go(call, outcome.outcome)
        return outcome


def _deadline_key(runnable: Runnable) -> str:
    """Return the key of the graph's input that takes the deadline; empty for none."""
    doorways = getattr(runnable, "binding", {}).get("doorways", ())
    return next((key for doorway in doorways if (key := getattr(doorway, "state_key", ""))), "")


@dataclass(frozen=True)
class Comparison(ShownAsCode, ServiceConditions):
    """What to compare: a system, what it meets, and the call of `compare`, as values to run with.

    server_behaviour: what the model server does when its client leaves. client_retries: None for the clients' defaults.
    horizon_factor: a run is watched until its deadline times this.
    node_mode: methods that nodes are made of; "own" for those that the alternative calls. replay: id of the live study
    whose recording is replayed; empty for none.
    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    decision_timeout_s: float = 20.0
    runs: int = 40
    seed: int = 7
    alternatives: tuple[Alternative, ...] = field(
        default_factory=lambda: tuple(kind() for kind in ALTERNATIVES.values())
    )
    profile: LatencyProfile = field(default_factory=lambda: LatencyProfile.named("heavy_tail/3"))
    faults: tuple[Fault, ...] = ()
    client_retries: int | None = None
    horizon_factor: float = HORIZON_FACTOR
    side_by_side: int = SIDE_BY_SIDE
    router_injection: bool = False
    clock: ClockName = "virtual"
    documents: Documents = field(default_factory=Documents)
    node_mode: NodeMode = "own"
    workload: str = "supervisor"
    replay: str = ""
    budget: Budget = field(default_factory=Budget)
    enforced: bool = False
    _: KW_ONLY
    server_behaviour: ServerBehaviour = STOPS

    def __post_init__(self) -> None:
        require_seconds("decision timeout", self.decision_timeout_s)
        require_count("runs", self.runs, most=_MOST_RUNS)
        if not self.alternatives:
            raise ConfigurationError(f"name at least one alternative of {', '.join(ALTERNATIVES)}")
        if not self.horizon_factor > 1:
            raise ConfigurationError(f"horizon_factor must be above 1, not {self.horizon_factor}")
        if self.clock not in CLOCKS:
            raise ConfigurationError(f"unknown clock {self.clock!r}; the clocks are {', '.join(CLOCKS)}")
        checked_node_mode(self.node_mode)
        require_roles(self.profile, self.kind.roles)
        self.documents.cases(self.kind)
        require_count("workers", self.side_by_side)
        if require_share("model_variation", self.model_variation, "decisions") and VARYING_ROLES.isdisjoint(
            self.kind.roles
        ):
            raise ConfigurationError(
                f"model_variation: the model of workload {self.workload} does not vary; only that of the roles "
                f"{', '.join(sorted(VARYING_ROLES))} does"
            )
        if require_share("adoption", self.adoption, "hops") and not self.kind.has_hops:
            raise ConfigurationError(
                f"adoption: workload {self.workload} calls no services that could adopt a deadline; leave it out, or "
                "choose the workload hops"
            )
        charged = "0 or more CPU seconds of each request, such as 0.01"
        if require_number("cpu_charge", self.cpu_charge, charged, least=0) and self.clock == "wall":
            raise ConfigurationError("cpu_charge is for virtual time; on the wall clock CPU takes the time it takes")
        require_one_time_budget(self.budget, self.decision_timeout_s)
        for alternative in self.alternatives:
            reason = self.kind.refusal(alternative, by_name=True)
            if reason:
                raise ConfigurationError(f"alternative {short_label(alternative)}: {reason}; leave it out")

    def __repr__(self) -> str:
        labels = ", ".join(map(short_label, self.alternatives))
        budgets = f"\n  second budgets: {self.budget.level}" if self.budget.is_second else ""
        return (
            f"Comparison: {self.decision_timeout_s:g} s decision timeout, {self.runs} {self.kind.asked} × "
            f"{len(self.alternatives)} alternatives = {self.total_runs:,} runs, seed {self.seed}\n"
            f"  {labels}\n  {self.profile.level} latencies, fault {self.fault}, {self.clock} clock, "
            f"corpus {self.documents.name}{budgets}"
        )

    @property
    def kind(self) -> WorkloadKind:
        """The system under the deadline. Raises: ConfigurationError for an unknown one."""
        return workload_kind(self.workload)

    @property
    def fault(self) -> str:
        """The level of the `fault` factor."""
        return "+".join(str(fault) for fault in self.faults if fault.kind != "none") or "none"

    @property
    def horizon_s(self) -> float:
        """How long each run is observed at most, seconds since its start."""
        return horizon_of(self.decision_timeout_s, self.horizon_factor)

    def design(self) -> dict[str, Any]:
        """What determines the runs, as JSON."""
        # Only where there are some: a comparison without is the one that it was before there were any.
        budget = self.budget.second_as_json()
        # Only of a replay, so that the ids of other studies stay what they were.
        replayed: dict[str, Any] = {"replay": self.replay} if self.replay else {}
        if self.enforced:
            replayed["enforced"] = True
        # Those alone that are not as by default, for the same reason.
        plain = ServiceConditions.of(ServiceConditions())
        changed = {name: value for name, value in ServiceConditions.of(self).items() if value != plain[name]}
        # The two extremes are a switch, as they were before there were profiles.
        if self.server_behaviour not in (STOPS, GOES_ON):
            changed["server_behaviour"] = self.server_behaviour.model_dump(mode="json", exclude_defaults=True)
        return (
            replayed
            | changed
            | {
                "stops_on_disconnect": self.server_behaviour != GOES_ON,
                "decision_timeout_s": self.decision_timeout_s,
                "runs": self.runs,
                "seed": self.seed,
                "run_seeds": RUN_SEEDS,
                "alternatives": alternatives_json(self.alternatives),
                "latency_profile": self.profile.to_dict(),
                "fault": self.fault,
                "client_retries": self.client_retries,
                "horizon_factor": self.horizon_factor,
                "side_by_side": self.side_by_side,
                "router_injection": self.router_injection,
                "clock": self.clock,
                **self.documents.design(),
                "node_mode": self.node_mode,
                "workload": shown_name(self.workload),
                **({"budget": budget} if budget else {}),
            }
        )

    @functools.cached_property
    def study_id(self) -> str:
        """A name derived from the design: the same comparison has the same one."""
        # The whole name: files of one name in two folders are two.
        return study_id_of("compare", {**self.design(), "workload": self.workload})

    def questions(self) -> list[tuple[int, Question]]:
        """(run seed, question) of each repeat, in order; the study's seed determines both."""
        pool = sorted(
            self.documents.cases(self.kind), key=lambda question: keyed_uniform(self.seed, "question", question.id)
        )
        return [(run_seed(self.seed, repeat + 1), pool[repeat % len(pool)]) for repeat in range(self.runs)]

    @property
    def total_runs(self) -> int:
        """Runs of all alternatives together."""
        return self.runs * len(self.alternatives)

    def orders(self, *, has_server_log: bool = True) -> list[RunOrder]:
        """Every run, in an order drawn from the seed, so that a drift of the machine strikes no alternative alone."""
        orders = [
            order
            for number in range(len(self.alternatives))
            for order in self.orders_of(number, f"{self.study_id}-{number}", has_server_log=has_server_log)
        ]
        return sorted(orders, key=lambda order: keyed_uniform(self.seed, "order", order.facts.run_id))

    def orders_of(self, number: int, prefix: str, *, has_server_log: bool = True) -> list[RunOrder]:
        """The runs of one alternative, by its place from 0 on, repeat by repeat.

        prefix: how the ids of the runs begin; the alternative's name and the repeat, from 1 on, follow.
        """
        alternative = self.alternatives[number]
        return [
            self.order(alternative, seed, question, f"{prefix}-{alternative.name}-{repeat}", has_server_log)
            for repeat, (seed, question) in enumerate(self.questions(), start=1)
        ]

    def order(
        self, alternative: Alternative, seed: int, question: Question, run_id: str, has_server_log: bool = True
    ) -> RunOrder:
        """One run, with that seed, question and id."""
        facts = RunFacts.of(
            alternative,
            self.decision_timeout_s,
            horizon_s=self.horizon_s,
            study_id=self.study_id,
            run_id=run_id,
            workload=self.kind.name,
            seed=seed,
            question_id=question.id,
            router_injection=self.router_injection,
            retries=self.kind.retries(alternative, self.client_retries),
            latency_profile=self.profile.level if has_server_log else "",
            fault=self.fault,
            server_behaviour=self.server_behaviour.name,
            adoption=self.adoption,
            node_mode=node_mode_of(self.runs_by(alternative), self.node_mode),
            clock=self.clock,
            gold_topics=question.gold_topics,
            has_server_log=has_server_log,
            alone=self.side_by_side == 1 and self.clock == "wall",
            budget=self.budget,
        )
        runs_by = self.runs_by(alternative)
        return RunOrder(facts, cast(Alternative, Enforced(runs_by)) if self.enforced else runs_by, question)

    def runs_by(self, alternative: Alternative) -> Alternative:
        """What carries an alternative out on the system."""
        in_form = on_event_loop(alternative) if self.kind.async_only else alternative
        return cast(Alternative, self.kind.carried_out_by(in_form))


def simulated(comparison: Comparison, settings: Settings) -> Simulated:
    """What a worker needs to compute runs of the comparison."""
    options = ServiceOptions(
        profile=comparison.profile,
        faults=comparison.faults,
        behaviour=comparison.server_behaviour,
        seed=comparison.seed,
        endpoints=comparison.kind.endpoints,
        **ServiceConditions.of(comparison),
    )
    return Simulated(
        settings,
        options,
        client_retries=comparison.client_retries,
        corpus=comparison.documents.corpus,
        node_mode=comparison.node_mode,
        workload=comparison.workload,
    )
