"""Derive the latency profile of 2026 from the requests of coding agents.

    python data/derive_sessions.py claude_code_sessions_2026.csv.gz

Writes `docmind_lab/core/data/latency_profiles_2026.json` and prints the table of `data/README.md`, which explains the
choices made here. The same input gives the same bytes. The measurements are not part of the repository.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from derive_profiles import CUT, as_json, significant
from scipy import optimize, stats

from docmind_lab.statistics.latency.sessions import fit_correlation

OUTPUT = Path(__file__).resolve().parent.parent / "docmind_lab" / "core" / "data" / "latency_profiles_2026.json"
NAME = "coding_2026"
SOURCE = "WEKA, kv-cache-tester traces, 2026 (Apache-2.0; callanjfox kv-cache-tester at 94f6046)"
# With 24,812 requests the last percent is worth more than one step.
LEVELS = np.append(np.arange(100) / 100, [0.995, 0.999, 1.0])
# The recording stopped there.
CAP_S = 300.0
RETRIEVAL_MEDIAN_S, RETRIEVAL_SIGMA = 0.05, 0.6


def read_requests(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the requests that have a time and tokens, and counts of all. Exits with the remedy otherwise."""
    columns = ["session", "agent", "index", "api_time_s", "output_tokens"]
    try:
        requests = pd.read_csv(path, usecols=columns)
    except (OSError, ValueError) as error:
        sys.exit(f"derive_sessions: {path} cannot be read ({error}); data/README.md says where to get it")
    sound = requests[(requests["api_time_s"] > 0) & (requests["output_tokens"] > 0)]
    return sound.sort_values(["session", "agent", "index"], kind="stable", ignore_index=True), {
        "sent": len(requests),
        "used": len(sound),
        "capped": int((requests["api_time_s"] >= CAP_S).sum()),
    }


def fit_typical_time(requests: pd.DataFrame) -> tuple[float, float]:
    """Return seconds to the first token and for each token of a typical request: least absolute deviations of logs."""
    seconds = np.log(requests["api_time_s"].to_numpy())
    tokens = requests["output_tokens"].to_numpy(dtype=np.float64)

    def error(parameters: Any) -> float:
        return float(np.abs(seconds - np.log(np.exp(parameters[0]) + np.exp(parameters[1]) * tokens)).mean())

    fitted = optimize.minimize(error, [math.log(2.0), math.log(0.02)], method="Nelder-Mead", options={"xatol": 1e-8})
    first_s, inter_s = np.exp(fitted.x)
    return float(significant(np.array([first_s]))[0]), float(significant(np.array([inter_s]))[0])


def dependence(requests: pd.DataFrame, slowness: pd.Series[float]) -> dict[str, Any]:
    """Return how far the requests of a session are slow together."""
    logs = np.log(slowness)
    of_session = logs.groupby(requests["session"])
    inside = logs - of_session.transform("mean")
    counts = of_session.size()
    within = float((inside**2).sum() / (len(logs) - len(counts)))
    # One-way analysis of variance with sessions of several sizes.
    mean_size = (len(logs) - float((counts**2).sum()) / len(logs)) / (len(counts) - 1)
    square_between = float((counts * (of_session.mean() - logs.mean()) ** 2).sum() / (len(counts) - 1))
    between = max(0.0, (square_between - within) / mean_size)
    found = fit_correlation(pd.DataFrame({"session": requests["session"], "part": "call", "seconds": slowness}))
    if found is None:
        sys.exit("derive_sessions: fewer than ten sessions have several requests")
    in_line = logs.groupby([requests["session"], requests["agent"]])
    before = in_line.shift(1)
    return {
        "sessions": len(counts),
        "variance_within": round(within, 3),
        "variance_between": round(between, 3),
        "correlation": round(found.estimate, 3),
        "correlation_low": round(found.low, 3),
        "correlation_high": round(found.high, 3),
        "autocorrelation_lag_1": round(float(logs.corr(before)), 3),
        "autocorrelation_lag_10": round(float(logs.corr(in_line.shift(10))), 3),
    }


def derive(path: Path) -> dict[str, Any]:
    """Return everything that goes into the JSON."""
    requests, counts = read_requests(path)
    first_s, inter_s = fit_typical_time(requests)
    slowness = requests["api_time_s"] / (first_s + inter_s * requests["output_tokens"])
    quantiles = np.quantile(slowness, LEVELS)
    retrieval = NormalDist(math.log(RETRIEVAL_MEDIAN_S), RETRIEVAL_SIGMA)
    seconds = np.quantile(requests["api_time_s"], [0.5, 0.9, 0.99, 1.0])
    return {
        "levels": LEVELS.round(3).tolist(),
        "requests": counts,
        "request_s": dict(zip(("p50", "p90", "p99", "p100"), significant(seconds), strict=True)),
        "typical": {"first_token_s": first_s, "inter_token_s": inter_s},
        "slowness_sigma": round(float(np.log(slowness).std()), 3),
        "slowness_ks_distance": round(float(stats.kstest(stats.zscore(np.log(slowness)), stats.norm.cdf).statistic), 3),
        "dependence": dependence(requests, slowness),
        "profiles": {
            NAME: {
                "profile": {
                    "name": NAME,
                    "description": "Requests of coding agents with long contexts to hosted models of 2025 and 2026.",
                    "source": f"{SOURCE}; split into first token and tokens: fitted; retrieval: assumed lognormal",
                    "first_token_s": significant(first_s * quantiles),
                    "inter_token_s": significant(inter_s * quantiles),
                    "retrieval_s": significant(
                        np.exp([retrieval.inv_cdf(min(max(level, CUT), 1 - CUT)) for level in LEVELS])
                    ),
                    "hang_probability": 0.0,
                    "slots": None,
                    # One factor slows both parts of a request.
                    "rank_correlation": 1.0,
                }
            }
        },
    }


def as_markdown(data: dict[str, Any]) -> str:
    """Return the table of data/README.md."""
    shared = data["dependence"]
    counts = {name: data["requests"][name] for name in ("sent", "used", "capped")}
    rows = {
        "requests, used, at the cap of 300 s": ", ".join(f"{value:,}" for value in counts.values()),
        "sessions": f"{shared['sessions']}",
        "seconds of a request: p50, p90, p99, most": ", ".join(
            f"{data['request_s'][name]:g}" for name in ("p50", "p90", "p99", "p100")
        ),
        "typical first token, and each token, seconds": ", ".join(
            f"{data['typical'][name]:g}" for name in ("first_token_s", "inter_token_s")
        ),
        "sigma of ln(slowness)": f"{data['slowness_sigma']:.3f}",
        "variance of ln(slowness): within sessions, between": f"{shared['variance_within']:.3f}, "
        f"{shared['variance_between']:.3f}",
        "correlation of two requests of a session (95 %)": f"{shared['correlation']:.3f} "
        f"[{shared['correlation_low']:.3f}, {shared['correlation_high']:.3f}]",
        "autocorrelation of consecutive requests, and of those ten apart": f"{shared['autocorrelation_lag_1']:.3f}, "
        f"{shared['autocorrelation_lag_10']:.3f}",
    }
    return "\n".join(["| coding_2026 | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main(arguments: list[str] | None = None) -> None:
    """Write the JSON and print the table."""
    parser = argparse.ArgumentParser(description="Derive the latency profile of 2026 from requests of coding agents.")
    parser.add_argument("file", type=Path, help="claude_code_sessions_2026.csv.gz")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="JSON file to write (default: the shipped one)")
    options = parser.parse_args(arguments)
    data = derive(options.file)
    options.out.write_text(as_json(data), encoding="utf-8")
    print(as_markdown(data))


if __name__ == "__main__":
    main()
