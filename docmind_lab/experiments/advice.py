"""`recommend`: which way to enforce a deadline on a system, and how long the deadline should be, in one call.

    advice = dl.recommend(dl.graph("my_app.py:graph", "inputs.jsonl"))
    advice                                      # the way and the seconds, what they rest on, and what is missing
    dl.enforce(graph, advice.decision_timeout_s, advice.alternative)

The system runs without a deadline first. Its own times say how long the decision timeout must be. `doctor` says which
alternatives keep such a deadline. A sweep measures those, and no other is advised.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.alternative_catalogue import label_of, letter_of, with_label
from docmind_lab.core.errors import ConfigurationError, GraphError, NotSimulated
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.progress import Progress, shows_progress
from docmind_lab.core.text import count_of, join_names, one_line, percent
from docmind_lab.experiments.comparison import compare
from docmind_lab.experiments.comparison.comparison import DEFAULT_SEED
from docmind_lab.experiments.doctor.doctor_report import LintReport
from docmind_lab.experiments.doctor.doctor_run import doctor
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.experiments.world_options import AnyWorld, World
from docmind_lab.findings.finding import Block, Code, Finding, MakesFinding, after_interrupt
from docmind_lab.findings.recommendation import Recommendation
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.services.endpoint_shape import Unanswered
from docmind_lab.services.endpoints import write_rows
from docmind_lab.statistics.shares import runs_needed_for_share, share_interval
from docmind_lab.systems.system_catalogue import Agent, Graph, System, system_of

# 73 runs without a failure show that 95 % are answered in time, with 95 % confidence; some more leave room for one.
_RUNS: Final = 120
_CONTROL: Final = "unguarded"
_USUAL_S: Final = 20.0
# A run is observed for five decision timeouts. Where too few end, they are given this many times longer.
_LONGER: Final = 8
# Timeouts that people set, from 0.1 s to 8,000 s; each is at most a third above the one before.
_ROUND_S: Final = tuple(
    round(step * scale, 2)
    for scale in (0.1, 1, 10, 100, 1000)
    for step in (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
)
# Which share of a decision timeout is worth a word where Python's own work takes it.
_MUCH_CPU: Final = 0.1
# What may be advised: the first of these that any alternative earns. "does not keep" never is.
_TIERS: Final = ("keeps", "not known", "caller only")


@dataclass(frozen=True, eq=False, repr=False)
class Advice(MakesFinding):
    """Which alternative to take and with which decision timeout, or why nothing can be said yet.

    Args:
        title: The advice in a sentence, with what it was measured on.
        alternative: The alternative as `enforce` takes it; the first where several are as good. Empty for none.
        decision_timeout_s: The decision timeout in seconds; NaN for none.
        missing: What the advice lacks, with the call and the option that get it.
        report: What `doctor` found at that decision timeout; None where it cannot examine the system.
        study: The runs of the sweep; None without one.
        recommendation: The smallest decision timeout of each alternative, with its evidence; None without a sweep.
        unanswered: Requests that no simulated service answers.
    """

    title: str
    alternative: str = ""
    decision_timeout_s: float = math.nan
    missing: tuple[str, ...] = ()
    report: LintReport | None = None
    study: Study | None = None
    recommendation: Recommendation | None = None
    unanswered: tuple[Unanswered, ...] = ()

    @property
    def interrupted(self) -> str:
        """How much was finished, in words, of what was interrupted; empty otherwise."""
        of_runs = "" if self.study is None else self.study.interrupted
        return of_runs or ("" if self.report is None else self.report.interrupted)

    def write_endpoints(self, file: str | os.PathLike[str]) -> None:
        """Add a row for each request that nothing answers to a file of endpoints, to be filled in; make it if need be.

        Where every request was answered, nothing is written.

        Args:
            file: The file, in TOML.

        Raises:
            ConfigurationError: The file is there, and is none of endpoints.
        """
        if self.unanswered:
            write_rows(file, self.unanswered)

    def finding(self) -> Finding:
        """Return the advice, what is missing, and what `doctor` says of each alternative."""
        words: list[Block] = [after_interrupt(self.interrupted, self.title)]
        found = self.recommendation
        if found is not None and found.settings:
            words.append(Code(found.settings, with_label(found.settings)))
        elif found is not None:
            words.append(tuple(itertools.takewhile(lambda line: not line.startswith("Reached:"), found.sentences)))
        words.append(tuple(f"{request} ({request.where})" for request in self.unanswered))
        words += [f"Missing: {each}" for each in self.missing]
        words += [] if self.report is None else self.report.verdict_lines()
        numbers = {name: getattr(self, name) for name in ("title", "alternative", "decision_timeout_s", "missing")}
        return Finding(tuple(words), numbers, {} if found is None else {"alternatives": found.frame})


@answers_wrong_names
@shows_progress("runs")
def recommend(
    system: Any = None,
    target: float = 0.95,
    *,
    confidence: float = 0.95,
    alternatives: str | None = None,
    world: AnyWorld | None = None,
    runs: int = _RUNS,
    seed: int = DEFAULT_SEED,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Advise an alternative and a decision timeout for a system, from what `doctor` and a sweep of it measure.

        dl.recommend(dl.graph(my_graph, ["…"]))
        dl.recommend(dl.graph("my_app.py:graph", "inputs.jsonl"), 0.9, world=dl.World(endpoints="endpoints.toml"))

    An alternative that `doctor` found not to keep the deadline is not advised. A graph and an agent are examined in a
    simulated world; other systems, and recordings and live endpoints, are swept alone, which the advice says. To try
    timeouts of your own: `dl.sweep(system, {"decision_timeout_s": [5, 10]}, runs=120).recommend()`.

    Args:
        system: What is under the deadline, as `compare` takes it.
        target: Share of runs that should be answered in time, above 0, below 1.
        confidence: How sure to be of it, above 0, below 1.
        alternatives: Those in question, such as "A,C:propagate". None means all that enforce a deadline.
        world: What the system meets, as `compare` takes it.
        runs: Questions asked without a deadline, and of each alternative.
        seed: Keys the questions, latencies and faults.
        out: A folder for the study of the sweep, as `sweep` takes it.
        workers: Processes in virtual time, as `sweep` takes them.
        progress: Called with (runs done, all runs) of each step.

    Returns:
        The advice. Where there is none it says why: other services' answers are missing, the graph fails without any
        deadline, no way keeps it, or the runs are too few.

    Raises:
        ConfigurationError: A value cannot be used.
        NotSimulated: The graph leaves virtual time.
    """
    runs_needed_for_share(target, confidence)  # which refuses what is no share
    subject = system_of(system)
    same: dict[str, Any] = {"world": world, "runs": runs, "seed": seed, "workers": workers, "progress": progress}
    examine = _examination(subject, world, seed, progress)
    report = None
    try:
        try:
            control = _without_a_deadline(subject, target, same)
        except NotSimulated:
            # An examination comes to all requests that nothing answers, and not only to the first.
            if examine is None or not (report := examine(_USUAL_S, alternatives)).unanswered:
                raise
            return _without_answers(report.unanswered, "", report)
        if not control.manifest["complete"]:
            return Advice("No advice yet: the runs without a deadline are too few.", study=control)
        timeout_s = _enough_for(control.runs, target, confidence)
        report = None if examine is None else examine(timeout_s, alternatives)
        if report is not None and report.interrupted:
            return Advice("No advice yet: the examination was interrupted.", report=report, study=control)
    except NotSimulated as error:
        if not error.requests:
            raise
        return _without_answers(error.requests, f" With made-up answers {error.__cause__}.")
    except GraphError as error:
        return Advice(f"No advice yet: {error}.")
    factors: dict[str, Any] = {"decision_timeout_s": [timeout_s], "alternatives": alternatives}
    if report is not None:
        if report.unanswered:
            return _without_answers(report.unanswered, "", report)
        factors["alternatives"] = ",".join(_allowed(report))
        if not factors["alternatives"]:
            return Advice(f"No advice: {report.finding().title}", missing=tuple(_gaps(world, report)), report=report)
    given = {name: value for name, value in factors.items() if value is not None}
    study = sweep(subject, given, out=out, **same)
    try:
        found = study.recommend(target, confidence)
    except ConfigurationError:
        if not study.interrupted:
            raise
        return Advice("No advice yet: none of the runs enforces a deadline.", report=report, study=study)
    advice = Advice(
        "", missing=tuple(_gaps(world, report, study, found)), report=report, study=study, recommendation=found
    )
    measured = summarise(study.runs, study.manifest).title
    if not found.arms:
        return dataclasses.replace(advice, title=f"No advice yet: {found.choice[0]} {measured}.")
    choose = "Choose" if report is None or report.keeps else f"{report.finding().title} What comes nearest:"
    first = found.frame[found.frame["arm"].astype("str") == found.arms[0]].iloc[0]
    title = (
        f"{choose} {join_names([one_line(arm) for arm in found.arms], 'or')}, with {timeout_s:g} s: "
        f"{first['answered_in_time']} of {first['runs']} runs were answered in time, which shows "
        f"{percent(first['low'], 1)} ({measured}). {_shorter(control.runs, timeout_s)}"
    )
    text = next(text for label, text in _texts_of(given.get("alternatives")) if found.arms[0].startswith(label))
    return dataclasses.replace(advice, title=title, alternative=text, decision_timeout_s=timeout_s)


Examine = Callable[[float, str | None], LintReport]


def _examination(system: System, world: AnyWorld | None, seed: int, progress: Progress | None) -> Examine | None:
    """Return `doctor` for a system, as a function of a decision timeout and alternatives; None where there is none."""
    if not isinstance(system, Graph | Agent) or type(world) not in (World, type(None)):
        return None
    # It examines neither of these: a budget ends a run for another reason.
    plain = dataclasses.replace(system, budget=None)
    if isinstance(plain, Graph):
        plain = dataclasses.replace(plain, enforced=False)
    latencies, endpoints = getattr(world, "latencies", None), getattr(world, "endpoints", None)
    met = World(latencies=latencies if isinstance(latencies, str) else None, endpoints=endpoints)
    return lambda timeout_s, alternatives: doctor(
        plain, timeout_s, alternatives=alternatives, world=met, seed=seed, progress=progress
    )


def _without_a_deadline(system: System, target: float, same: Mapping[str, Any]) -> Study:
    """Return runs without a deadline, observed for longer where too few of them ended. same: arguments of `compare`."""
    control = compare(system, alternatives=_CONTROL, **same)
    if (control.runs["outcome"].astype("str") == "unfinished").mean() > 1 - target:
        return compare(system, _LONGER * control.runs["decision_timeout_s"].max(), alternatives=_CONTROL, **same)
    return control


def _enough_for(control: pd.DataFrame, target: float, confidence: float) -> float:
    """Return the shortest round timeout that surely has the target share answered in time.

    A run that takes longer without a deadline than a timeout would not have been answered within it. Where no timeout
    surely has the target answered, the longest run counts; without any answer, the timeout of the runs.
    """
    times_s = sorted(control.loc[control["outcome"].astype("str") == "answered", "returned_at_s"])
    sure = (n for n in range(1, len(control) + 1) if share_interval(n, len(control), confidence).low >= target)
    enough = min(next(sure, len(control)), len(times_s))
    longest_s = times_s[enough - 1] if times_s else control["decision_timeout_s"].max()
    return _ROUND_S[bisect.bisect_left(_ROUND_S, longest_s)]


def _shorter(control: pd.DataFrame, timeout_s: float) -> str:
    """Return how many runs take no longer, without a deadline, than the next shorter round timeout."""
    below_s = _ROUND_S[max(bisect.bisect_left(_ROUND_S, timeout_s) - 1, 0)]
    within = int((control["returned_at_s"] <= below_s).sum())
    return f"Without a deadline {within} of {len(control)} take up to {below_s:g} s."


def _allowed(report: LintReport) -> list[str]:
    """Return the alternatives that may be advised: those that keep the deadline, or else what comes nearest to it.

    Of several under which work goes on, those under which it goes on for the shortest time.
    """
    of_tier = ([each for each in report.verdicts if each.keeping == tier] for tier in _TIERS)
    best = next((verdicts for verdicts in of_tier if verdicts), [])
    work_s = {each.alternative: 0.0 if each.worst is None else each.worst.work_s for each in best}
    return [name for name, each_s in work_s.items() if each_s <= min(work_s.values()) + report.slack_s]


def _texts_of(alternatives: str | None) -> Iterator[tuple[str, str]]:
    """Yield label and text of alternatives, as tables have the one and calls take the other."""
    parsed = parse_alternatives(alternatives)
    texts = [letter_of(each.name) for each in parsed] if alternatives is None else alternatives.split(",")
    for each, text in zip(parsed, texts, strict=True):
        yield label_of(each.name, options_json(each)), text


def _without_answers(requests: tuple[Unanswered, ...], after: str, report: LintReport | None = None) -> Advice:
    """Return that requests need answers first. after: what came of made-up ones, in a sentence."""
    file = "endpoints.toml"
    missing = (
        f'what these services answer. advice.write_endpoints("{file}") (--write-endpoints {file}) writes rows to fill '
        f'in; then dl.recommend(…, world=dl.World(endpoints="{file}")) (--endpoints {file})'
    )
    title = f"No advice yet: no simulated service answers {count_of(len(requests), 'request')}.{after}"
    return Advice(title, missing=(missing,), report=report, unanswered=requests)


def _gaps(
    world: AnyWorld | None, report: LintReport | None, study: Study | None = None, found: Recommendation | None = None
) -> Iterator[str]:
    """Yield what an advice lacks. study, found: None where nothing was swept."""
    if found is not None and not found.arms and found.runs_needed:
        yield f"runs; {found.runs_needed} of each alternative would settle it: runs={found.runs_needed} (--runs)"
    if study is not None and not study.manifest["complete"]:
        reasons = [f"cell {cell['cell']} failed: {cell['reason']}" for cell in study.manifest["failed_cells"]]
        yield f"runs, beside these {len(study.runs)}: {'; '.join(reasons) or 'the sweep was interrupted'}"
    if report is None:
        yield 'what a request that hangs does: dl.compare(…, world=dl.World(faults="hang")) (--faults hang)'
    elif not report.keeps:
        kinds = {verdict.keeping for verdict in report.verdicts}
        if kinds & {"caller only", "does not keep"}:
            yield "a graph that lets itself be cut: advice.report (docmind-lab doctor) names what stands in the way"
        elif "not known" in kinds:
            yield "a request that can be made to hang: advice.report (docmind-lab doctor) names those that could not"
    if report is not None and report.unreached:
        yield f"runs that reach {join_names(list(report.unreached))}: give inputs that lead there"
    if study is not None and (study.runs["clock"] == "virtual").any():
        cpu_s = study.manifest["machine_use"]["cpu_s_per_run"] or 0.0
        if cpu_s > _MUCH_CPU * study.runs["decision_timeout_s"].min():
            took = f"takes no time in virtual time, and took {cpu_s:.2g} s of CPU a run here"
            yield f'Python\'s own work, which {took}: dl.compare(…, world=dl.World(clock="wall")) (--clock wall) has it'
    if world is None or (type(world) is World and world.latencies is None):
        yield (
            "your own latencies, in place of a model: docmind-lab profile makes a file of them, and "
            'dl.World(latencies="mine.json") (--latencies mine.json) takes it'
        )
