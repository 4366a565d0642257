"""Figure: the regret of each policy beside what it costs."""

from __future__ import annotations

from typing import Final

import pandas as pd
from matplotlib.axes import Axes

from docmind_lab.analysis.plots import look
from docmind_lab.analysis.regret import PolicyRanking
from docmind_lab.core.errors import ConfigurationError

_WIDTH_IN: Final = 9.0


def regret(ranking: PolicyRanking, *, ax: Axes | None = None) -> Axes:
    """Plot the regret of each policy with its interval, and write the tokens of a run beside it.

    Args:
        ranking: Of one condition: `rank_by_regret` of a study with one level of everything but the policies.
        ax: Axes to draw on; None means a new figure.

    Raises:
        ConfigurationError: The ranking has several conditions.
    """
    rows = regret_frame(ranking)
    axes = look.new_axes(_WIDTH_IN, 1.9 + 0.42 * len(rows)) if ax is None else ax
    places = range(len(rows))
    axes.errorbar(
        rows["regret"],
        places,
        xerr=(rows["regret"] - rows["low"], rows["high"] - rows["regret"]),
        fmt="o",
        color=look.colour_of("cooperative"),
        ecolor=look.RULE,
        capsize=3,
    )
    axes.axvline(0, color=look.RULE, linewidth=1)
    named = zip(rows["policies"], rows["tokens"], strict=True)
    axes.set_yticks(places, [f"{policies}  ({tokens:,.0f} tokens)" for policies, tokens in named])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("regret at the deadline: best score less the policy's, of 1 (95 % interval over seeds)")
    look.style(
        axes,
        "How far is each policy from somebody who knew all latencies?",
        f"{int(rows['runs'].iloc[0])} runs each, the same latencies for all; tokens are those that the server read and "
        "wrote for a run",
    )
    return axes


def regret_frame(ranking: PolicyRanking) -> pd.DataFrame:
    """Return what `regret` draws: policies, runs, regret, low, high and tokens, the least regret first.

    Args:
        ranking: Of one condition.

    Raises:
        ConfigurationError: The ranking has several conditions.
    """
    if len(ranking.sections()) > 1:
        raise ConfigurationError("the ranking has several conditions: draw one of them, with one level of each factor")
    rows = pd.DataFrame(ranking.rows())
    low, high = (rows[f"regret_interval_{end}"].fillna(rows["regret"]) for end in ("low", "high"))
    return rows[["policies", "runs", "regret", "tokens"]].assign(low=low, high=high)
