"""`crash_test` cuts a graph at every point at which a deadline can fall, and judges what that leaves behind."""

from __future__ import annotations

import dataclasses
import math
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from langgraph.checkpoint.base import BaseCheckpointSaver

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError, GraphError, SimulationStalled
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.batch.workers import InThisProcess, Workers, workers_for
from docmind_lab.experiments.comparison.own_graph import require_whole_budget
from docmind_lab.experiments.crash_test.bench import SaverMaker, Subject, saver_maker
from docmind_lab.experiments.crash_test.cells import ShrinkOrder, observe_all, run_shrink_order
from docmind_lab.experiments.crash_test.cut_points import CutPoint, cut_points, in_turn, kinds_of
from docmind_lab.experiments.crash_test.findings import Finding, smallest, timeline_of
from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Reference, Verdict, judge
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.report import Coverage, CrashReport
from docmind_lab.experiments.crash_test.shrink import size_of
from docmind_lab.experiments.trials import KILL, Trial
from docmind_lab.workloads.kinds import workload_kind
from docmind_lab.workloads.own import GraphInput, Inputs, graph_named

_VERDICT_COLUMNS: Final = ["input_id", "alternative", "schedule", "at_s", "invariant", "status", "what"]

Place = tuple[str, str]
"""An input and an alternative."""


@dataclass(frozen=True)
class _Plan:
    """Everything that is tried. points: all of a place; chosen: those that are tried."""

    subject: Subject
    places: tuple[Place, ...]
    schedules: tuple[int | None, ...]
    references: Mapping[tuple[str, str, int | None], Reference]
    points: Mapping[Place, list[CutPoint]]
    chosen: Mapping[Place, list[CutPoint]]

    def trials(self) -> list[Trial]:
        """Return the trials."""
        return [
            Trial(alternative, point.at_s, input_id, schedule=schedule)
            for input_id, alternative in self.places
            for schedule in self.schedules
            for point in self.chosen[input_id, alternative]
        ]

    def reference(self, trial: Trial) -> Reference:
        """Return what a trial is held against."""
        return self.references[trial.question_id, trial.alternative, trial.schedule]


def crash_test(
    graph: Any,
    inputs: Inputs,
    *,
    alternatives: str | None = None,
    kill: bool = True,
    runs: int | None = None,
    schedules: int = 1,
    checkpointer: str | SaverMaker | None = None,
    durability: str = "async",
    deadline_key: str = DEADLINE_KEY,
    context: Any = None,
    config: Mapping[str, Any] | None = None,
    resume: Sequence[Any] = (),
    endpoints: str | os.PathLike[str] | None = None,
    profile: str = "typical",
    seed: int = 7,
    shrink: bool = True,
    workers: int | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> CrashReport:
    """Cut a graph at every point at which a deadline can fall, go on with its thread, and judge what was left behind.

    Args:
        graph: As `compare` takes it. A function that makes the graph is called anew for each trial.
        inputs: As `compare` takes them.
        alternatives: What enforces the deadline, separated by commas; None for A, D and E, or A, C and E for a graph
            that is async only.
        kill: Whether the process is killed at each point too.
        runs: How many runs are cut at the most, over all inputs and alternatives; None for all.
        schedules: Under how many orders of threads and tasks each cut is tried.
        checkpointer: A function that makes the checkpointer of one trial, or a reference to it; None for the graph's
            own, or one in memory where it has none.
        durability: When LangGraph writes checkpoints: "sync", "async" or "exit".
        deadline_key: Key of the graph's input that takes the deadline.
        context: As `compare` takes it.
        config: As `compare` takes it.
        resume: As `compare` takes it.
        endpoints: As `compare` takes them. Their POST, PUT, PATCH and DELETE requests are counted as side effects.
        profile: Of the simulated services' latencies.
        seed: Keys every draw.
        shrink: Whether each finding is reduced to the smallest trial that shows it.
        workers: Number of processes; None for one on each core, where that is worth it.
        progress: Called with (done, all) runs.
        stop: Set by another thread, no further run begins, and what is done is reported.

    Returns:
        The report.

    Raises:
        ConfigurationError: A value cannot be used.
        NotSimulated: The graph leaves virtual time; it says what for.
        GraphError: The graph fails without any deadline.
    """
    _require_counts(runs, schedules)
    subject = Subject.of(
        graph,
        inputs,
        checkpointer=checkpointer,
        durability=durability,
        deadline_key=deadline_key,
        context=context,
        config=config,
        resume=resume,
        endpoints=endpoints,
        profile=profile,
        seed=seed,
    )
    names = _alternatives(alternatives, async_only=workload_kind(subject.workload).async_only, kill=kill)
    with _workers(subject, checkpointer, workers) as pool:
        counted = _Counter(progress)
        plan = _plan(subject, names, schedules, runs, pool, stop, counted)
        observations = list(observe_all(subject, plan.trials(), pool, stop, counted.add))
        is_stopped = stop is not None and stop.is_set()
        shown = graph if isinstance(graph, str) else str(graph_named(subject.workload).get_name())
        return _report(shown, plan, observations, pool if shrink and not is_stopped else None)


def _require_counts(runs: int | None, schedules: int) -> None:
    if runs is not None and runs < 1:
        raise ConfigurationError(f"runs must be 1 or more, or left out for every cut point, not {runs!r}")
    if schedules < 1:
        raise ConfigurationError(f"schedules must be 1 or more, not {schedules!r}")


def _alternatives(given: str | None, *, async_only: bool, kill: bool) -> list[str]:
    default = "A,C,E" if async_only else "A,D,E"
    names = [name.strip() for name in (default if given is None else given).split(",") if name.strip()]
    for name in names:
        require_whole_budget(parse_alternatives(name))
    names += [KILL] if kill else []
    if not names:
        raise ConfigurationError(f"alternatives: name at least one, such as {default}, or leave kill on")
    return names


def _workers(subject: Subject, checkpointer: Any, count: int | None) -> Workers:
    """Return what carries the trials out: worker processes, or this one for what only it has."""
    is_live = workload_kind(subject.workload).in_this_process or callable(checkpointer)
    if is_live and count not in (None, 1):
        raise ConfigurationError(
            "workers: a live graph or checkpointer is in this process only; name it as module:attribute"
        )
    return Workers(InThisProcess) if is_live or count == 1 else workers_for(1_000, count)


@dataclass
class _Counter:
    """Tells of progress. all: how many runs are known to come."""

    progress: Progress | None
    done: int = 0
    all: int = 0

    def add(self, count: int) -> None:
        """Note that runs are done."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, max(self.all, self.done))


def _plan(
    subject: Subject,
    names: Sequence[str],
    schedules: int,
    runs: int | None,
    pool: Workers,
    stop: threading.Event | None,
    counted: _Counter,
) -> _Plan:
    """Run each input undisturbed, and choose at which of its cut points it is tried."""
    orders: tuple[int | None, ...] = (None, *range(1, schedules))
    places = tuple((one.id, name) for one in subject.inputs for name in names)
    undisturbed = [Trial(name, math.inf, one, schedule=order) for one, name in places for order in orders]
    controls = {one.id: Trial(names[0], math.inf, one.id, is_control=True) for one in subject.inputs}
    counted.all = len(undisturbed) + len(controls)
    seen = {
        each.trial: each for each in observe_all(subject, [*controls.values(), *undisturbed], pool, stop, counted.add)
    }
    for observation in seen.values():
        require_usable(observation)
    references = {}
    for trial in undisturbed:
        if trial in seen:
            control = seen.get(controls[trial.question_id], seen[trial])
            base = seen.get(Trial(names[0], math.inf, trial.question_id), seen[trial])
            references[trial.question_id, trial.alternative, trial.schedule] = Reference(
                seen[trial], volatile_keys(base, control)
            )
    places = tuple(place for place in places if all((*place, order) in references for order in orders))
    points = {place: cut_points(references[*place, None].undisturbed) for place in places}
    each = None if runs is None else max(1, runs // max(1, len(places) * len(orders)))
    chosen = {place: in_turn(points[place], each) for place in places}
    counted.all += sum(len(of_place) for of_place in chosen.values()) * len(orders)
    return _Plan(subject, places, orders, references, points, chosen)


def volatile_keys(first: Observation, second: Observation) -> frozenset[str]:
    """Return the keys of the state that differ between two undisturbed runs at other times."""
    one, other = first.saved.values or {}, second.saved.values or {}
    return frozenset(key for key in {*one, *other} if one.get(key) != other.get(key))


def require_usable(observation: Observation) -> None:
    """Return if an undisturbed run can be held against others. Raises: GraphError if the graph fails by itself."""
    where = f"input {observation.trial.question_id}, without a deadline"
    if observation.not_judged:
        raise GraphError(f"{where}: {observation.not_judged}")
    if observation.first.outcome in ("failed", "no end"):
        raise GraphError(f"{where}: the graph ends {observation.first}")


Found = list[tuple[Observation, Verdict]]


def _report(graph: str, plan: _Plan, observations: Sequence[Observation], shrinks: Workers | None) -> CrashReport:
    groups: dict[tuple[str, str, bool], Found] = {}
    judged: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    for observation in observations:
        trial = observation.trial
        for verdict in judge(observation, plan.reference(trial)):
            place = trial.question_id, trial.alternative, trial.schedule, trial.decision_timeout_s
            rows.append((*place, verdict.invariant, verdict.status, verdict.what))
            judged[verdict.invariant] += verdict.status != "not judged"
            if verdict.status in ("broken", "left"):
                key = verdict.invariant, verdict.what, verdict.status == "left"
                groups.setdefault(key, []).append((observation, verdict))
    findings = [_finding(key, found, plan, None if key[2] else shrinks) for key, found in groups.items()]
    rank = list(INVARIANTS)
    findings.sort(key=lambda finding: (-finding.trials, rank.index(finding.invariant), finding.what))
    subject = plan.subject
    defaults = {each.name: each.default for each in dataclasses.fields(Subject)}
    options = {
        name: getattr(subject, name)
        for name in ("profile", "deadline_key", "durability", "checkpointer", "endpoints")
        if getattr(subject, name) != defaults[name]
    }
    return CrashReport(
        graph,
        tuple(finding for finding in findings if not finding.is_left),
        tuple(finding for finding in findings if finding.is_left),
        tuple(_coverage(place, plan, observations) for place in plan.places),
        {name: judged[name] for name in INVARIANTS},
        len(observations),
        _notes(plan),
        subject.seed,
        options,
        pd.DataFrame(rows, columns=_VERDICT_COLUMNS).astype({"schedule": "Int64"}),
    )


def _finding(key: tuple[str, str, bool], found: Found, plan: _Plan, shrinks: Workers | None) -> Finding:
    invariant, what, is_left = key
    questions: dict[str, GraphInput] = {one.id: one for one in plan.subject.inputs}
    example = smallest(found, {name: size_of(one.given) for name, one in questions.items()})
    trial = example[0].trial
    given: Mapping[str, Any] = questions[trial.question_id].given
    if shrinks is not None:
        place = trial.question_id, trial.alternative
        tried = {point.at_s for point in plan.chosen[place]}
        earlier = [point.at_s for point in plan.points[place] if point.at_s < trial.decision_timeout_s]
        untried = [at_s for at_s in earlier if at_s not in tried]
        shrinking = ShrinkOrder(plan.subject, example, plan.reference(trial), tuple(untried))
        try:
            example, given = shrinks.submit(run_shrink_order, shrinking).result()
        except SimulationStalled:
            shrinks.replace()  # the finding stays as it is
    observation, verdict = example
    names = dict.fromkeys(each.trial.alternative for each, _ in found)
    timeline = timeline_of(observation, verdict)
    return Finding(
        invariant, what, tuple(names), len(found), observation.trial, given, verdict.evidence, timeline, is_left
    )


def _coverage(place: Place, plan: _Plan, observations: Sequence[Observation]) -> Coverage:
    points = plan.points[place]
    mine = [each for each in observations if (each.trial.question_id, each.trial.alternative) == place]
    at = {each.trial.decision_timeout_s for each in mine}
    tried = [point for point in points if point.at_s in at]
    counted, counted_tried = kinds_of(points), kinds_of(tried)
    refused = [each.not_judged for each in mine if each.not_judged]
    skipped = ""
    if len(plan.chosen[place]) < len(points):
        skipped = f"{len(points) - len(plan.chosen[place])} skipped for the limit of runs"
    elif len(tried) < len(points):
        skipped = f"{len(points) - len(tried)} skipped: it was stopped"
    return Coverage(
        *place,
        len(points),
        len(tried),
        skipped,
        {kind: (count, counted_tried.get(kind, 0)) for kind, count in counted.items()},
        (len(refused), refused[0] if refused else ""),
        len(plan.schedules),
    )


def _notes(plan: _Plan) -> tuple[str, ...]:
    notes = []
    graph = graph_named(plan.subject.workload)
    if saver_maker(plan.subject) is None and not isinstance(graph.checkpointer, BaseCheckpointSaver):
        notes.append("The graph has no checkpointer of its own; it was given one in memory.")
    reference = next(iter(plan.references.values()), None)
    volatile = sorted({key for each in plan.references.values() for key in each.volatile})
    if volatile:
        notes.append(f"Not compared, since it depends on time or chance: {', '.join(volatile)}.")
    if reference is not None and not any(each.effects for each in plan.references.values()):
        notes.append("No side effect was seen: only declared tools and endpoints of a file are counted.")
    return tuple(notes)
