"""`crash_test` cuts a graph at every point at which a deadline can fall, and judges what that leaves behind."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from langgraph.checkpoint.base import BaseCheckpointSaver

from docmind_lab.alternatives.alternative_texts import parse_alternatives, require_no_roles
from docmind_lab.core.errors import ConfigurationError, GraphError, SimulationStalled
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.numbers import require_count
from docmind_lab.core.progress import Interrupted, Progress, shows_progress
from docmind_lab.experiments.batch.cell_run import compute_cells
from docmind_lab.experiments.batch.cells import ONE_AT_A_TIME, CellResult
from docmind_lab.experiments.batch.workers import InThisProcess, Workers, workers_for
from docmind_lab.experiments.crash_test.crash_bench import CrashBench, SaverMaker, Subject, saver_maker
from docmind_lab.experiments.crash_test.crash_report import Coverage, CrashReport, Violation, plain_input, timeline_of
from docmind_lab.experiments.crash_test.cut_points import CutPoint, cut_points, in_turn, kinds_of
from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Judgement, Reference, judge
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.trial import observe
from docmind_lab.experiments.examination import KILL, Examined, Trial, names_in
from docmind_lab.experiments.world_options import World
from docmind_lab.systems.own import GraphInput, graph_named
from docmind_lab.systems.workload_by_name import workload_kind

_TRIALS_PER_CELL = 6


@dataclass(frozen=True)
class _Cell:
    """Trials that one worker carries out. id: unique in its crash test."""

    id: str
    subject: Subject
    trials: tuple[Trial, ...]


def _run_cell(cell: _Cell, attempt: int = 1) -> CellResult[Observation]:
    """Carry out the trials of a cell, one after the other. attempt: counts, as in `run_cell`."""
    observations: list[Observation] = []
    with ONE_AT_A_TIME:
        for trial in cell.trials:
            try:
                observations.append(observe(_bench_of(cell.subject), trial))
            except SimulationStalled as error:
                why = str(error).partition("\n")[0]
                if attempt == 1 and len(cell.trials) > 1:
                    return CellResult(cell.id, stalled=why)
                rest = cell.trials[len(observations) :]
                observations += [Observation(each, not_judged=why) for each in rest]
                break
    return CellResult(cell.id, tuple(observations))


@functools.lru_cache(maxsize=1)
def _bench_of(subject: Subject) -> CrashBench:
    """Return the bench of this process for a subject, made at its first use."""
    return CrashBench(subject)


def observe_all(subject: Subject, trials: Sequence[Trial], workers: Workers) -> Iterator[Observation]:
    """Yield what each trial showed, as it is done. Raises: what a trial raises that cannot be carried out at all."""
    chunks = [tuple(trials[at : at + _TRIALS_PER_CELL]) for at in range(0, len(trials), _TRIALS_PER_CELL)]
    cells = {f"{number:05}": _Cell(f"{number:05}", subject, chunk) for number, chunk in enumerate(chunks)}
    for result in compute_cells(cells.values(), _run_cell, workers):
        trials_of = cells[result.cell_id].trials
        if isinstance(result.error, SimulationStalled):
            why = str(result.error).partition("\n")[0]
            yield from (Observation(trial, not_judged=why) for trial in trials_of)
        elif result.error is not None:
            raise result.error
        yield from result.measured


_VERDICT_COLUMNS: Final = ["input_id", "alternative", "at_s", "invariant", "status", "what"]

_Observe = Callable[[Sequence[Trial]], Iterable[Observation]]

Place = tuple[str, str]
"""An input and an alternative."""

_Shown = tuple[Observation, Judgement]
"""A trial that shows what does not hold, and the judgement on it."""


@dataclass(frozen=True)
class _Plan:
    """Everything that is tried. references: by undisturbed trial. points: all of a place; tried: some of them.

    repairs: whether threads are mended before anybody goes on with them.
    """

    subject: Subject
    places: tuple[Place, ...]
    references: Mapping[Trial, Reference]
    points: Mapping[Place, list[CutPoint]]
    tried: Mapping[Place, list[CutPoint]]
    repairs: bool = False

    def trials(self) -> list[Trial]:
        """Return the trials."""
        return [
            Trial(alternative, point.at_s, input_id, repairs=self.repairs)
            for input_id, alternative in self.places
            for point in self.tried[input_id, alternative]
        ]


@answers_wrong_names
@shows_progress("runs", "cutting")
def crash_test(
    system: Any,
    *,
    alternatives: str | None = None,
    world: World | None = None,
    runs: int | None = None,
    seed: int = 7,
    checkpointer: str | SaverMaker | None = None,
    durability: str = "async",
    repair: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> CrashReport:
    """Cut a graph at every point at which a deadline can fall, go on with its thread, and judge what was left behind.

    Args:
        system: A graph or an agent with its inputs, as `compare` takes them. A function that makes the graph is called
            anew for each trial.
        alternatives: What enforces the deadline, separated by commas; "kill" kills the process at each point. None for
            "A,D,E,kill", or "A,C,E,kill" for a graph that is async only.
        world: Latencies of the simulated services, by the name of a profile, and endpoints of other services, whose
            POST, PUT, PATCH and DELETE requests are counted as side effects.
        runs: How many runs are cut at the most, over all inputs and alternatives; None for all.
        seed: Keys every draw.
        checkpointer: A function that makes the checkpointer of one trial, or a reference to it; None for the graph's
            own, or one in memory where it has none.
        durability: When LangGraph writes checkpoints: "sync", "async" or "exit".
        repair: Whether a thread is mended by `repair` after the cut, before it is resumed and before the user's next
            message. Without it, a finding that this mends says so, and its trial is tried with it.
        workers: Number of processes; None for one on each core, where that is worth it.
        progress: Called with (done, all) runs. None draws a bar, from 2 s on.

    Returns:
        The report. Interrupted, that of the finished trials, and its first line says so.

    Raises:
        ConfigurationError: A value cannot be used.
        NotSimulated: The graph leaves virtual time; it says what for.
        GraphError: The graph fails without any deadline.
        KeyboardInterrupt: It was interrupted before any trial was finished.
    """
    if runs is not None:
        require_count("runs", runs, remedy="leave it out for every cut point")
    examined = Examined.of(system, world)
    subject = Subject.of(examined, seed, checkpointer=checkpointer, durability=durability)
    names = _alternatives(alternatives, async_only=workload_kind(subject.workload).async_only)
    done, asked = itertools.count(1), 0

    def observe(trials: Sequence[Trial]) -> Iterator[Observation]:
        nonlocal asked
        asked += len(trials)
        for observation in observe_all(subject, trials, pool):
            if progress is not None:
                progress(next(done), asked)
            yield observation

    observations: list[Observation] = []
    tried: dict[Trial, Sequence[Judgement]] = {}
    interrupted = ""
    try:
        with _workers(subject, checkpointer, workers) as pool:
            plan = dataclasses.replace(_plan(subject, names, runs, observe), repairs=repair)
            for each in observe(plan.trials()):
                observations.append(each)
            report = _report(examined.called, plan, observations)
            again = [] if repair else [_mended(each) for each in report.findings if each.invariant == "conversation"]
            tried |= {each.trial: judge(each, plan.references[each.trial.undisturbed]) for each in observe(again)}
    except KeyboardInterrupt:
        if not observations:
            raise Interrupted("no trial was finished") from None
        report = _report(examined.called, plan, observations)
        interrupted = f"{len(observations)} of {len(plan.trials())} trials"
    findings = tuple(dataclasses.replace(each, remedy=_remedy(each, tried)) for each in report.findings)
    return dataclasses.replace(report, findings=findings, interrupted=interrupted)


def _mended(finding: Violation) -> Trial:
    """Return the trial that shows a finding, with its thread mended."""
    return dataclasses.replace(finding.trial, repairs=True)


def _remedy(finding: Violation, tried: Mapping[Trial, Sequence[Judgement]]) -> str:
    """Return what mends a finding, and what became of its trial with it; empty where no remedy is known.

    tried: the judgements on trials whose thread was mended.
    """
    if finding.invariant == "effects" and finding.what.endswith(("twice", "times")):
        tool = re.search(r"\(tool (.+)\)", finding.what)
        wrapped = f"wrap the tool in dl.once ({tool[1]}), or " if tool else ""
        return f"{wrapped}give the effect an idempotency key"
    judgements = tried.get(_mended(finding))
    if judgements is None:
        return ""
    words = "mend the thread before anybody goes on with it: dl.repair(graph, config), or result.repair()"
    broken = [each.what for each in judgements if each.status == "broken"]
    if broken or all(each.status == "not judged" for each in judgements):
        return f"{words}; tried on this trial, it does not help: {', '.join(broken) or judgements[0].evidence}"
    return f"{words}; tried on this trial, every invariant holds with it"


def _alternatives(written: str | None, *, async_only: bool) -> list[str]:
    names = names_in(written, f"A,C,E,{KILL}" if async_only else f"A,D,E,{KILL}")
    for name in names:
        if name != KILL:
            require_no_roles(parse_alternatives(name))
    # In its own place, whatever the order: the first alternative is what the undisturbed runs are held against.
    return [*(name for name in names if name != KILL), *([KILL] if KILL in names else [])]


def _workers(subject: Subject, checkpointer: Any, count: int | None) -> Workers:
    """Return what carries the trials out: worker processes, or this one for what only it has."""
    is_live = workload_kind(subject.workload).in_this_process or callable(checkpointer)
    if is_live and count not in (None, 1):
        raise ConfigurationError(
            "workers: a live graph or checkpointer is in this process only; name it as module:attribute"
        )
    return Workers(InThisProcess) if is_live else workers_for(1_000, count)


def _plan(subject: Subject, names: Sequence[str], runs: int | None, observe: _Observe) -> _Plan:
    """Run each input undisturbed, and choose at which of its cut points it is tried."""
    places = tuple((one.id, name) for one in subject.inputs for name in names)
    undisturbed = [Trial(name, math.inf, one) for one, name in places]
    controls = {one.id: Trial(names[0], math.inf, one.id, is_control=True) for one in subject.inputs}
    seen: dict[Trial, Observation] = {}
    for observation in observe([*controls.values(), *undisturbed]):
        require_usable(observation)
        seen[observation.trial] = observation
    references = {}
    for trial in undisturbed:
        base, control = seen[Trial(names[0], math.inf, trial.question_id)], seen[controls[trial.question_id]]
        references[trial] = Reference(seen[trial], volatile_keys(base, control))
    points = {(one, name): cut_points(seen[Trial(name, math.inf, one)]) for one, name in places}
    most: list[int | None] = [None] * len(places)
    if runs is not None:
        each, more = divmod(runs, len(places))
        most = [each + (number < more) for number in range(len(places))]
    tried = {place: in_turn(points[place], of_place) for place, of_place in zip(places, most, strict=True)}
    return _Plan(subject, places, references, points, tried)


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


def _report(graph: str, plan: _Plan, observations: Sequence[Observation]) -> CrashReport:
    groups: dict[tuple[str, str, bool], list[_Shown]] = {}
    judged: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    for observation in observations:
        trial = observation.trial
        for judgement in judge(observation, plan.references[trial.undisturbed]):
            place = trial.question_id, trial.alternative, trial.decision_timeout_s
            rows.append((*place, judgement.invariant, judgement.status, judgement.what))
            judged[judgement.invariant] += judgement.status != "not judged"
            if judgement.status in ("broken", "left"):
                key = judgement.invariant, judgement.what, judgement.status == "left"
                groups.setdefault(key, []).append((observation, judgement))
    findings = [_violation(key, shown, plan) for key, shown in groups.items()]
    rank = list(INVARIANTS)
    findings.sort(key=lambda finding: (-finding.trials, rank.index(finding.invariant), finding.what))
    subject = plan.subject
    defaults = {each.name: each.default for each in dataclasses.fields(Subject)}
    options = {
        name: getattr(subject, name)
        for name in ("profile", "deadline_key", "durability", "checkpointer")
        if getattr(subject, name) != defaults[name]
    }
    if endpoints := workload_kind(subject.workload).endpoints:
        options["endpoints"] = endpoints
    if plan.repairs:
        options["repair"] = True
    objects = ["graph"] if workload_kind(subject.workload).in_this_process else []
    if saver_maker(subject) is not None and not subject.checkpointer:
        objects, options["checkpointer"] = [*objects, "checkpointer"], None
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
        tuple(objects),
        pd.DataFrame(rows, columns=_VERDICT_COLUMNS),
    )


def _violation(key: tuple[str, str, bool], shown: list[_Shown], plan: _Plan) -> Violation:
    invariant, what, is_left = key
    inputs: dict[str, GraphInput] = {one.id: one for one in plan.subject.inputs}

    def rank(each: _Shown) -> tuple[int, float, str]:
        """The smallest input, then the earliest cut."""
        trial = each[0].trial
        size = len(json.dumps(plain_input(inputs[trial.question_id].given), default=str))
        return size, trial.decision_timeout_s, trial.alternative

    observation, judgement = min(shown, key=rank)
    names = dict.fromkeys(each.trial.alternative for each, _ in shown)
    return Violation(
        invariant,
        what,
        tuple(names),
        len(shown),
        observation.trial,
        inputs[observation.trial.question_id].given,
        judgement.evidence,
        timeline_of(observation, judgement),
        is_left,
        settings=inputs[observation.trial.question_id].settings,
    )


def _coverage(place: Place, plan: _Plan, observations: Sequence[Observation]) -> Coverage:
    points = plan.points[place]
    mine = [each for each in observations if (each.trial.question_id, each.trial.alternative) == place]
    at = {each.trial.decision_timeout_s for each in mine}
    tried = [point for point in points if point.at_s in at]
    counted, counted_tried = kinds_of(points), kinds_of(tried)
    refused = [each.not_judged for each in mine if each.not_judged]
    skipped = ""
    if len(plan.tried[place]) < len(points):
        skipped = f"{len(points) - len(plan.tried[place])} skipped for the limit of runs"
    return Coverage(
        *place,
        len(points),
        len(tried),
        skipped,
        {kind: (count, counted_tried.get(kind, 0)) for kind, count in counted.items()},
        (len(refused), refused[0] if refused else ""),
    )


def _notes(plan: _Plan) -> tuple[str, ...]:
    notes = []
    graph = graph_named(plan.subject.workload)
    if saver_maker(plan.subject) is None and not isinstance(graph.checkpointer, BaseCheckpointSaver):
        notes.append("The graph has no checkpointer of its own; it was given one in memory.")
    volatile = sorted({key for each in plan.references.values() for key in each.volatile})
    if volatile:
        notes.append(f"Not compared, since it depends on time or chance: {', '.join(volatile)}.")
    if not any(each.effects for each in plan.references.values()):
        notes.append("No side effect was seen: only declared tools and endpoints of a file are counted.")
    return tuple(notes)
