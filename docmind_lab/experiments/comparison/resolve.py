"""Turn a request into a comparison: of a workload, of a user's graph, or of a recording."""

from __future__ import annotations

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.by_role import latency_profile
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import SIDE_BY_SIDE, Comparison
from docmind_lab.experiments.comparison.documents import Documents, documents_of
from docmind_lab.experiments.comparison.own_graph import faults_in, of_own_graph, require_whole_budget
from docmind_lab.experiments.comparison.replays import replayed_comparison, require_replayable, without_live_endpoints
from docmind_lab.experiments.comparison.request import CompareRequest
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.recordings.recording import RUNS, Recording
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.kinds import workload_kind


def resolve(request: CompareRequest, settings: Settings) -> tuple[Comparison, Settings]:
    """Return the comparison that a request describes, and the settings to run it with: a replay's have no endpoint.

    Raises: ConfigurationError for a value that cannot be used, or not with another; RecordError for a recording without
    a finished run.
    """
    recorded_in = request.recording.replay
    if recorded_in is not None:
        settings = without_live_endpoints(settings)
    clock = _clock_of(request, settings)
    if request.is_of_own_graph:
        request = of_own_graph(request, settings, clock)
    if recorded_in is not None:
        recording = Recording.load(recorded_in)
        replayed = replayed_comparison(recording, request, clock, settings)
        if not recording.runs:
            raise RecordError(f"{recorded_in / RUNS} has no finished run; take the folder from a copy, or record again")
        require_replayable(replayed, recording, recorded_in, settings)
        return replayed, settings
    return _new_comparison(request, clock, settings), settings


def _clock_of(request: CompareRequest, settings: Settings) -> ClockName:
    if request.clock is not None:
        return request.clock
    is_live = live_endpoint_of(settings) or request.services == "own" or request.recording.is_live
    return "wall" if is_live or request.command is not None else "virtual"


def default_side_by_side(settings: Settings, *, is_own: bool = False) -> int:
    """Return how many runs go on at once on the wall clock if the request does not say.

    What answers a live endpoint is shared by all runs, and a user's nodes may block the event loop that runs share.
    """
    return 1 if is_own or live_endpoint_of(settings) else SIDE_BY_SIDE


def _new_comparison(request: CompareRequest, clock: ClockName, settings: Settings) -> Comparison:
    """Return a comparison to measure, with defaults from its workload and clock where the request is silent."""
    kind, is_own = workload_kind(request.workload), request.is_of_own_graph
    documents = Documents(str(request.documents)) if is_own else documents_of(request.documents, request.questions)
    defaults = kind.defaults.get(clock, kind.defaults["virtual"])
    written = [request.fault] if isinstance(request.fault, str) else request.fault
    profile = defaults.profile if request.profile is None else request.profile
    if request.router_injection and not kind.has_router:
        raise ConfigurationError(f"router_injection: workload {request.workload} has no router engine; leave it out")
    injection, budget = request.router_injection, request.budget or Budget()
    given_s = budget.time_s if request.decision_timeout_s is None else request.decision_timeout_s
    alternatives = parse_alternatives(
        request.alternatives, request.retries, budgeted_retries=settings.agents.max_retries
    )
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if given_s is None else given_s,
        runs=defaults.runs if request.runs is None else request.runs,
        seed=request.seed,
        alternatives=alternatives if request.alternatives is not None else kind.possible(alternatives),
        profile=latency_profile(profile, defaults.profile),
        faults=faults_in(kind, written)
        if is_own
        else tuple(Fault.parse(item) if isinstance(item, str) else item for item in written),
        client_retries=request.retries,
        side_by_side=default_side_by_side(settings, is_own=is_own)
        if request.side_by_side is None
        else request.side_by_side,
        router_injection=settings.agents.enable_router_injection if injection is None else injection,
        clock=clock,
        documents=documents,
        workload=request.workload,
        budget=budget,
        enforced=request.enforced,
        **request.common,
    )
    if is_own:
        require_whole_budget(comparison.alternatives)
    return comparison
