"""`doctor`: probe a graph, put the deadline where it is hardest to keep, and report which alternatives keep it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.alternative_catalogue import CATALOGUE, default_alternatives, letter_of
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import GraphError, NotSimulated
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.numbers import require_allowance, require_seconds
from docmind_lab.core.progress import Interrupted, Progress, shows_progress
from docmind_lab.core.text import count_of, node_in_words
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.doctor_report import LintReport, Verdict, failed_after_made_up, verdict_of
from docmind_lab.experiments.doctor.facts import capped_in
from docmind_lab.experiments.doctor.findings import (
    Evidence,
    Symptom,
    problems_of,
    symptoms_of_facts,
    symptoms_of_overruns,
)
from docmind_lab.experiments.doctor.late_runs import Overrun, cut_behind, overrun_of
from docmind_lab.experiments.doctor.probing import GraphProbe
from docmind_lab.experiments.doctor.scenes import UNTIMED, Scene
from docmind_lab.experiments.examination import Examined, Trial, names_in
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.world_options import World
from docmind_lab.systems.own.inputs import input_keys
from docmind_lab.systems.own.own_kind import parts_of
from docmind_lab.systems.own.references import AnyGraph


@answers_wrong_names
@shows_progress("runs")
def doctor(
    system: Any,
    decision_timeout_s: float = 20.0,
    *,
    alternatives: str | None = None,
    world: World | None = None,
    slack_s: float = HELD_WITHIN_S,
    seed: int = 7,
    progress: Progress | None = None,
) -> LintReport:
    """Report which alternatives keep a deadline on a graph, and which nodes prevent it, from measured runs.

    A request that no simulated service answers gets an empty JSON object. The report's `unanswered` has all of them,
    and its `rows_to_fill_in` a table of endpoints for them; until it is given, the verdicts rest on made-up answers.

    Args:
        system: A graph or an agent with its inputs: dl.graph(…) or dl.agent(…), or a graph or a reference to one.
        decision_timeout_s: The budget, in seconds.
        alternatives: Those in question; None for every way to enforce a deadline.
        world: Latencies of the simulated services, by the name of a profile, and endpoints of other services.
        slack_s: How much later the caller may be back, and the last work be over, in seconds.
        seed: Keys every draw of the simulated services.
        progress: Called with (done, all) runs under a deadline. None draws a bar, from 2 s on.

    Returns:
        The report. Interrupted, it has the alternatives that were judged, and its first line says so.

    Raises:
        ConfigurationError: A value cannot be used.
        NotSimulated: The graph leaves virtual time, or fails after made-up answers; it says what for.
        GraphError: The graph fails without any deadline.
        KeyboardInterrupt: It was interrupted before any alternative was judged.
    """
    require_seconds("decision timeout", decision_timeout_s)
    require_allowance("slack_s", slack_s)
    names, examined = names_in(alternatives, _all_that_enforce()), Examined.of(system, world)
    bench, deadline_key = TrialBench(examined, seed), examined.graph.deadline_key
    try:
        if alternatives is None:
            # An agent cannot have them all.
            names = [name for name in names if bench.kind.possible(parse_alternatives(name))]
        modes = {name: one.node_mode for name, one in zip(names, bench.parse(",".join(names)), strict=True)}
        wanted_key = deadline_key if deadline_key != DEADLINE_KEY or deadline_key in input_keys(bench.graph) else ""
        try:
            probed = GraphProbe(bench, decision_timeout_s, slack_s, wanted_key)
        except GraphError as error:
            if not bench.unanswered:
                raise
            raise NotSimulated(failed_after_made_up(bench.unanswered, error), bench.unanswered) from error
        loose = [*_threads_out_of_reach(bench, probed)]
        verdicts, overruns, behind = _judge(bench, probed, modes, slack_s, progress, is_held=not loose)
        symptoms = [*_symptoms_of_probe(bench, probed, modes)]
        symptoms += [] if any(overrun.cause == "no_context" for overrun in overruns) else loose
        symptoms += symptoms_of_overruns({overrun: bench.command(overrun.trial) for overrun in overruns})
        for facts in probed.facts.values():
            symptoms += symptoms_of_facts(facts, decision_timeout_s)
    finally:
        bench.close()
    return LintReport(
        examined.called,
        decision_timeout_s,
        slack_s,
        tuple(probed.facts.values()),
        problems_of(symptoms),
        verdicts,
        tuple(overruns),
        unreached=_unreached(bench.graph, probed),
        unprobed=tuple(probed.unprobed),
        requests=_requests(probed),
        unanswered=bench.unanswered,
        cut_behind=tuple(sorted(behind)),
        interrupted=f"{len(verdicts)} of {len(modes)} alternatives" if len(verdicts) < len(modes) else "",
    )


def _unreached(graph: AnyGraph, probed: GraphProbe) -> tuple[str, ...]:
    """Return the nodes and tools of a graph that no run without a deadline came to."""
    scenes = list(probed.scenes.values())
    nodes = {visit.place.path[0] for scene in scenes for visit in scene.outermost()}
    tools = {name for scene in scenes for name in scene.seen.tools}
    parts = parts_of(graph)
    missing = [node_in_words(name) for name in parts["nodes"] if name not in nodes]
    return (*missing, *(f"tool {name}" for name in parts["tools"] if name not in tools))


def _requests(probed: GraphProbe) -> tuple[tuple[str, str, int], ...]:
    asked: Counter[tuple[str, str]] = Counter()
    for scene in probed.scenes.values():
        asked |= scene.seen.requests
    return tuple((address, node, count) for (address, node), count in asked.items())


def _all_that_enforce() -> str:
    return ",".join(letter_of(level) for level in default_alternatives() if not CATALOGUE[level].is_control)


def _symptoms_of_probe(bench: TrialBench, probed: GraphProbe, modes: Mapping[str, str]) -> Iterator[Symptom]:
    """Yield the modes in which the graph fails, and the nodes that the key of the deadline does not reach."""

    def evidence(scene: Scene, says: str) -> Evidence:
        return Evidence(scene.measured.run.run_id, says, bench.command(scene.trial))

    for alternative, scene in probed.cannot.items():
        mode = "sync" if alternative == UNTIMED else "async"
        failed = [visit for visit in scene.outermost() if visit.error_type == scene.failed]
        node = failed[0].place.role if failed else ""
        says = f"{scene.failed} in a run that is {mode} and has no deadline"
        yield node, "cannot_run", evidence(scene, says), tuple(name for name, of in modes.items() if of == mode)
    for scene in (scene for scene in probed.with_key.values() if scene.seen.deadline_key):
        for node in scene.nodes():
            if absent := scene.without_key(node):
                says = f"no {scene.seen.deadline_key} in what was given to {', '.join(absent)}"
                yield node, "key", evidence(scene, says), ()


def _threads_out_of_reach(bench: TrialBench, probed: GraphProbe) -> Iterator[Symptom]:
    """Yield the runs in which a deadline that travels does not reach what no node asks."""
    for scene in probed.with_key.values():
        reached, sent = capped_in(scene, "")
        if reached < sent:
            says = f"the deadline reached {reached} of {count_of(sent, 'request')} of no node"
            yield "", "no_context", Evidence(scene.measured.run.run_id, says, bench.command(scene.trial)), ()


def _judge(
    bench: TrialBench,
    probed: GraphProbe,
    modes: Mapping[str, str],
    slack_s: float,
    progress: Progress | None,
    *,
    is_held: bool,
) -> tuple[tuple[Verdict, ...], list[Overrun], set[str]]:
    """Return a verdict on each alternative, fewer after an interrupt, the overruns, and what was cut behind an answer.

    is_held: as in `overrun_of`. Raises: Interrupted.
    """
    blocking = [facts.node for facts in probed.facts.values() if facts.mode == "blocking async"]
    refused = {"sync" if alternative == UNTIMED else "async": scene for alternative, scene in probed.cannot.items()}
    verdicts, overruns, behind, done = [], [], set[str](), 0
    try:
        for name, mode in modes.items():
            if mode in refused:
                why = f"the graph fails with {refused[mode].failed} when it runs {mode}"
                verdicts.append(Verdict(name, "does not run", why, 0, 0))
                continue
            late = []
            for decision_timeout_s, fault, question_id in probed.trials:
                trial = Trial(name, decision_timeout_s, question_id, fault)
                for each, measured, line in _both_forms(bench, trial):
                    behind |= cut_behind(measured)
                    overrun = overrun_of(
                        each,
                        measured,
                        is_async=mode == "async",
                        blocking=blocking,
                        slack_s=slack_s,
                        is_held=is_held,
                    )
                    late += [dataclasses.replace(overrun, blocked_at=line)] if overrun is not None else []
                done += 1
                if progress is not None:
                    progress(done, sum(of not in refused for of in modes.values()) * len(probed.trials))
            verdicts.append(verdict_of(name, len(probed.trials), late, slack_s, probed.unprobed))
            overruns += late
    except KeyboardInterrupt:
        if not verdicts:
            raise Interrupted("no alternative was judged") from None
    return tuple(verdicts), overruns, behind


def _both_forms(bench: TrialBench, trial: Trial) -> Iterator[tuple[Trial, MeasuredRun, str]]:
    """Yield a trial, its run and the line that blocked the event loop; where one did, the same as awaited too."""
    measured = bench.measure(trial)
    lines = [str(event.detail["line"]) for event in measured.events if event.event == "loop_blocked"]
    yield trial, measured, "".join(lines[:1])
    if lines:
        as_awaited = dataclasses.replace(trial, awaited=True)
        yield as_awaited, bench.measure(as_awaited), lines[0]
