"""For the tests of your own graph: an assertion that its deadline is kept.

    from docmind_lab.experiments.testing import assert_keeps_deadline

    def test_the_agent_answers_or_stops_in_twenty_seconds():
        assert_keeps_deadline("my_app:graph", ["What does a with statement do?"], decision_timeout_s=20)

It measures in virtual time, on simulated services: seconds of work, no waiting, no key, and the same result every time.
"""

from __future__ import annotations

from typing import Any

from docmind_lab.core.deadlines import DEADLINE_KEY, HELD_WITHIN_S
from docmind_lab.experiments.lint import LintReport, lint_graph
from docmind_lab.experiments.lint.report import summary_of
from docmind_lab.workloads.own import Inputs

__all__ = ["assert_keeps_deadline"]


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
    """The lint's report, if one of the alternatives at least keeps the deadline; name one to hold the graph to it.

    slack_s: how much later the caller may be back, and the last work be over. The rest as `lint.lint_graph` takes it.

    Raises: AssertionError naming, for each alternative, the call that ate the time, how late that was, and the remedy;
    and whatever `lint_graph` raises.
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
    if not report.keeps:
        raise AssertionError(_said(report))
    return report


def _said(report: LintReport) -> str:
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
