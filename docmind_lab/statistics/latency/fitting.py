"""Fits the tables of a latency profile to observed calls, with the evidence for each."""

from __future__ import annotations

import re
from typing import Any, Final

from docmind_lab.statistics.latency.decompose import split_calls
from docmind_lab.statistics.latency.durations import fit_durations
from docmind_lab.statistics.latency.observed_calls import ObservedCalls
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.statistics.latency.sessions import fit_correlation

_NO_SESSIONS: Final = (
    "No ten sessions of several calls are known, so whether calls of a session are slow together cannot be told: they "
    "count as independent; map a column to session to know."
)
_NO_TIME: Final = QuantileTable.constant(0.0)


def fit_calls(calls: ObservedCalls, search_s: QuantileTable, name: str | None) -> dict[str, Any]:
    """Return the fields of a `LatencyProfile` that is fitted to observed calls.

    search_s: the time of a search where none was observed. name: name of the profile; None for that of the source.
    Raises: ConfigurationError naming the source and the remedy.
    """
    parts = split_calls(calls)
    phrases = [*calls.notes, *parts.assumptions]
    fits = {"first_token_s": fit_durations(parts.first_token, "first_token_s")}
    if parts.inter_token is not None:
        fits["inter_token_s"] = fit_durations(parts.inter_token, "inter_token_s")
    if parts.retrieval is not None:
        fits["retrieval_s"] = fit_durations(parts.retrieval, "retrieval_s")
        search_s = fits["retrieval_s"].table
    else:
        phrases.append("No search was observed: retrieval_s is that of the profile 'typical'.")
    sessions = fit_correlation(parts.slowness)
    phrases += [f"{name}: {fit.in_words()}" for name, fit in fits.items()]
    phrases.append(_NO_SESSIONS if sessions is None else sessions.in_words())
    if any(fit.cut for fit in fits.values()):
        phrases.append("Cut calls count as longer than they were when cut (right-censored).")
    phrases.append("hang_probability is 0: timeouts do not tell hangs from slow calls.")
    return {
        "name": name or re.sub(r"\.(csv|jsonl?|ndjson|parquet)\b", "", calls.source.removeprefix("the ")),
        "description": " ".join(phrases),
        "source": f"Fitted to {len(calls.frame)} calls of {calls.source}",
        "first_token_s": fits["first_token_s"].table,
        "inter_token_s": fits["inter_token_s"].table if "inter_token_s" in fits else _NO_TIME,
        "retrieval_s": search_s,
        "rank_correlation": parts.rank_correlation,
        "correlation": 0.0 if sessions is None else sessions.correlation,
        "evidence": fits,
    }
