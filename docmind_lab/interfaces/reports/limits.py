"""What not to conclude from a study, and what its report leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from docmind_lab.analysis.conditions import by_condition, with_arms
from docmind_lab.analysis.findings.second_budgets import past_a_budget
from docmind_lab.analysis.findings.tables import counted, joined, one_line
from docmind_lab.analysis.statistics import quantile_name, runs_needed
from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.interfaces.reports.model import Block, Prose, Section

_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def limits(
    runs: pd.DataFrame, columns: Sequence[str], not_drawn: Sequence[str], absent: Sequence[str], *, complete: bool
) -> Section:
    """The section of what the study cannot say.

    columns: in which its conditions differ. not_drawn: conditions without figures. absent: what could not be made.
    """
    blocks: list[Block] = [Prose(tuple(_lines(runs, columns, complete)), "list")]
    if not_drawn:
        drawn = sum(1 for _ in by_condition(runs)) - len(not_drawn)
        blocks.append(Prose((f"Figures are drawn for {counted(drawn, 'condition')}; these are in the tables only:",)))
        blocks.append(Prose(tuple(not_drawn), "list"))
    if absent:
        blocks.append(Prose(("Not in this report, and why:",)))
        blocks.append(Prose(tuple(absent), "list"))
    return Section("limits", "What not to conclude", tuple(blocks))


def _lines(runs: pd.DataFrame, columns: Sequence[str], complete: bool) -> Iterator[str]:
    if not complete:
        yield "The study is not complete: the runs that are missing may differ from those that are here."
    yield _rare_events(runs, columns)
    profiles = sorted({str(name) for name in runs["latency_profile"]} - {""})
    if profiles:
        yield (
            f"Latencies are those of {joined(profiles)}, not of your provider, and the model is scripted: what was "
            "measured is time and what is found, not how well a language model writes."
        )
    if "virtual" in set(runs["clock"].astype("str")):
        yield (
            "In virtual time Python's own work takes none: a real run is later by milliseconds, and differences of "
            "that size cannot be seen here. The wall clock shows them."
        )
    if "wall" in set(runs["clock"].astype("str")):
        yield "On the wall clock differences of a few milliseconds are noise of the machine."
    if runs["busy_after_deadline_s"].isna().any():
        yield "Without the log of a live server nobody knows what it did after the deadline: NaN is not 0."
    if set(runs["fault"].astype("str")) <= {"", "none"}:
        yield "No fault was injected: calls that hang, trickle or fail set the arms further apart than these did."
    yield (
        "Intervals are of this study's questions and latencies, drawn again; they say nothing of other questions, "
        "graphs or loads. Bands of curves hold at each instant, not for a whole curve at once."
    )
    yield from _second_budgets(runs)
    if len(columns) > 1:
        yield "Conditions are compared one by one: no interaction of factors was tested."


def _second_budgets(runs: pd.DataFrame) -> Iterator[str]:
    """Whose answers a second budget did not allow, and what of it is not exact."""
    budgeted = with_arms(runs[runs["second_budgets"].astype("str") != NO_BUDGETS])
    if budgeted.empty:
        return
    blind = budgeted[~budgeted["deadline_propagation"].astype("bool")]
    past = int(past_a_budget(blind).sum())
    if past:
        names = joined([one_line(str(arm)) for arm in sorted(blind.loc[past_a_budget(blind), "arm"].unique())])
        yield (
            f"Second budgets are measured and not enforced in {names}: {past} of their {len(blind)} runs went past "
            "one, and what these answered is no evidence of what the budget allows."
        )
    if budgeted[["token_budget", "cost_budget"]].notna().to_numpy().any():
        yield (
            "Tokens are as responses count them; a request that was cut counts none, so tokens and cost are lower "
            "bounds."
        )


def _rare_events(runs: pd.DataFrame, columns: Sequence[str]) -> str:
    sizes = with_arms(runs).groupby([*columns, "arm"], observed=True).size()
    least = int(sizes.min())
    told = [quantile_name(q) for q in _QUANTILES if runs_needed(q) <= least]
    missing = [(quantile_name(q), runs_needed(q)) for q in _QUANTILES if runs_needed(q) > least]
    enough = f"enough for {joined(told)}" if told else "not enough for any quantile"
    needed = f"; {', '.join(f'{name} needs {number}' for name, number in missing)}" if missing else ""
    are = "is" if least == 1 else "are"
    return f"{counted(least, 'run')} of an arm in a condition {are} {enough}{needed}: rare events are not seen."
