"""Assertions for tests of your own graph: that it keeps its deadline, and that it survives being cut anywhere.

    from docmind_lab.testing import assert_keeps_deadline

    def test_the_agent_answers_or_stops_in_twenty_seconds():
        assert_keeps_deadline("my_app:graph", ["What does a with statement do?"], decision_timeout_s=20)

It measures in virtual time, on simulated services: seconds of work, no waiting, no key, and the same result every time.
"""

from __future__ import annotations

from typing import Any

from docmind_lab.core.deadlines import DEADLINE_KEY, HELD_WITHIN_S
from docmind_lab.experiments.crash_test.testing import assert_survives_cuts, cut_at
from docmind_lab.experiments.lint import LintReport, lint_graph
from docmind_lab.experiments.lint.report import summary_of
from docmind_lab.workloads.own import Inputs

__all__ = ["assert_keeps_deadline", "assert_survives_cuts", "cut_at"]


def assert_keeps_deadline(
    graph: Any,
    inputs: Inputs,
    *,
    decision_timeout_s: float,
    slack_s: float = HELD_WITHIN_S,
    alternatives: str | None = None,
    deadline_key: str = DEADLINE_KEY,
    profile: str = "typical",
    seed: int = 7,
) -> LintReport:
    """Fail the test unless at least one alternative keeps the deadline on a graph, and no answer was made up.

    Args:
        graph: A compiled LangGraph graph, or "module:name" of one.
        inputs: What the graph is run on: questions, states, or the path of a JSONL file.
        decision_timeout_s: Seconds that each run has.
        slack_s: Seconds by which the caller may be back later, and the last work be over later.
        alternatives: Letters or levels, separated by commas; None for all. Name one to hold the graph to it.
        deadline_key: Key of the graph's state that carries the deadline.
        profile: Latencies of the simulated services.
        seed: Draws the latencies.

    Returns:
        The lint's report.

    Raises: AssertionError naming, for each alternative, the call that took the time, how late it was, and the remedy;
    and what `lint_graph` raises.
    """
    # Without its own frame pytest shows the line of the test.
    __tracebackhide__ = True
    report = lint_graph(
        graph,
        inputs,
        decision_timeout_s=decision_timeout_s,
        slack_s=slack_s,
        alternatives=alternatives,
        deadline_key=deadline_key,
        profile=profile,
        seed=seed,
    )
    if not report.is_clean:
        raise AssertionError(_message(report))
    return report


def _message(report: LintReport) -> str:
    lines = [summary_of(report)]
    lines += [f"  {verdict.alternative}: {verdict.keeping}: {verdict.why}" for verdict in report.verdicts]
    worst = report.nearest.worst
    remedies = [
        finding.remedy
        for finding in report.findings
        if worst is not None and (finding.node, finding.kind) == (worst.node, worst.cause)
    ]
    lines += [f"  nearest is {report.nearest.alternative}; for it: {remedy}" for remedy in remedies]
    return "\n".join(lines)
