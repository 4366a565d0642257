"""Fits the tables of a latency profile to observed calls, with the evidence for each."""

from __future__ import annotations

import re
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
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


def fit_calls(
    calls: ObservedCalls, search_s: QuantileTable, hang_probability: float, name: str | None
) -> dict[str, Any]:
    """Return the fields of a `LatencyProfile` that is fitted to observed calls.

    search_s: the time of a search where none was observed. hang_probability: share of model calls that never answer;
    it is never guessed from timeouts, which may be slow calls. name: name of the profile; None for that of the source.
    Raises: ConfigurationError naming the source and the remedy, or that the share is out of range.
    """
    if not 0 <= hang_probability < 1:
        raise ConfigurationError(f"hang_probability must lie in [0, 1): got {hang_probability}")
    hangs = _hangs_in(calls, hang_probability)
    parts = split_calls(calls, hangs)
    phrases = [*calls.notes, *parts.assumptions]
    fits = {"first_token_s": fit_durations(parts.first_token, "first_token_s", hangs)}
    if parts.inter_token is not None:
        # A call that hangs never sends its first token, so it is among the first tokens only. Where only whole
        # latencies are known, both parts are factors of one sample, and the hangs are in both.
        within = hangs if len(parts.inter_token.cut_s) else 0.0
        fits["inter_token_s"] = fit_durations(parts.inter_token, "inter_token_s", within)
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
    values = f"{hang_probability:g}, as given" if hang_probability else "0: timeouts do not tell hangs from slow calls"
    phrases.append(f"hang_probability is {values}.")
    if hang_probability and not hangs:
        phrases.append("Far fewer calls were cut than hang, so the hung ones are taken to be missing from the data.")
    return {
        "name": name or re.sub(r"\.(csv|jsonl?|ndjson|parquet)\b", "", calls.source.removeprefix("the ")),
        "description": " ".join(phrases),
        "source": f"Fitted to {len(calls.frame)} calls of {calls.source}",
        "first_token_s": fits["first_token_s"].table,
        "inter_token_s": fits["inter_token_s"].table if "inter_token_s" in fits else _NO_TIME,
        "retrieval_s": search_s,
        "hang_probability": hang_probability,
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
