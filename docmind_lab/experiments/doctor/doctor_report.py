"""The lint's report: for each alternative, whether it keeps the deadline on this graph, and if not, why."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from docmind_lab.core.errors import GraphError
from docmind_lab.core.shown import COLUMNS, LINES
from docmind_lab.core.text import count_of, join_names, node_in_words
from docmind_lab.experiments.doctor.facts import NodeFacts
from docmind_lab.experiments.doctor.findings import Problem, lateness_of, words_of
from docmind_lab.experiments.doctor.late_runs import Overrun
from docmind_lab.findings.finding import Block, Finding, MakesFinding, after_interrupt
from docmind_lab.services.endpoint_shape import Unanswered, rows_to_fill_in

Keeping = Literal["keeps", "caller only", "does not keep", "does not run", "not known"]


@dataclass(frozen=True, repr=False)
class Verdict(MakesFinding):
    """Whether one alternative keeps the deadline. runs: measured; late: those with an overrun beyond the slack.

    keeping: "keeps" (the caller is back and nothing goes on), "caller only" (the caller is back, and work goes on),
    "does not keep", "does not run" (the graph fails in the mode that the alternative calls), "not known" (nothing was
    late, and some requests could be struck by no fault).
    worst: the run that shows it.
    """

    alternative: str
    keeping: Keeping
    why: str
    runs: int
    late: int
    worst: Overrun | None = None

    def finding(self) -> Finding:
        """Return whether it keeps the deadline, and why."""
        return Finding((f"{self.alternative} {self.keeping}", self.why), dataclasses.asdict(self))

    @property
    def in_short(self) -> str:
        """Why, in a few words."""
        worst = self.worst
        if worst is None:
            return self.why if self.keeping == "does not run" else count_of(self.runs, "run")
        if self.keeping == "caller only":
            return f"work went on for {'at least ' if worst.is_censored else ''}{worst.work_s:.3g} s"
        form = " (ainvoke)" if worst.trial.awaited else ""
        return f"the caller waited {'at least ' if worst.is_unfinished else ''}{worst.caller_s:.3g} s{form}"


# Kinds of problems in the short form.
_FOREMOST = 4


@dataclass(frozen=True, repr=False)
class LintReport(MakesFinding):
    """The result of linting a graph.

    slack_s: how many seconds past the deadline still count as keeping it. unreached: nodes and tools that no run came
    to, of which nothing is known. unprobed: node and address of requests that no fault could strike. requests: address,
    node, and how often it was asked in the runs without a deadline. unanswered: requests that no simulated service
    answers; what is said of the deadline rests on made-up answers to them, so the report is not clean. interrupted: how
    many alternatives of how many were judged; empty where all were. cut_behind: nodes that left
    requests behind when the run was answered, which the deadline cut.
    """

    graph: str
    decision_timeout_s: float
    slack_s: float
    nodes: tuple[NodeFacts, ...]
    findings: tuple[Problem, ...]
    verdicts: tuple[Verdict, ...]
    overruns: tuple[Overrun, ...]
    unreached: tuple[str, ...] = ()
    unprobed: tuple[tuple[str, str], ...] = ()
    requests: tuple[tuple[str, str, int], ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    interrupted: str = ""
    cut_behind: tuple[str, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether any alternative keeps the deadline."""
        return any(verdict.keeping == "keeps" for verdict in self.verdicts)

    @property
    def is_clean(self) -> bool:
        """Whether an alternative keeps the deadline, and no answer was made up."""
        return self.keeps and not self.unanswered

    @property
    def rows_to_fill_in(self) -> str:
        """A table of endpoints (TOML) for what nothing answers; empty if everything was answered."""
        return rows_to_fill_in(self.unanswered) if self.unanswered else ""

    def finding(self, *, verbose: bool = False) -> Finding:
        """Return the verdicts and the problems.

        Args:
            verbose: Whether every problem is there with the runs that show it, every request and a table of the nodes,
                instead of what fits on a screen.
        """
        by_kind: dict[str, list[Problem]] = {}
        for problem in self.findings:
            by_kind.setdefault(problem.kind, []).append(problem)
        groups = sorted(by_kind.values(), key=lambda group: -max(len(problem.defeats) for problem in group))
        shown = len(groups) if verbose else min(len(groups), _FOREMOST)
        finding = self._showing(groups, shown, verbose=verbose)
        while not verbose and shown > 1 and len(finding.text(COLUMNS).splitlines()) > LINES:
            shown -= 1
            finding = self._showing(groups, shown, verbose=False)
        return finding

    def _showing(self, groups: Sequence[Sequence[Problem]], shown: int, *, verbose: bool) -> Finding:
        words: list[Block] = [
            after_interrupt(self.interrupted, _summary_of(self)),
            *self.verdict_lines(verbose=verbose),
            *_of_awaited(self),
        ]
        if self.cut_behind:
            nodes = join_names([node_in_words(node) if node else "no node" for node in self.cut_behind])
            words.append(
                f"Requests of {nodes} went on after the answer, and the deadline cut them. In production an answered "
                "run's go on: docmind_lab.enforce(…, cuts_background=True) cuts them."
            )
        for request in self.unanswered:
            words.append(
                f"Answered with a made-up {{}}, since no simulated service answers it: {request} ({request.where})"
            )
        if any((node, address) not in self.unprobed for address, node, _ in self.requests):
            words.append("Measured with requests that hang, trickle and fail; compare has ordinary ones.")
        words.append("In virtual time Python's own work takes no time; compare --clock wall includes it.")
        for number, group in enumerate(groups[:shown], 1):
            what, *rest = words_of(group, verbose=verbose)
            words += [f"{number}. {what}", *rest]
        words += [] if groups else ["No findings."]
        if verbose:
            for address, node, count in self.requests:
                asked = f"{address} ({count_of(count, 'request')} of {node or 'no node'})"
                words.append(f"Answered by a simulated service: {asked}")
            words.append(pd.DataFrame([_row(self, facts) for facts in self.nodes]))
        else:
            words.append(self._left_out(len(groups) - shown))
        return Finding(tuple(words), self._as_types())

    def verdict_lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield a line for each alternative: whether it keeps the deadline, and why in a few words or at length."""
        width = max((len(verdict.alternative) for verdict in self.verdicts), default=0)
        for verdict in self.verdicts:
            why = verdict.why if verbose else verdict.in_short
            late = f"{verdict.late} of {verdict.runs} runs late; " if verdict.late else ""
            made_up = "; answers were made up" if self.unanswered and verdict.keeping != "does not run" else ""
            yield f"{verdict.alternative:<{width}}  {verdict.keeping:<13}  {late}{why}{made_up}"

    def _left_out(self, problems: int) -> str:
        requests = len({address for address, _, _ in self.requests})
        parts = [count_of(problems, "further finding")] if problems else []
        parts += ["their runs"] if self.findings else []
        parts += ["the nodes"]
        parts += [count_of(requests, "request")] if requests else []
        return f"With --verbose: {join_names(parts)}."

    def _as_types(self) -> dict[str, Any]:
        """Return the report as JSON types, except that infinities stay floats and tuples are no lists."""
        # No trial of the lint is a control.
        absent = ("overruns", "is_control")
        plain = dataclasses.asdict(
            self, dict_factory=lambda items: {name: value for name, value in items if name not in absent}
        )
        return {**plain, "keeps": self.keeps}


def verdict_of(
    alternative: str,
    runs: int,
    overruns: Sequence[Overrun],
    slack_s: float,
    unprobed: Sequence[tuple[str, str]] = (),
) -> Verdict:
    """Return the verdict on an alternative from its runs and overruns, and the requests that no fault could strike."""
    if not overruns and unprobed:
        why = f"nothing was late in {runs} runs, but {_in_words(unprobed)} could not be made to hang"
        return Verdict(alternative, "not known", why, runs, 0)
    if not overruns:
        return Verdict(alternative, "keeps", f"back and quiet within {slack_s:g} s in {runs} runs", runs, 0)
    by_invoke = [overrun for overrun in overruns if not overrun.trial.awaited]
    keeping, why = _keeping(overruns, slack_s), lateness_of(_worst(overruns, slack_s))
    if len(by_invoke) < len(overruns) and _keeping(by_invoke, slack_s) != keeping:
        why += f"; called outside the event loop (invoke): {_keeping(by_invoke, slack_s)}"
    late = len({dataclasses.replace(overrun.trial, awaited=False) for overrun in overruns})
    return Verdict(alternative, keeping, why, runs, late, _worst(overruns, slack_s))


def _keeping(overruns: Sequence[Overrun], slack_s: float) -> Keeping:
    if not overruns:
        return "keeps"
    return "does not keep" if any(overrun.caller_s > slack_s for overrun in overruns) else "caller only"


def _worst(overruns: Sequence[Overrun], slack_s: float) -> Overrun:
    waited = [overrun for overrun in overruns if overrun.caller_s > slack_s]
    return max(waited or overruns, key=lambda overrun: overrun.caller_s if waited else overrun.work_s)


def _in_words(unprobed: Sequence[tuple[str, str]]) -> str:
    return join_names([f"{address} ({node_in_words(node) if node else 'no node'})" for node, address in unprobed])


def _of_awaited(report: LintReport) -> Iterator[str]:
    """Yield how a caller that awaits is worse off than one outside the event loop, and what blocks the loop."""
    for verdict in report.verdicts:
        of_one = [overrun for overrun in report.overruns if overrun.trial.alternative == verdict.alternative]
        awaited = [overrun for overrun in of_one if overrun.trial.awaited]
        if awaited:
            lines = list(dict.fromkeys(overrun.blocked_at or "a coroutine" for overrun in awaited))
            by_invoke = _keeping([overrun for overrun in of_one if not overrun.trial.awaited], report.slack_s)
            verb = "blocks" if len(lines) == 1 else "block"
            late_s = max(overrun.caller_s for overrun in awaited)
            bound = "at least" if any(overrun.is_unfinished for overrun in awaited) else "up to"
            yield (
                f"Awaited (ainvoke), {verdict.alternative} is late by {bound} {late_s:.3g} s: "
                f"{join_names(lines)} {verb} the event loop. Called outside it (invoke): {by_invoke}."
            )


def failed_after_made_up(requests: Sequence[Unanswered], error: GraphError) -> str:
    """Return one line: which requests got made-up answers before a graph failed, and what to do."""
    each = ", ".join(f"{request} ({request.where})" for request in requests)
    return (
        f"{count_of(len(requests), 'request')} that no simulated service answers got a made-up {{}}: {each}. After "
        f"that {error}. {_FILL_IN}"
    )


_FILL_IN = (
    "Have the services' answers in rows of --endpoints FILE (endpoints=...); --write-endpoints FILE writes the rows to "
    "fill in."
)


def _summary_of(report: LintReport) -> str:
    """Return which alternatives keep the deadline, or that none does, and whether that rests on made-up answers."""
    if not report.unanswered:
        return _kept_by(report)
    return (
        f"With made-up answers to {count_of(len(report.unanswered), 'request')}: {_kept_by(report)} With the services' "
        f"own answers this may be otherwise. {_FILL_IN}"
    )


def _kept_by(report: LintReport) -> str:
    keeping = [verdict.alternative for verdict in report.verdicts if verdict.keeping == "keeps"]
    budget = f"{report.decision_timeout_s:g} s deadline"
    if keeping and report.unreached:
        return (
            f"The {budget} of {report.graph} is kept by {', '.join(keeping)} where these inputs lead. No run reached "
            f"{join_names(list(report.unreached))}: give inputs that do, since nothing is known of them."
        )
    if keeping:
        return f"The {budget} of {report.graph} is kept by {', '.join(keeping)}."
    if any(verdict.keeping == "not known" for verdict in report.verdicts):
        return (
            f"Whether the {budget} of {report.graph} is kept is not known: {_in_words(report.unprobed)} could not be "
            f"made to hang{_why_unprobed(report)}."
        )
    caller = [verdict.alternative for verdict in report.verdicts if verdict.keeping == "caller only"]
    if caller:
        return (
            f"No alternative keeps the {budget} of {report.graph}: with {', '.join(caller)} the caller is back in "
            "time, and work goes on."
        )
    return f"No alternative keeps the {budget} of {report.graph}."


def _why_unprobed(report: LintReport) -> str:
    if all(not node for node, _ in report.unprobed):
        return ", since what strikes no node strikes all, and the run ended before it"
    return ". If the graph keeps answers, forget them in a function of the configuration that makes it"


def _row(report: LintReport, facts: NodeFacts) -> dict[str, object]:
    """Return the row of a node in the table of nodes."""
    worst = facts.worst_case
    never = "" if worst is None else "no end" if math.isinf(worst.took_s) else f"{worst.took_s:,.1f} s"
    timeouts = ", ".join(f"{timeout_s:g} s" for timeout_s in facts.timeouts_s)
    # C cancels: what went on past the deadline went on past a cancellation.
    of_c = [each.work_s for each in report.overruns if (each.node, each.trial.alternative) == (facts.node, "C")]
    return {
        "node": facts.node,
        "in a loop": facts.mode,
        "calls": ", ".join(f"{count} {kind}" for kind, count in facts.calls.items()) or "none",
        "deadline": f"{facts.capped[0]} of {facts.capped[1]}" if facts.capped[1] else "",
        "timeouts": timeouts or ("" if worst is None else "none"),
        "sent (failing)": "" if facts.retries is None else f"{facts.retries.well} ({facts.retries.failing})",
        "never answered": never,
        "own code": f"{facts.code_s:.3f} s",
        "after a cancel": f"{max(of_c, default=0.0):.3f} s",
        "key": {True: "reaches it", False: "dropped", None: "not asked for"}[facts.has_key],
    }
