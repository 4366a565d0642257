"""Conditions and arms: the circumstances of a run, and which of the compared alternatives it belongs to.

A *condition* is everything that is the same for all alternatives of one comparison: budgets, latencies, fault, clock.
An *arm* is what is compared within a condition: an alternative with its options, its retries and the mode of the
nodes it ran. Runs of two arms in one condition with one seed met the same latencies (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import label_of, order_of
from docmind_lab.core.budgets import NO_BUDGETS, order_of_level
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names, level

CONDITION: Final = (
    "decision_timeout_s",
    "horizon_s",
    "workload",
    "latency_profile",
    "fault",
    "clock",
    "router_injection",
    "stops_on_disconnect",
    "server_behaviour",
    "adoption",
    "second_budgets",
)
"""Columns of `runs` that make up a condition."""

CONTROL: Final = "unguarded"
"""The alternative that enforces nothing: its runs show what would have gone on."""

_APART: Final = ("retries", "node_mode")


def with_arms(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column `arm`, an ordered categorical in the order of every figure.

    An arm is called as its alternative is ("A  cooperative"); who retries and the mode of the nodes are said only
    where one alternative of the study has several of them.
    """
    plain = runs[["alternative", "alternative_options", *_APART]].astype("str")
    keys = plain.drop_duplicates()
    names: dict[tuple[str, ...], str] = {}
    for (alternative, options), group in keys.groupby(["alternative", "alternative_options"], sort=False):
        several = [column for column in _APART if group[column].nunique() > 1]
        for row in group.to_dict("records"):
            phrases = [f"{column.replace('_', ' ')} {row[column]}" for column in several]
            names[tuple(row.values())] = ", ".join([label_of(str(alternative), str(options)), *phrases])
    ordered = sorted(names, key=lambda key: (*order_of(key[0], key[1]), *key[2:]))
    arms = [names[key] for key in zip(*(plain[name].to_numpy("object") for name in plain), strict=True)]
    labels = list(dict.fromkeys(names[key] for key in ordered))
    return runs.assign(arm=pd.Categorical(arms, categories=labels, ordered=True))


def by_condition(runs: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each condition, a mapping of `CONDITION`, with its runs: by timeout, those without a fault first.

    Of several second budgets the tightest comes first, and none last.
    """
    groups = [
        (dict(zip(CONDITION, values, strict=True)), group)
        for values, group in runs.groupby(list(CONDITION), observed=True, sort=True)
    ]

    def place(item: tuple[dict[str, Any], pd.DataFrame]) -> tuple[Any, ...]:
        condition, _ = item
        spent = order_of_level(str(condition["second_budgets"]))
        return condition["decision_timeout_s"], condition["fault"] != "none", spent

    yield from sorted(groups, key=place)


def varying(runs: pd.DataFrame) -> list[str]:
    """Return the columns of `CONDITION` with several values, without a horizon that only follows the timeout."""
    several = [column for column in CONDITION if runs[column].nunique() > 1]
    if "horizon_s" in several and (runs["horizon_s"] / runs["decision_timeout_s"]).round(9).nunique() == 1:
        several.remove("horizon_s")
    if "server_behaviour" in several:
        # Two columns of one thing: the switch, and what it is a part of.
        redundant = "stops_on_disconnect" if _profiles_of_servers(runs) else "server_behaviour"
        several = [column for column in several if column != redundant]
    return several


def _profiles_of_servers(runs: pd.DataFrame) -> list[str]:
    """Names of the measured profiles that the servers of these runs behaved by, besides the two extremes."""
    return sorted(set(runs["server_behaviour"].astype("str")) - {"stops", "goes-on", ""})


def condition_columns(runs: pd.DataFrame) -> list[str]:
    """Return the columns that tell the conditions of these runs apart, without the horizon."""
    return [column for column in varying(runs) if column != "horizon_s"]


def require_one_condition(runs: pd.DataFrame, *apart: str) -> None:
    """Check that the runs can be pooled. apart: columns of `CONDITION` in which they may differ all the same.

    Raises: ConfigurationError naming the columns with several values, and these.
    """
    several = [column for column in varying(runs) if column not in apart]
    if several:
        levels = [f"{name} ({', '.join(level(value) for value in sorted(set(runs[name])))})" for name in several]
        raise ConfigurationError(
            f"the runs have several values of {join_names(levels)}, and are compared under one: keep those with one"
        )


def in_words(condition: Mapping[str, Any] | pd.Series[Any], columns: Sequence[str]) -> str:
    """Describe these columns of a condition: "10 s decision timeout, fault hang"; "" for no columns."""
    return ", ".join(
        _IN_WORDS[column](condition[column])
        if column in _IN_WORDS
        else f"{column.replace('_', ' ')} {condition[column]}"
        for column in columns
    )


def conditions_in_words(runs: pd.DataFrame) -> list[str]:
    """Describe what was measured, in parts of a title: timeouts, latencies, faults, servers, budgets, clocks."""
    faults = sorted(set(runs["fault"].astype("str")))
    clocks = " and ".join(sorted(set(runs["clock"].astype("str"))))
    return [
        f"{join_names([f'{value:g}' for value in sorted(runs['decision_timeout_s'].unique())])} s decision timeout",
        f"{' and '.join(sorted({str(profile) or 'live' for profile in runs['latency_profile']}))} latencies",
        *([] if faults == ["none"] else [f"fault {join_names(faults)}"]),
        *(["a router engine is asked first"] if runs["router_injection"].all() else []),
        *_servers_in_words(runs),
        *_budgets_in_words(runs),
        "replayed from traces" if is_replayed(runs) else f"{clocks} clock",
    ]


def is_replayed(runs: pd.DataFrame) -> bool:
    """Whether the runs are those of a what-if, in which no agent ran."""
    return set(runs["clock"].astype("str")) == {"trace"}


def _servers_in_words(runs: pd.DataFrame) -> list[str]:
    """What servers do when their client leaves, where that is not to stop at once, and how many adopt the deadline."""
    shares = runs["adoption"].unique()
    adopting = [in_words(runs.iloc[0], ["adoption"])] if len(shares) == 1 and shares[0] else []
    profiles = _profiles_of_servers(runs)
    if profiles:
        return [f"servers behave as {join_names(profiles)} when their client leaves", *adopting]
    return [*([] if runs["stops_on_disconnect"].any() else ["servers go on when their client leaves"]), *adopting]


def _budgets_in_words(runs: pd.DataFrame) -> list[str]:
    """Describe the budgets of tokens, calls and cost, the tightest first; an empty list where no run has one."""
    levels = sorted({str(level) for level in runs["second_budgets"]}, key=order_of_level)
    return [] if levels == [NO_BUDGETS] else [join_names([_budget_in_words(level) for level in levels], "or")]


def _budget_in_words(level: str) -> str:
    return "no second budget" if level == NO_BUDGETS else f"second budget {level.replace(', ', ' and ')}"


_IN_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "decision_timeout_s": "{:g} s decision timeout".format,
    "stops_on_disconnect": lambda stops: f"servers {'' if stops else 'do not '}stop on disconnect",
    "server_behaviour": "servers behave as {}".format,
    "adoption": "{:.0%} of the hops adopt the deadline".format,
    "router_injection": lambda injected: "router injected" if injected else "no router injected",
    "fault": lambda fault: "no fault" if str(fault) in ("", "none") else f"fault {fault}",
    "second_budgets": lambda level: _budget_in_words(str(level)),
    "latency_profile": lambda profile: f"{profile} latencies" if str(profile) else "live services",
    "clock": "{} clock".format,
}
