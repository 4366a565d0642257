"""A lint's report on a terminal: the nodes, the findings with their runs and remedies, the verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from docmind_lab.experiments.lint.facts import NodeFacts
from docmind_lab.experiments.lint.verdict import LintReport


def lines_of(report: LintReport) -> Iterator[str]:
    """Findings and verdicts, a line each; the nodes are `nodes_table`."""
    for number, finding in enumerate(report.findings, 1):
        where = f"node {finding.node}" if finding.node else "the graph"
        defeats = f" (defeats {', '.join(finding.defeats)})" if finding.defeats else ""
        yield f"{number}. {where}: {finding.what}{defeats}"
        for evidence in finding.evidence:
            yield f"   {evidence.says}  [{evidence.run_id}]"
        yield f"   → {finding.remedy}"
    yield "" if report.findings else "No findings."
    for verdict in report.verdicts:
        late = f"{verdict.late} of {verdict.runs} runs late; " if verdict.late else ""
        yield f"{verdict.alternative:<12} {verdict.keeping:<14} {late}{verdict.why}"
    yield ""
    yield summary_of(report)


def summary_of(report: LintReport) -> str:
    """One sentence: who keeps the deadline, or that nobody does."""
    keeping = [verdict.alternative for verdict in report.verdicts if verdict.keeping == "keeps"]
    budget = f"{report.decision_timeout_s:g} s deadline"
    if keeping:
        return f"The {budget} of {report.graph} is kept by {', '.join(keeping)}."
    caller = [verdict.alternative for verdict in report.verdicts if verdict.keeping == "caller only"]
    if caller:
        return (
            f"No alternative keeps the {budget} of {report.graph}: with {', '.join(caller)} the caller is back in "
            "time, and work goes on."
        )
    return f"No alternative keeps the {budget} of {report.graph}."


def nodes_table(report: LintReport) -> Any:
    """The nodes as a table of rich."""
    from rich.table import Table  # noqa: PLC0415 - slow, and only terminals need it

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    headings = (
        "node",
        "in a loop",
        "calls",
        "deadline",
        "timeouts",
        "tries",
        "never answered",
        "uncut code",
        "after a cancel",
        "key",
    )
    for heading in headings:
        table.add_column(heading)
    for facts in report.nodes:
        table.add_row(*_cells(report, facts))
    return table


def _cells(report: LintReport, facts: NodeFacts) -> tuple[str, ...]:
    worst = facts.worst_case
    never = "" if worst is None else "no end" if math.isinf(worst.took_s) else f"{worst.took_s:,.1f} s"
    calls = ", ".join(f"{count} {kind}" for kind, count in facts.calls.items())
    none_given = "none" if facts.worst_case is not None else ""
    return (
        facts.node,
        facts.colour,
        calls or "none",
        f"{facts.capped[0]} of {facts.capped[1]}" if facts.capped[1] else "",
        ", ".join(f"{timeout_s:g} s" for timeout_s in facts.timeouts_s) or none_given,
        "" if facts.retries is None else str(facts.retries.failing),
        never,
        f"{facts.code_s:.3f} s",
        f"{report.after_a_cancel_s(facts.node):.3f} s",
        {True: "reaches it", False: "dropped", None: "not asked for"}[facts.has_key],
    )
