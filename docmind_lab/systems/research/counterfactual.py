"""The saturation counterfactual: what each source would have given had the research gone on.

    missed = past_the_stop(report, system, further_queries=3)      # lab.past_the_stop(report) in virtual time

The loop of each source really goes on from where it ended, with its history and what it had kept, against the same
services, and without being asked whether it is saturated. It is a research of its own, after the one it is about and
off any measured path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.sync_async import Steps, finish
from docmind_lab.network.recorder import recording
from docmind_lab.systems.research.exits import Completion, ExitReason
from docmind_lab.systems.research.loop import SourceRun
from docmind_lab.systems.research.research_calls import CallPlace
from docmind_lab.systems.research.research_graph import Compiled, config_of, run_to_end
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.research_report import ResearchReport
from docmind_lab.systems.research.research_system import ResearchSystem, recorder_of

COLUMNS = (
    "hypothesis",
    "source",
    "exit_reason",
    "further_queries",
    "ended_by",
    "saved_s",
    "missed_results",
    "missed_gold_topics",
)

# Nothing can be asked further of these: there is no source, or no telling what it would do.
_NOWHERE: frozenset[ExitReason] = frozenset({"unknown_source"})


def past_the_stop(
    report: ResearchReport, system: ResearchSystem, *, further_queries: int = 3, seed: int = 0
) -> pd.DataFrame:
    """Put further queries to each source after its stop, and return what they bring, one row for each source.

    exit_reason: why the research left the source. further_queries: queries put to it now, at most as many as asked for;
    ended_by: why it was left now. saved_s: seconds that they took, which the stop had saved. missed_results: results
    accepted now that the research had not kept from anywhere. missed_gold_topics: gold topics among their pages that
    the research had not kept anything of. In sync code, on whichever clock is in force.

    Raises: ConfigurationError for fewer than one further query.
    """
    if further_queries < 1:
        raise ConfigurationError(f"further_queries must be 1 or more, not {further_queries}; try 3")
    loop = system.loop().graph()
    with recording(recorder_of(report.task, seed)):
        rows = [
            finish(_continue_source(report, completion, system, loop, further_queries))
            for completion in report.completions
            if completion.exit_reason not in _NOWHERE
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _continue_source(
    report: ResearchReport, stopped: Completion, system: ResearchSystem, loop: Compiled, further: int
) -> Steps[dict[str, Any]]:
    ledger = ResearchLedger(system.limits)
    ledger.begin(report.task)
    for attempt in report.attempts:
        ledger.ask(attempt.source, attempt.query)
    run = _resume(report, stopped, system, ledger, further)
    before = len(run.history)
    yield from run_to_end(run, loop, config_of(ledger))
    kept_before = {item.key for item in report.items}
    missed = [item for item in ledger.items() if item.key not in kept_before and item.filtered]
    return {
        "hypothesis": stopped.hypothesis,
        "source": stopped.source,
        "exit_reason": stopped.exit_reason,
        "further_queries": len(run.history) - before,
        "ended_by": str(run.exit_reason),
        "saved_s": ledger.elapsed_s(),
        "missed_results": len(missed),
        "missed_gold_topics": ", ".join(_new_gold(report, (item.topic for item in missed))),
    }


def _resume(
    report: ResearchReport, stopped: Completion, system: ResearchSystem, ledger: ResearchLedger, further: int
) -> SourceRun:
    """Restore a source as it was left, with `further` more queries and without the saturation judge."""
    names = [hypothesis.id for hypothesis in report.task.hypotheses]
    number = names.index(stopped.hypothesis)
    # Places of their own, after those of all hypotheses: further calls draw latencies that were not drawn before.
    place = {
        "handoff_ordinal": len(names) + number + 1,
        "fan_out_index": report.task.sources.index(stopped.source),
    }
    history = [a for a in report.attempts if (a.hypothesis, a.source) == (stopped.hypothesis, stopped.source)]
    keys = {key for attempt in history for key in attempt.new}
    return SourceRun(
        report.task.hypotheses[number],
        system.sources[stopped.source],
        ledger,
        CallPlace(place, ledger),
        max_queries=len(history) + further,
        judged=False,
        history=history,
        kept=[item for item in report.items if item.key in keys],
    )


def _new_gold(report: ResearchReport, topics: Iterable[str]) -> list[str]:
    had = {item.topic for item in report.items}
    return sorted({topic for topic in topics if topic in report.task.gold_topics and topic not in had})
