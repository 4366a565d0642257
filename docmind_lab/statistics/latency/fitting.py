"""Fits the tables of a latency profile to observed calls, with the evidence for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.latency.decompose import split_calls
from docmind_lab.statistics.latency.durations import QuantileTables, fit_durations
from docmind_lab.statistics.latency.observed_calls import ObservedCalls
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.statistics.latency.sessions import fit_correlation

_NO_SESSIONS: Final = (
    "No ten sessions of several calls are known, so whether calls of a session are slow together cannot be told: they "
    "count as independent; map a column to session to know."
)
_NO_TIME: Final = QuantileTable.constant(0.0)


@dataclass(frozen=True)
class FitOptions:
    """What the data cannot tell, and how a fit assumes it.

    Args:
        retrieval: Name of the profile that gives the time of a search where the source has none.
        retrieval_s: That time.
        name: Name of the profile, in tables and figures; None for that of the source.
        hang_probability: Share of model calls that never answer, in [0, 1). It is never guessed from timeouts, which
            may be slow calls.
        slots: Model calls that the server works on at once; None is no limit.
        tables: "auto" takes a family where it fits and observed quantiles where it does not; "fitted" and "empirical"
            insist.

    Raises:
        ConfigurationError: The share is out of range.
    """

    retrieval: str
    retrieval_s: QuantileTable
    name: str | None = None
    hang_probability: float = 0.0
    slots: int | None = None
    tables: QuantileTables = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.hang_probability < 1:
            raise ConfigurationError(f"hang_probability must lie in [0, 1): got {self.hang_probability}")


def fit_calls(calls: ObservedCalls, options: FitOptions) -> dict[str, Any]:
    """Return the fields of a `LatencyProfile` that is fitted to observed calls.

    Raises: ConfigurationError naming the source and the remedy.
    """
    hangs = _hangs_in(calls, options.hang_probability)
    parts = split_calls(calls, hangs)
    phrases = [*calls.notes, *parts.assumptions]
    fits = {"first_token_s": fit_durations(parts.first_token, "first_token_s", options.tables, hangs)}
    if parts.inter_token is not None:
        # A call that hangs never sends its first token, so it is among the first tokens only. Where only whole
        # latencies are known, both parts are factors of one sample, and the hangs are in both.
        within = hangs if len(parts.inter_token.cut_s) else 0.0
        fits["inter_token_s"] = fit_durations(parts.inter_token, "inter_token_s", options.tables, within)
    if parts.retrieval is not None:
        fits["retrieval_s"] = fit_durations(parts.retrieval, "retrieval_s", options.tables)
        retrieval_s = fits["retrieval_s"].table
    else:
        retrieval_s = options.retrieval_s
        phrases.append(f"No search was observed: retrieval_s is that of the profile {options.retrieval!r}.")
    sessions = fit_correlation(parts.slowness)
    phrases += [f"{name}: {fit.in_words()}" for name, fit in fits.items()]
    phrases.append(_NO_SESSIONS if sessions is None else sessions.in_words())
    if any(fit.cut for fit in fits.values()):
        phrases.append("Cut calls count as longer than they were when cut (right-censored).")
    share = options.hang_probability
    values = f"{share:g}, as given" if share else "0: timeouts do not tell hangs from slow calls"
    phrases.append(f"hang_probability is {values}.")
    if share and not hangs:
        phrases.append("Far fewer calls were cut than hang, so the hung ones are taken to be missing from the data.")
    return {
        "name": options.name or re.sub(r"\.(csv|jsonl?|ndjson|parquet)\b", "", calls.source.removeprefix("the ")),
        "description": " ".join(phrases),
        "source": f"Fitted to {len(calls.frame)} calls of {calls.source}",
        "first_token_s": fits["first_token_s"].table,
        "inter_token_s": fits["inter_token_s"].table if "inter_token_s" in fits else _NO_TIME,
        "retrieval_s": retrieval_s,
        "hang_probability": share,
        "slots": options.slots,
        "rank_correlation": parts.rank_correlation,
        "correlation": 0.0 if sessions is None else sessions.correlation,
        "evidence": fits,
    }


def _hangs_in(calls: ObservedCalls, hang_probability: float) -> float:
    """Return the share of hung calls among the rows: the given share, or 0 if hung calls were never logged.

    Each hung call in the data was cut. Where not even half as many were cut, only calls that ended were logged.
    """
    llm = calls.of_kind("llm")
    cut = int((~llm["complete"].astype("bool")).sum())
    return hang_probability if cut >= 0.5 * hang_probability * len(llm) else 0.0
