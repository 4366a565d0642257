"""Fits the tables of a latency profile to observed calls, with the evidence for each.

The latency of a call is split into the time to the first token, the time for each token, and a search.

If the first token is recorded, the two parts are known. If only the latency is, one of two assumptions takes their
place. Both keep the whole latency as it was observed, and `Parts.assumptions` says which was made.

`fit_pace` finds how latencies grow with the output tokens: latency = factor × (first + tokens × each), since a slow
call is slow in both parts. The three unknowns (two times and the spread of lognormal factors) are found by maximum
likelihood; the factors themselves are then whatever the rows say.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import count_of
from docmind_lab.statistics.latency.durations import Sample, fit_durations
from docmind_lab.statistics.latency.families import Floats
from docmind_lab.statistics.latency.observed_calls import ObservedCalls
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.statistics.latency.sessions import fit_correlation

_NO_SESSIONS: Final = (
    "No ten sessions of several calls are known, so whether calls of a session are slow together cannot be told: they "
    "count as independent; map a column to session to know."
)
_NO_TIME: Final = QuantileTable.constant(0.0)
_FEWEST_FOR_SLOPE: Final = 20


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
        "source": f"Fitted to {count_of(len(calls.frame), 'call')} of {calls.source}",
        "first_token_s": fits["first_token_s"].table,
        "inter_token_s": fits["inter_token_s"].table if "inter_token_s" in fits else _NO_TIME,
        "retrieval_s": search_s,
        "rank_correlation": parts.rank_correlation,
        "correlation": 0.0 if sessions is None else sessions.correlation,
        "evidence": fits,
    }


@dataclass(frozen=True, eq=False)
class Parts:
    """Samples of each part of a call's latency, in seconds.

    inter_token: None where tokens count as taking no time. retrieval: None without a search. rank_correlation:
    Spearman's rho of a model call's two parts. assumptions: what is not measured. slowness: of complete calls.
    """

    first_token: Sample
    inter_token: Sample | None
    retrieval: Sample | None
    rank_correlation: float
    assumptions: tuple[str, ...]
    slowness: pd.DataFrame


def split_calls(calls: ObservedCalls) -> Parts:
    """Split observed calls into parts. Raises: ConfigurationError without a model call, or if all of a kind are cut."""
    llm, searches = calls.of_kind("llm"), calls.of_kind("retrieval")
    if llm.empty:
        raise ConfigurationError(
            f"{calls.source} has no model call (kind llm): a profile needs the latencies of the model"
        )
    for kind, rows in (("llm", llm), ("retrieval", searches)):
        if len(rows) and not rows["complete"].any():
            raise ConfigurationError(
                f"{calls.source}: all {len(rows)} calls of kind {kind} were cut, so no latency was observed; measure "
                "with a longer timeout, or say with ok which outcomes mean a complete answer"
            )
    retrieval = _sample(searches["latency_s"], searches["complete"]) if len(searches) else None
    whole = llm[llm["complete"]]
    # An answer that came in one piece has its first byte at its end, which says nothing of its first token.
    in_one_piece = (
        llm["complete"] & (llm["first_token_s"] >= llm["latency_s"] * (1 - 1e-6)) & (llm["output_tokens"] != 1)
    )
    llm = llm.assign(first_token_s=llm["first_token_s"].mask(in_one_piece))
    if llm.loc[whole.index, "first_token_s"].notna().mean() >= 0.5:
        return _split_by_first_token(llm, retrieval)
    factors = _factors(llm)
    if factors is None:
        first = _sample(llm["latency_s"], llm["complete"])
        text = (
            f"{_first_tokens(llm)}, and latencies do not tell how they grow with the output tokens: the whole latency "
            "counts as the time to the first token, and the tokens after it as taking no time."
        )
        return Parts(first, None, retrieval, 0.0, (text,), _slowness("whole", whole, whole["latency_s"]))
    first_s, token_s, sample, text = factors
    slowness = _slowness("factor", llm[_has_factor(llm)], sample.observed_s)
    return Parts(_times(sample, first_s), _times(sample, token_s), retrieval, 1.0, (text,), slowness)


def _slowness(part: str, calls: pd.DataFrame, seconds: pd.Series[float] | Floats) -> pd.DataFrame:
    return pd.DataFrame({"session": calls["session"].to_numpy(), "part": part, "seconds": np.asarray(seconds)})


def _sample(values: pd.Series[float], complete: pd.Series[bool]) -> Sample:
    done = complete.to_numpy(dtype="bool")
    seconds = np.asarray(values, dtype="float64")
    return Sample(seconds[done], seconds[~done])


def _times(sample: Sample, factor: float) -> Sample:
    return Sample(sample.observed_s * factor, sample.cut_s * factor)


def _split_by_first_token(llm: pd.DataFrame, retrieval: Sample | None) -> Parts:
    """Split model calls whose first tokens are recorded; one cut before its first token had waited that long."""
    begun = llm["first_token_s"].notna()
    waiting = ~llm["complete"] & ~begun
    first = Sample(
        llm.loc[begun, "first_token_s"].to_numpy(dtype="float64"),
        llm.loc[waiting, "latency_s"].to_numpy(dtype="float64"),
    )
    slowness = _slowness("first_token_s", llm[begun], first.observed_s)
    assumptions = []
    countable = begun & (llm["output_tokens"] > 0)
    rest_s = (llm["latency_s"] - llm["first_token_s"]).clip(lower=0.0)
    inter = np.asarray((rest_s / llm["output_tokens"])[countable], dtype="float64")
    if not len(inter):
        assumptions.append("No call has both its first token and its output tokens: tokens count as taking no time.")
        return Parts(first, None, retrieval, 0.0, tuple(assumptions), slowness)
    unknown = int((~llm["complete"] & begun & ~countable).sum())
    if unknown:
        assumptions.append(
            f"{unknown} calls were cut after their first token and do not say how many had come; without them the time "
            "per token leans towards fast calls."
        )
    in_pieces = int((llm["complete"] & ~begun).sum())
    if in_pieces:
        assumptions.append(f"Left out: {count_of(in_pieces, 'complete call')} without a first token.")
    rho = _spearman(llm.loc[countable, "first_token_s"].to_numpy(dtype="float64"), inter)
    slowness = pd.concat([slowness, _slowness("inter_token_s", llm[countable], inter)], ignore_index=True)
    return Parts(first, Sample(inter, np.empty(0)), retrieval, rho, tuple(assumptions), slowness)


def _first_tokens(llm: pd.DataFrame) -> str:
    known = int(llm["first_token_s"].notna().sum())
    if not known:
        return "No first tokens are recorded"
    return f"Only {known} of {count_of(len(llm), 'model call')} came with a first token, too few to go by"


def _spearman(first: Floats, inter: Floats) -> float:
    """Return Spearman's rho; 0 where it cannot be told from chance."""
    if len(first) < _FEWEST_FOR_SLOPE or np.ptp(first) == 0 or np.ptp(inter) == 0:
        return 0.0
    result = stats.spearmanr(first, inter)
    return round(float(result.statistic), 3) if result.pvalue < 0.05 else 0.0


def _has_factor(llm: pd.DataFrame) -> pd.Series[bool]:
    return llm["complete"] & llm["output_tokens"].notna() & (llm["latency_s"] > 0)


def _factors(llm: pd.DataFrame) -> tuple[float, float, Sample, str] | None:
    """Return seconds to first token and per token at factor 1, and each call's factor; None if it cannot be told."""
    rows_with_factor = _has_factor(llm)
    cut = ~llm["complete"] & (llm["latency_s"] > 0)
    tokens = llm.loc[rows_with_factor, "output_tokens"].to_numpy(dtype="float64")
    if rows_with_factor.sum() < max(_FEWEST_FOR_SLOPE, 0.5 * llm["complete"].sum()) or np.ptp(tokens) == 0:
        return None
    whole_s, cut_s = (llm.loc[rows, "latency_s"].to_numpy(dtype="float64") for rows in (rows_with_factor, cut))
    result = fit_pace(whole_s, tokens, cut_s)
    if result is None:
        return None
    sample = Sample(whole_s / (result.first_s + result.token_s * tokens), cut_s / result.expected_s_of_cut)
    text = (
        f"{_first_tokens(llm)}. Latency is taken as (first token + output tokens × time per token) × a factor "
        f"of each call, so both parts are slow together (rank correlation 1); a factor of 1 is {result.first_s:.3g} s "
        f"and {result.token_s:.3g} s per token."
    )
    if len(cut_s):
        text += (
            " How many tokens the cut calls were to give is not known: it is taken from those of the complete ones, "
            "longer answers being cut more often."
        )
    return result.first_s, result.token_s, sample, text


# Twice the gain in log likelihood that chance exceeds in 1 of 20 samples, for one parameter at its bound of 0.
_SLOPE_GAIN: Final = 2.71
# How many tokens a cut call was to give is not known: it may be any of so many quantiles of the complete ones.
_TOKEN_COUNTS: Final = 40
# Each round moves the shares of those counts by a tenth of the one before, or less.
_ROUNDS: Final = 6


@dataclass(frozen=True, eq=False)
class Pace:
    """How latencies grow with output tokens, for a call of factor 1.

    first_s: seconds to its first token; token_s: for each of its tokens. expected_s_of_cut: the latency that each cut
    call would have had, a geometric mean over the tokens that it may have been to give.
    """

    first_s: float
    token_s: float
    expected_s_of_cut: Floats


def fit_pace(whole_s: Floats, tokens: Floats, cut_s: Floats) -> Pace | None:
    """Fit the pace of complete calls (whole_s, tokens) and of cut ones; None if tokens do not make calls longer.

    All seconds are positive. The tokens that cut calls were to give are those of complete calls, weighted by how
    likely such a call was to be cut: expectation and maximisation in turns.
    """
    typical = max(1.0, float(np.median(tokens)))
    counts = np.quantile(tokens, (np.arange(_TOKEN_COUNTS) + 0.5) / _TOKEN_COUNTS)
    of_complete = np.full(_TOKEN_COUNTS, 1 / _TOKEN_COUNTS)
    rows = _Rows(np.log(whole_s), tokens / typical, np.log(cut_s), counts / typical)
    shares, theta = of_complete, rows.start()
    flat = rows.fit(theta, shares, with_tokens=False)
    for _ in range(_ROUNDS if len(cut_s) else 1):
        result = rows.fit(theta, shares)
        theta = result.x
        belief = rows.belief(theta, shares)
        shares = (of_complete * len(whole_s) + belief.sum(axis=0)) / (len(whole_s) + len(cut_s))
    if 2 * len(whole_s) * (float(flat.fun) - float(rows.fit(theta, of_complete).fun)) < _SLOPE_GAIN:
        return None
    expected = belief @ np.log(math.exp(theta[0]) + math.exp(theta[1]) * rows.counts)
    return Pace(math.exp(theta[0]), math.exp(theta[1]) / typical, np.exp(expected))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Log latencies, and tokens in units of a typical count. theta: log first, log each, log spread."""

    log_whole: Floats
    tokens: Floats
    log_cut: Floats
    counts: Floats

    def start(self) -> Floats:
        middle, spread = float(self.log_whole.mean()), float(self.log_whole.std())
        return np.array([middle - 0.7, middle - 0.7, math.log(max(spread, 0.02))])

    def fit(self, start: Floats, shares: Floats, with_tokens: bool = True) -> Any:
        middle = float(self.log_whole.mean())
        bounds = [(middle - 14, middle + 7), (middle - 14, middle + 7), (math.log(1e-4), math.log(10.0))]
        options = {"ftol": 1e-9, "maxiter": 300}
        return optimize.minimize(
            self._loss, start, (shares, with_tokens), method="SLSQP", bounds=bounds, options=options
        )

    def belief(self, theta: Floats, shares: Floats) -> Floats:
        """Return for each cut call the probability of each count of tokens."""
        weights = shares * self._longer(theta)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _longer(self, theta: Floats, with_tokens: bool = True) -> Floats:
        """Return the probability that a call with each count of tokens takes longer than each cut call did."""
        each = math.exp(theta[1]) if with_tokens else 0.0
        away = (self.log_cut[:, np.newaxis] - np.log(math.exp(theta[0]) + each * self.counts)) / math.exp(theta[2])
        # Not 0, so that a belief is defined for calls that no count explains.
        return np.asarray(np.maximum(special.ndtr(-away), 1e-300))

    def _loss(self, theta: Floats, shares: Floats, with_tokens: bool) -> float:
        each = math.exp(theta[1]) if with_tokens else 0.0
        z = (self.log_whole - np.log(math.exp(theta[0]) + each * self.tokens)) / math.exp(theta[2])
        longer = self._longer(theta, with_tokens) @ shares
        return float((0.5 * z * z + theta[2]).mean() - np.log(longer).sum() / len(z))
