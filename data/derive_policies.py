"""Rank policies for the time of calls, keep the ranking, and write docs/which-policy.md from it.

    python data/derive_policies.py            # runs all studies: about half an hour on two cores
    python data/derive_policies.py load       # runs one of them
    python data/derive_policies.py --page     # writes the page anew from what is kept

Writes data/policies/alone.csv, research.csv, panic.csv and load.csv.
"""

from __future__ import annotations

import argparse
import math
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd

from docmind_lab.analysis.conditions import in_words
from docmind_lab.analysis.regret import PolicyRanking
from docmind_lab.analysis.text import join_names, markdown_table
from docmind_lab.core.whole_files import as_text, write_whole
from docmind_lab.experiments.load import load_options
from docmind_lab.experiments.policy_ranking import rank_by_regret, rank_load_by_regret

ROOT = Path(__file__).parents[1]
ROWS, PAGE = ROOT / "data" / "policies", ROOT / "docs" / "which-policy.md"
EXAMPLES = ROOT / "examples"
STUDIES = {
    "alone": ("Questions, one at a time", EXAMPLES / "policies.toml"),
    "research": ("A research", EXAMPLES / "policies-research.toml"),
    "panic": ("A research whose model panics", EXAMPLES / "policies-research.toml"),
    "load": ("Under load", EXAMPLES / "policies-load.toml"),
}
"""Name of the rows → title of the section, study."""
CONDITIONS = {"alone": ["latency_profile", "fault", "decision_timeout_s"], "load": ["offered_per_s"]}
OF_RESEARCH = ["latency_profile", "decision_timeout_s"]
ASSUMED = {
    "hedge": "if a second request has a latency of its own",
    "call_timeout": "if a second request has a latency of its own",
    "adaptive_timeout": "if a second request has a latency of its own",
    "aware": "if a model that is told of little time hurries",
}
"""Policy → what a gain of it rests on, which the simulated server and its model were given."""
NUMBERS = [
    "runs",
    "score",
    "answered_in_time",
    "area_regret",
    "tokens",
    "server_s",
    "more_tokens",
    "tokens_for_a_point",
]
BOUNDS = [
    *("regret", "regret_interval_low", "regret_interval_high"),
    *("difference", "difference_low", "difference_high"),
    *("more_in_time", "more_in_time_low", "more_in_time_high"),
]
MEASURES = {"difference": ("better", "worse"), "more_in_time": ("more often in time", "less often in time")}
"""What is compared with no policy → the words for more and for less of it."""
CAPACITY_PER_S = 0.55
"""What four slots can answer of these questions under the profile `local_gpu`: see examples/load.toml."""

HEAD = """# Which policy, when

Written by `python data/derive_policies.py` from three studies, [policies.toml](../examples/policies.toml),
[policies-research.toml](../examples/policies-research.toml) and [policies-load.toml](../examples/policies-load.toml);
do not edit. What each policy does is in [policies](policies.md).

Every row is of runs of the real stack in virtual time, over the simulated model server, under alternative A: the
supervisor answers questions about the handbook, or a research asks its sources. **Score** is the share of gold facts in
the answer. **Regret** is how much higher it is for a clairvoyant who knows two latencies of every call and when to stop
looking, and may do what any run with that seed did; **area** is the same over all instants until the deadline.
**Tokens** are those that the server read and wrote for a run, whoever still listened. **Gained** is the score less that
without a policy, with the same seeds; **more in time** is the same for the share answered in time. Brackets are 95 %
intervals: over 40 seeds (30 of a research), and under load over 8 crowds. A dash stands where no run of either differs
from the others.

Two things here are assumptions of the simulated server, and each sentence says where a gain rests on one. A second
request has a latency of its own; under `heavy_tail/3?correlation=0.9` the calls of one run are slow together, second
requests included. And a model that is told of little time hurries: it leaves out planning and validation, and asks no
further query. Of another one that panics, which then also answers with its first statement alone, there is a table.
"""


def main() -> None:
    """Run the studies unless only the page is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page from the rows that are kept")
    parser.add_argument("studies", nargs="*", help=f"of {', '.join(STUDIES)}; all where none is named")
    asked = parser.parse_args()
    for name in [] if asked.page else asked.studies or STUDIES:
        ROWS.mkdir(exist_ok=True)
        table = tomllib.loads(STUDIES[name][1].read_text("utf-8"))
        if name == "panic":
            table["model_under_pressure"], table["factors"]["policies"] = "panics", ["none", "aware"]
        keep(name, rank_load_by_regret(load_options(table["load"])) if name == "load" else rank_by_regret(table))
    write_whole(PAGE, as_text(page({name: pd.read_csv(ROWS / f"{name}.csv") for name in STUDIES})))


def keep(name: str, ranking: PolicyRanking) -> None:
    """Write the rows of a ranking, rounded to what a reader can use."""
    frame = pd.DataFrame(ranking.rows())[[*CONDITIONS.get(name, OF_RESEARCH), "policies", *NUMBERS, *BOUNDS]]
    frame.round(4).to_csv(ROWS / f"{name}.csv", index=False)


def page(rankings: dict[str, pd.DataFrame]) -> str:
    """Return the page. rankings: study → its rows."""
    parts = [HEAD, "## Where each gains, and where it loses\n"]
    for policy in dict.fromkeys(str(each) for frame in rankings.values() for each in frame["policies"]):
        if policy != "none":
            parts.append(wrapped(f"- {gains_and_losses(policy, rankings)}", "  "))
    for name, (title, _) in STUDIES.items():
        parts.append(f"\n## {title}\n")
        assumed = ASSUMED | ({"aware": "if a model that is told of little time panics"} if name == "panic" else {})
        for _, group in rankings[name].groupby(CONDITIONS.get(name, OF_RESEARCH), sort=False):
            where = where_of(name, group.iloc[0])
            parts.append(f"### {where}\n\n{table(group)}\n\n{wrapped(sentence(group, assumed))}\n")
    return "\n".join(parts).rstrip() + "\n"


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of 120 characters. indent: before all lines but the first."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def in_load(rate_per_s: float) -> str:
    """Name a load by its share of the capacity."""
    return f"a load of {rate_per_s / CAPACITY_PER_S:.0%} of the capacity ({rate_per_s:g} queries a second)"


def table(group: pd.DataFrame) -> str:
    """Return the policies of one condition, the least regret first."""
    heads = ("policy", "score", "gained", "in time", "more in time", "regret", "area", "tokens")
    rows = [
        (
            f"`{row['policies']}`",
            f"{row['score']:.2f}",
            "" if math.isnan(row["difference_low"]) else bounds(row, "difference", "difference"),
            f"{row['answered_in_time']:.2f}",
            "" if math.isnan(row["more_in_time_low"]) else bounds(row, "more_in_time", "more_in_time"),
            bounds(row, "regret", "regret_interval"),
            f"{row['area_regret']:.2f}",
            f"{row['tokens']:,.0f}",
        )
        for row in group.to_dict("records")
    ]
    return markdown_table(heads, rows)


def bounds(row: Any, value: str, interval: str) -> str:
    """Return a value with its interval, without a minus before zero; a dash where it says nothing."""
    if (row[f"{interval}_low"], row[f"{interval}_high"]) == (-1.0, 1.0):
        return "–"
    if math.isnan(row[f"{interval}_low"]):
        return f"{row[value]:.2f}"
    numbers = (round(row[name], 2) + 0.0 for name in (value, f"{interval}_low", f"{interval}_high"))
    return "{:.2f} [{:.2f}, {:.2f}]".format(*numbers)


def sentence(group: pd.DataFrame, assumed: dict[str, str]) -> str:
    """Say which policies are shown to be better or worse than none, what it costs, and what it rests on."""
    rows = [row for row in group.to_dict("records") if row["policies"] != "none"]
    said = []
    for measure, (more, less) in MEASURES.items():
        above = [row for row in rows if row[f"{measure}_low"] > 0]
        below = [row for row in rows if row[f"{measure}_high"] < 0]
        if above:
            named = [f"`{row['policies']}` ({price(row, measure, assumed)})" for row in above]
            said.append(f"Shown to be {more} than without a policy: {join_names(named)}.")
        if below:
            said.append(f"Shown to be {less}: {join_names(['`' + row['policies'] + '`' for row in below])}.")
    return " ".join(said) or "No policy is told apart from none."


def price(row: Any, measure: str, assumed: dict[str, str]) -> str:
    """Say what a gain costs in tokens, and what it rests on."""
    if row["more_tokens"] <= 0:
        paid = "for no more tokens"
    elif measure == "difference":
        paid = f"{row['tokens_for_a_point']:,.0f} tokens for each hundredth of score"
    else:
        paid = f"for {row['more_tokens']:,.0f} tokens more"
    names = dict.fromkeys(part.partition(":")[0] for part in row["policies"].split("+"))
    return ", ".join([paid, *(assumed[name] for name in names if name in assumed)])


def gains_and_losses(policy: str, rankings: dict[str, pd.DataFrame]) -> str:
    """Say in how many conditions a policy is shown to gain and to lose, and in which of them it loses."""
    known = {name: frame[frame["policies"] == policy] for name, frame in rankings.items()}
    rows = pd.concat(known.values())
    said = []
    for measure, (more, less) in MEASURES.items():
        above, below = rows[f"{measure}_low"] > 0, rows[f"{measure}_high"] < 0
        said.append(f"{more} in {int(above.sum())} and {less} in {int(below.sum())}")
    idle = rows[(rows["difference_low"] <= 0) & (rows["more_in_time_low"] <= 0) & (rows["more_tokens"] > 0)]
    lost = [
        where_of(name, row)
        for name, frame in known.items()
        for row in frame.to_dict("records")
        if min(row[f"{measure}_high"] for measure in MEASURES) < 0
    ]
    text = f"`{policy}`, of {len(rows)} conditions: {', '.join(said)}; more tokens without a shown gain in {len(idle)}"
    return f"{text}. It loses with {'; '.join(lost)}." if lost else f"{text}."


def where_of(name: str, row: Any) -> str:
    """Name the condition of a row. name: of its study."""
    if name == "load":
        return in_load(row["offered_per_s"])
    conditions = CONDITIONS.get(name, OF_RESEARCH)
    where = in_words({each: row[each] for each in conditions}, conditions)
    return where if name in CONDITIONS else f"{STUDIES[name][0][0].lower()}{STUDIES[name][0][1:]}, {where}"


if __name__ == "__main__":
    main()
