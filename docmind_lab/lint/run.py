"""`lint_graph`: probe a graph, put the deadline where it hurts, and say which alternatives keep it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.deadlines import DEADLINE_KEY, require_seconds
from docmind_lab.errors import ConfigurationError, GraphError
from docmind_lab.findings.held import HELD_WITHIN_S
from docmind_lab.lint.facts import (
    SLOWEST_GAP_S,
    NodeFacts,
    calls_in,
    kinds_struck,
    retries_of,
    timeouts_of,
    trickled_of,
    worst_case_of,
)
from docmind_lab.lint.findings import Evidence, Findings, of_facts, of_overruns
from docmind_lab.lint.observed import Observed, Seen
from docmind_lab.lint.overruns import Overrun, overrun_of
from docmind_lab.lint.probe import UNTIMED, UNTIMED_ASYNC, Scene, look
from docmind_lab.lint.trials import Bench, Trial
from docmind_lab.lint.verdict import LintReport, Verdict, verdict_of
from docmind_lab.workloads.own import Inputs
from docmind_lab.workloads.own.inputs import input_keys
from docmind_lab.workloads.own.reference import compiled, load_graph

ALTERNATIVES = "A,A:per_read,B,C,D,E,F"
"""Those that are asked when none are named: every way to enforce a deadline, and the cap that most clients have."""

# Of a stretch that cannot be cut: early enough that most of it is still to come.
_CUT_AFTER = 0.1
# A node that begins after the deadline is reached with this much left, seconds.
_TO_HANG_IN_S = 1.0

Progress = Callable[[int, int], None]


@dataclass
class _Probed:
    """What has been found out before any deadline: scenes by question, and facts by node."""

    scenes: dict[tuple[str, str], Scene] = field(default_factory=dict)
    facts: dict[str, NodeFacts] = field(default_factory=dict)
    trials: dict[tuple[float, str, str], None] = field(default_factory=dict)
    cannot: dict[str, Scene] = field(default_factory=dict)

    def by_colour(self, question_id: str) -> list[Scene]:
        return [scene for (of, _), scene in self.scenes.items() if of == question_id]


def lint_graph(
    graph: Any,
    inputs: Inputs,
    *,
    decision_timeout_s: float = 20.0,
    slack_s: float = HELD_WITHIN_S,
    alternatives: str = ALTERNATIVES,
    deadline_key: str = DEADLINE_KEY,
    profile: str = "typical",
    seed: int = 7,
    progress: Progress | None = None,
) -> LintReport:
    """Which alternatives keep the deadline on a graph, per node what stands in the way, each by a measured run.

    graph, inputs, deadline_key: as `compare` takes them. decision_timeout_s: the budget. slack_s: how much later the
    caller may be back, and the last work be over. alternatives: those in question. profile, seed: of the simulated
    services. progress: called with (done, all) runs under a deadline.

    Raises: ConfigurationError for a value that cannot be used; NotSimulated for a graph that leaves virtual time,
    naming what for; GraphError for one that fails without any deadline.
    """
    require_seconds("decision timeout", decision_timeout_s)
    if not (math.isfinite(slack_s) and slack_s >= 0):
        raise ConfigurationError(f"slack_s must be 0 or more finite seconds, not {slack_s!r}")
    made = load_graph(graph) if isinstance(graph, str) else compiled(graph, getattr(graph, "__name__", "") or "graph")
    shown = graph if isinstance(graph, str) else made.get_name()
    names = [name.strip() for name in alternatives.split(",") if name.strip()]
    bench = Bench(
        graph if isinstance(graph, str) else made, inputs, deadline_key=deadline_key, profile=profile, seed=seed
    )
    try:
        colours = {name: one.node_colour for name, one in zip(names, bench.parsed(alternatives), strict=True)}
        wanted_key = deadline_key if deadline_key != DEADLINE_KEY or deadline_key in input_keys(made) else ""
        probed = _probe(bench, decision_timeout_s, slack_s, wanted_key)
        findings = Findings()
        _of_probe(bench, findings, probed, colours, wanted_key)
        verdicts, overruns = _judge(bench, findings, probed, colours, slack_s, progress)
        of_overruns(findings, {overrun: bench.command(overrun.trial) for overrun in overruns})
        for facts in probed.facts.values():
            of_facts(findings, facts, decision_timeout_s)
    finally:
        bench.close()
    nodes = tuple(probed.facts.values())
    return LintReport(shown, decision_timeout_s, slack_s, nodes, findings.all(), verdicts, tuple(overruns))


def _probe(bench: Bench, decision_timeout_s: float, slack_s: float, key: str) -> _Probed:
    probed = _Probed()
    for question in bench.questions():
        for alternative in (UNTIMED, UNTIMED_ASYNC):
            scene = look(bench, alternative, question.id)
            if scene.failed:
                probed.cannot.setdefault(alternative, scene)
            else:
                probed.scenes[question.id, alternative] = scene
        scenes = probed.by_colour(question.id)
        if not scenes:
            raise GraphError(
                f"the graph fails without any deadline, with {probed.cannot[UNTIMED].failed} "
                f"(input {question.id}); have it answer its inputs first"
            )
        probed.trials[decision_timeout_s, "none", question.id] = None
        # With the deadline handed to it, since otherwise its key is empty.
        told = (
            look(bench, "A" if scenes[0].trial.alternative == UNTIMED else "E", question.id, key=key) if key else None
        )
        for node in dict.fromkeys(node for scene in scenes for node in scene.nodes()):
            if node not in probed.facts:
                probed.facts[node] = _facts(bench, probed, scenes, told, node, decision_timeout_s, slack_s)
    return probed


def _facts(
    bench: Bench,
    probed: _Probed,
    scenes: list[Scene],
    told: Scene | None,
    node: str,
    decision_timeout_s: float,
    slack_s: float,
) -> NodeFacts:
    """The facts of a node; what its runs under a deadline are goes to `probed.trials`."""
    first, question_id = scenes[0], scenes[0].trial.question_id
    retries = worst = trickled = None
    timeouts_s = timeouts_of(first, node)
    disturbed = list(scenes)
    struck = kinds_struck(first, node)
    if struck is not None:
        hang, fail = struck
        failing = [look(bench, scene.trial.alternative, question_id, fault=f"{fail}:{node}") for scene in scenes]
        disturbed += failing
        retries = retries_of(bench, first, failing[0], node)
        worst = worst_case_of(bench, first, node, hang)
        begins_at_s = first.outermost(node)[0].started_at_s
        within_s = max(decision_timeout_s, begins_at_s + _TO_HANG_IN_S)
        probed.trials[within_s, f"{hang}:{node}", question_id] = None
        if hang == "hang":
            probed.trials[within_s, f"trickle={min(within_s / 4, SLOWEST_GAP_S)!r}:{node}", question_id] = None
            if timeouts_s:
                trickled = trickled_of(bench, first, node, timeouts_s[0])
    for scene in disturbed:
        stretch = scene.longest_code(node)
        if stretch is not None and (stretch[1] - stretch[0]) * (1 - _CUT_AFTER) > slack_s:
            cut_at_s = round(stretch[0] + (stretch[1] - stretch[0]) * _CUT_AFTER, 6)
            probed.trials[cut_at_s, scene.trial.fault, question_id] = None
    codes = [scene.longest_code(node) for scene in scenes]
    under_loop = scenes[-1]
    return NodeFacts(
        node=node,
        colour=under_loop.colour(node) if under_loop.trial.alternative == UNTIMED_ASYNC else "sync only",
        calls=calls_in(first, node),
        timeouts_s=timeouts_s,
        code_s=max((to - start for start, to in (code for code in codes if code is not None)), default=0.0),
        retries=retries,
        worst_case=worst,
        trickled=trickled,
        has_key=None if told is None else not missing_key(told, node),
    )


def missing_key(told: Scene, node: str) -> list[str]:
    """The nodes at and inside this one that were not given the key of the deadline."""
    visits = [visit for visit in told.seen.visits if visit.place.role == node and not visit.had_key]
    return list(dict.fromkeys(str(visit.place) for visit in visits))


def _of_probe(bench: Bench, findings: Findings, probed: _Probed, colours: Mapping[str, str], key: str) -> None:
    for alternative, scene in probed.cannot.items():
        colour = "sync" if alternative == UNTIMED else "async"
        failed = [visit for visit in scene.outermost() if visit.error_type == scene.failed]
        node = failed[0].place.role if failed else ""
        says = f"{scene.failed} in a run that is {colour} and has no deadline"
        evidence = Evidence(scene.measured.run.run_id, says, bench.command(scene.trial))
        findings.add(node, "cannot_run", evidence, [name for name, of in colours.items() if of == colour])
    if not key:
        return
    for question in bench.questions():
        scenes = probed.by_colour(question.id)
        told = look(bench, "A" if scenes[0].trial.alternative == UNTIMED else "E", question.id, key=key)
        for node in told.nodes():
            absent = missing_key(told, node)
            if absent:
                says = f"no {key} in what was given to {', '.join(absent)}"
                findings.add(node, "key", Evidence(told.measured.run.run_id, says, bench.command(told.trial)))


def _judge(
    bench: Bench,
    findings: Findings,
    probed: _Probed,
    colours: Mapping[str, str],
    slack_s: float,
    progress: Progress | None,
) -> tuple[tuple[Verdict, ...], list[Overrun]]:
    blocking = [facts.node for facts in probed.facts.values() if facts.colour == "blocking async"]
    refused = {"sync" if alternative == UNTIMED else "async": scene for alternative, scene in probed.cannot.items()}
    verdicts, overruns, done = [], [], 0
    for name, colour in colours.items():
        if colour in refused:
            why = f"the graph fails with {refused[colour].failed} when it runs {colour}"
            verdicts.append(Verdict(name, "does not run", why, 0, 0))
            continue
        late = []
        for decision_timeout_s, fault, question_id in probed.trials:
            trial, seen = Trial(name, decision_timeout_s, question_id, fault), Seen()
            measured = bench.measure(trial, seen_by=lambda inner, seen=seen: Observed(inner, seen))
            found = overrun_of(trial, measured, seen, is_async=colour == "async", blocking=blocking, slack_s=slack_s)
            late += [found] if found is not None else []
            done += 1
            if progress is not None:
                progress(done, len(colours) * len(probed.trials))
        verdicts.append(verdict_of(name, len(probed.trials), late, slack_s))
        overruns += late
    return tuple(verdicts), overruns
