"""Rank policies for the time of calls, keep the ranking, and write docs/which-policy.md from it.

    python data/derive_policies.py            # runs both studies: about twenty minutes
    python data/derive_policies.py --page     # writes the page anew from what is kept

Writes data/policies/alone.csv and load.csv.
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
STUDIES = {"alone": ROOT / "examples" / "policies.toml", "load": ROOT / "examples" / "policies-load.toml"}
CONDITIONS = {"alone": ["latency_profile", "fault", "decision_timeout_s"], "load": ["offered_per_s"]}
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
BOUNDS = ["regret", "regret_interval_low", "regret_interval_high", "difference", "difference_low", "difference_high"]
CAPACITY_PER_S = 0.55
"""What four slots can answer of these questions under the profile `local_gpu`: see examples/load.toml."""

HEAD = """# Which policy, when

Written by `python data/derive_policies.py` from two studies, [policies.toml](../examples/policies.toml) and
[policies-load.toml](../examples/policies-load.toml); do not edit. What each policy does is in [policies](policies.md).

Every row is of runs of the real stack in virtual time, over the simulated model server: the supervisor answers
questions about the handbook under alternative A. **Score** is the share of gold facts in the answer. **Regret** is how
much higher it is for a clairvoyant who knows two latencies of every call and when to stop looking, and may do what any
run with that seed did; **area** is the same over all instants until the deadline. **Tokens** are those that the server
read and wrote for a run, whoever still listened. **Gained** is the score less that without a policy, with the same
seeds. Brackets are 95 % intervals: over 40 seeds, and under load over 5 crowds, which is few.

A hedge, and a second try after a timeout, can gain only where the second request is quicker than the first: the
simulated server draws a latency of its own for it, so what they gain here rests on that. A server on which the same
request is slow twice gives less.
"""


def main() -> None:
    """Run the studies unless only the page is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page from the rows that are kept")
    if not parser.parse_args().page:
        ROWS.mkdir(exist_ok=True)
        keep("alone", rank_by_regret(STUDIES["alone"]))
        keep("load", rank_load_by_regret(load_options(tomllib.loads(STUDIES["load"].read_text("utf-8"))["load"])))
    write_whole(PAGE, as_text(page({name: pd.read_csv(ROWS / f"{name}.csv") for name in STUDIES})))


def keep(name: str, ranking: PolicyRanking) -> None:
    """Write the rows of a ranking, rounded to what a reader can use."""
    frame = pd.DataFrame(ranking.rows())[[*CONDITIONS[name], "policies", *NUMBERS, *BOUNDS]]
    frame.round(4).to_csv(ROWS / f"{name}.csv", index=False)


def page(rankings: dict[str, pd.DataFrame]) -> str:
    """Return the page. rankings: study → its rows."""
    parts = [HEAD]
    worse: dict[str, list[str]] = {}
    for name, title in (("alone", "A run of its own"), ("load", "Under load")):
        parts.append(f"## {title}\n")
        for values, group in rankings[name].groupby(CONDITIONS[name], sort=False):
            where = (
                in_load(values[0])
                if name == "load"
                else in_words(dict(zip(CONDITIONS[name], values, strict=True)), CONDITIONS[name])
            )
            parts.append(f"### {where}\n\n{table(group)}\n\n{wrapped(sentence(group))}\n")
            for row in group.to_dict("records"):
                if row["policies"] != "none" and row["difference_high"] < 0:
                    worse.setdefault(str(row["policies"]), []).append(where)
    parts.append("## Where each loses\n")
    for policy in dict.fromkeys(str(each) for frame in rankings.values() for each in frame["policies"]):
        if policy != "none":
            parts.append(wrapped(f"- {losses(policy, worse.get(policy, []), rankings)}", "  "))
    return "\n".join(parts) + "\n"


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of 120 characters. indent: before all lines but the first."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def in_load(rate_per_s: float) -> str:
    """Name a load by its share of the capacity."""
    return f"a load of {rate_per_s / CAPACITY_PER_S:.0%} of the capacity ({rate_per_s:g} queries a second)"


def table(group: pd.DataFrame) -> str:
    """Return the policies of one condition, the least regret first."""
    heads = ("policy", "score", "in time", "regret", "area", "tokens", "gained")
    rows = [
        (
            f"`{row['policies']}`",
            f"{row['score']:.2f}",
            f"{row['answered_in_time']:.0%}",
            bounds(row, "regret", "regret_interval"),
            f"{row['area_regret']:.2f}",
            f"{row['tokens']:,.0f}",
            "" if math.isnan(row["difference_low"]) else bounds(row, "difference", "difference"),
        )
        for row in group.to_dict("records")
    ]
    return markdown_table(heads, rows)


def bounds(row: Any, value: str, interval: str) -> str:
    """Return a value with its interval, without a minus before zero."""
    if math.isnan(row[f"{interval}_low"]):
        return f"{row[value]:.2f}"
    numbers = (round(row[name], 2) + 0.0 for name in (value, f"{interval}_low", f"{interval}_high"))
    return "{:.2f} [{:.2f}, {:.2f}]".format(*numbers)


def sentence(group: pd.DataFrame) -> str:
    """Say which policies are shown to be better or worse than none, and what a point of score costs."""
    rows = [row for row in group.to_dict("records") if row["policies"] != "none"]
    better = [row for row in rows if row["difference_low"] > 0]
    worse = [f"`{row['policies']}`" for row in rows if row["difference_high"] < 0]
    said = []
    if better:
        dear = [f"`{row['policies']}` ({row['tokens_for_a_point']:,.0f} tokens for each hundredth)" for row in better]
        said.append(f"Shown to be better than no policy: {join_names(dear)}.")
    if worse:
        said.append(f"Shown to be worse: {join_names(worse)}.")
    if len(better) + len(worse) < len(rows):
        rest = "The others are" if said else "No policy is"
        said.append(f"{rest} {'not ' if said else ''}told apart from none.")
    return " ".join(said)


def losses(policy: str, worse: list[str], rankings: dict[str, pd.DataFrame]) -> str:
    """Say where a policy is shown to have a lower score than none, and where it only costs tokens."""
    rows = pd.concat(frame[frame["policies"] == policy] for frame in rankings.values())
    idle = rows[(rows["difference_low"] <= 0) & (rows["difference_high"] >= 0) & (rows["more_tokens"] > 0)]
    lost = f"a lower score with {'; '.join(worse)}" if worse else "a lower score nowhere"
    paid = f"; tokens without a shown gain in {len(idle)} of {len(rows)} conditions" if len(idle) else ""
    return f"`{policy}`: {lost}{paid}."


if __name__ == "__main__":
    main()
