"""From what `compare` is told to the comparison: of a workload, of a user's graph, or of a recording."""

from __future__ import annotations

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.asked import Asked
from docmind_lab.experiments.comparison.design import SIDE_BY_SIDE, Comparison
from docmind_lab.experiments.comparison.documents import Documents, documents_of
from docmind_lab.experiments.comparison.own import faults_in, of_own_graph, require_whole_budget
from docmind_lab.experiments.comparison.replays import off_endpoints, replayed_comparison
from docmind_lab.experiments.recordings.choices import Kept
from docmind_lab.experiments.recordings.recording import RUNS, Recording
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.kinds import workload_kind


def comparison_of(asked: Asked, kept: Kept, settings: Settings) -> tuple[Comparison, Settings]:
    """The comparison, and the settings that it goes on under: a replay asks no live endpoint.

    Raises: ConfigurationError for a value that cannot be used, or not with another.
    """
    if kept.replay is not None:
        settings = off_endpoints(settings)
    clock = _clock_of(asked, kept, settings)
    if asked.is_of_own_graph:
        asked = of_own_graph(asked, settings, clock)
    if kept.replay is not None:
        recording = Recording.load(kept.replay)
        replayed = replayed_comparison(recording, asked, clock, settings)
        if not recording.runs:
            raise RecordError(f"{kept.replay / RUNS} has no finished run; take the folder from a copy, or record again")
        return replayed, settings
    return _measured(asked, clock, settings), settings


def _clock_of(asked: Asked, kept: Kept, settings: Settings) -> ClockName:
    if asked.clock is not None:
        return asked.clock
    return "wall" if _is_live(settings) or asked.services == "own" or kept.is_live else "virtual"


def _is_live(settings: Settings) -> bool:
    return settings.llm.base_url is not None or settings.database.qdrant_url is not None


def default_side_by_side(settings: Settings, *, is_own: bool = False) -> int:
    """How many runs are under way at once on the wall clock when nobody says.

    What answers a live endpoint is shared by all runs, and a user's nodes may block the event loop that runs share.

    Args:
        settings: Their endpoints count.
        is_own: Whether the system is a user's own graph.
    """
    return 1 if is_own or _is_live(settings) else SIDE_BY_SIDE


def _measured(asked: Asked, clock: ClockName, settings: Settings) -> Comparison:
    """A comparison that is measured: what is left open is as its workload has it on this clock."""
    kind, is_own = workload_kind(asked.workload), asked.is_of_own_graph
    documents = Documents(str(asked.documents)) if is_own else documents_of(asked.documents, asked.questions)
    defaults = kind.defaults.get(clock, kind.defaults["virtual"])
    written = [asked.fault] if isinstance(asked.fault, str) else asked.fault
    faults = tuple(Fault.parse(item) if isinstance(item, str) else item for item in written)
    profile = defaults.profile if asked.profile is None else asked.profile
    if asked.router_injection and not kind.has_router:
        raise ConfigurationError(f"router_injection: workload {asked.workload} has no router engine; leave it out")
    injection, budget = asked.router_injection, asked.budget or Budget()
    said_s = budget.time_s if asked.decision_timeout_s is None else asked.decision_timeout_s
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if said_s is None else said_s,
        runs=defaults.runs if asked.runs is None else asked.runs,
        seed=asked.seed,
        alternatives=parse_alternatives(
            asked.alternatives, asked.retries, budgeted_retries=settings.agents.max_retries
        ),
        profile=LatencyProfile.named(profile) if isinstance(profile, str) else profile,
        faults=faults_in(kind, faults) if is_own else faults,
        stops_on_disconnect=asked.stops_on_disconnect,
        client_retries=asked.retries,
        side_by_side=default_side_by_side(settings, is_own=is_own)
        if asked.side_by_side is None
        else asked.side_by_side,
        router_injection=settings.agents.enable_router_injection if injection is None else injection,
        clock=clock,
        corpus=documents.corpus,
        own_questions=documents.questions,
        workload=asked.workload,
        budget=budget,
        cpu_charge=asked.cpu_charge,
        model_variation=asked.model_variation,
    )
    if is_own:
        require_whole_budget(comparison.alternatives)
    return comparison
