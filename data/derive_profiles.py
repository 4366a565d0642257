"""Derive the shipped latency profiles from public measurements.

    python data/derive_profiles.py DIR_WITH_CSVS

Reads `llmperf_2023_requests.csv`, `azure_llm_2023_conv.csv` and `azure_llm_2023_code.csv` from the directory,
writes `docmind_lab/core/data/latency_profiles.json`, and prints the tables of `data/README.md`, which explains the
choices made here. The same input gives the same bytes. The measurements are not part of the repository.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

OUTPUT = Path(__file__).resolve().parent.parent / "docmind_lab" / "core" / "data" / "latency_profiles.json"
LLMPERF_FILE = "llmperf_2023_requests.csv"
AZURE_FILES = {"code": "azure_llm_2023_code.csv", "conversation": "azure_llm_2023_conv.csv"}
LLMPERF_SOURCE = "LLMPerf leaderboard raw data, December 2023 (Apache-2.0)"
AZURE_SOURCE = "Azure LLM inference trace 2023 (CC-BY 4.0); Patel et al., Splitwise, ISCA 2024"

# One level for each percent: with about 150 requests an endpoint, a finer grid would only copy the rows out.
LEVELS = np.arange(101) / 100
TOKEN_LEVELS = np.array([0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1])
# An assumed lognormal has no largest value, a table must have one: it is cut where 1 in 1,000 lies beyond.
CUT = 0.001
# Spearman's rho of 150 independent pairs stays within 0.16 of 0 (95 %); about twice that is worth drawing.
SIZEABLE_RHO = 0.3


@dataclass(frozen=True)
class Choice:
    """A profile's endpoint, and what is assumed for it because nothing was measured."""

    endpoint: str
    description: str
    retrieval_median_s: float
    retrieval_sigma: float
    slots: int | None = None


CHOICES = {
    "fast": Choice(
        "groq_70b",
        "A very fast hosted 70B model.",
        retrieval_median_s=0.015,
        retrieval_sigma=0.5,
    ),
    "typical": Choice(
        "fireworks_70b",
        "A hosted 70B model of middling speed.",
        retrieval_median_s=0.05,
        retrieval_sigma=0.6,
    ),
    "heavy_tail": Choice(
        "replicate_70b",
        "A hosted 70B model whose first token sometimes takes most of a minute.",
        retrieval_median_s=0.1,
        retrieval_sigma=1.0,
    ),
    "local_gpu": Choice(
        "anyscale_7b",
        "A proxy for a 7B model on one local GPU: a hosted endpoint's latencies, and one slot by assumption.",
        retrieval_median_s=0.03,
        retrieval_sigma=0.5,
        slots=1,
    ),
}


def read_rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a CSV. Exits with the remedy if the file or a column is missing."""
    if not path.is_file():
        sys.exit(f"derive_profiles: {path} is missing; data/README.md says where to get it and what to call it")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if missing := [column for column in columns if column not in (reader.fieldnames or ())]:
            sys.exit(f"derive_profiles: {path} has no column {', '.join(missing)}")
        return list(reader)


def significant(values: Floats, digits: int = 4) -> list[float]:
    """The values at a number of significant digits: the fourth is already far below the sampling error."""
    return [float(f"{value:.{digits}g}") for value in values]


def lognormal_fit(sample_s: Floats) -> dict[str, float]:
    """Maximum-likelihood mu and sigma (of seconds), and the Kolmogorov–Smirnov distance to the sample."""
    logs = np.log(sample_s)
    mu, sigma = float(logs.mean()), float(logs.std())
    distance = float(stats.kstest((logs - mu) / sigma, stats.norm.cdf).statistic)
    return {"mu": round(mu, 3), "sigma": round(sigma, 3), "ks_distance": round(distance, 3)}


def derive_profile(name: str, choice: Choice, rows: list[dict[str, str]]) -> dict[str, Any]:
    """One profile with its fits and its counts, as it goes into the JSON."""
    mine = [row for row in rows if row["endpoint"] == choice.endpoint]
    answered = [row for row in mine if not row["error_code"]]
    first_s = np.array([float(row["ttft_s"]) for row in answered])
    whole_s = np.array([float(row["end_to_end_latency_s"]) for row in answered])
    tokens = np.array([float(row["output_tokens"]) for row in answered])
    sound = (first_s > 0) & (whole_s > first_s) & (tokens > 0)
    if sound.sum() < 2:
        sys.exit(f"derive_profiles: {LLMPERF_FILE} has fewer than 2 usable requests for {choice.endpoint}")
    first_s = first_s[sound]
    # Not the inter_token_latency_s column: that is end to end over tokens, so it holds the first token too,
    # and the sum would count it twice. This one gives each request its measured total back.
    inter_s = (whole_s[sound] - first_s) / tokens[sound]
    rho = float(stats.spearmanr(first_s, inter_s).statistic)
    mu, sigma = math.log(choice.retrieval_median_s), choice.retrieval_sigma
    retrieval = NormalDist(mu, sigma)
    retrieval_s = np.exp([retrieval.inv_cdf(min(max(level, CUT), 1 - CUT)) for level in LEVELS])
    return {
        "endpoint": choice.endpoint,
        "requests": {
            "sent": len(mine),
            "dropped_errors": len(mine) - len(answered),
            "dropped_degenerate": len(answered) - int(sound.sum()),
            "used": int(sound.sum()),
        },
        "spearman_rho": round(rho, 2),
        "lognormal": {
            "first_token_s": lognormal_fit(first_s) | {"basis": "measured"},
            "inter_token_s": lognormal_fit(inter_s) | {"basis": "measured"},
            "retrieval_s": {"mu": round(mu, 3), "sigma": sigma, "basis": "assumed"},
        },
        "profile": {
            "name": name,
            "description": choice.description,
            "source": f"{LLMPERF_SOURCE}, endpoint {choice.endpoint}; retrieval: assumed lognormal",
            "first_token_s": significant(np.quantile(first_s, LEVELS)),
            "inter_token_s": significant(np.quantile(inter_s, LEVELS)),
            "retrieval_s": significant(retrieval_s),
            "hang_probability": 0.0,
            "slots": choice.slots,
            "rank_correlation": round(rho, 2) if abs(rho) >= SIZEABLE_RHO else 0.0,
        },
    }


def derive_tokens(path: Path) -> dict[str, Any]:
    """Token quantiles of one trace."""
    rows = read_rows(path, ("ContextTokens", "GeneratedTokens"))
    context = np.quantile([int(row["ContextTokens"]) for row in rows], TOKEN_LEVELS)
    output = np.quantile([int(row["GeneratedTokens"]) for row in rows], TOKEN_LEVELS)
    return {
        "source": AZURE_SOURCE,
        "requests": len(rows),
        "levels": TOKEN_LEVELS.tolist(),
        "context_tokens": [round(value) for value in context],
        "output_tokens": [round(value) for value in output],
    }


def derive(directory: Path) -> dict[str, Any]:
    """Everything that goes into the JSON."""
    columns = ("endpoint", "ttft_s", "end_to_end_latency_s", "output_tokens", "error_code")
    rows = read_rows(directory / LLMPERF_FILE, columns)
    return {
        "levels": LEVELS.tolist(),
        "profiles": {name: derive_profile(name, choice, rows) for name, choice in CHOICES.items()},
        "reference_tokens": {trace: derive_tokens(directory / file) for trace, file in AZURE_FILES.items()},
    }


def as_json(data: dict[str, Any]) -> str:
    """Sorted JSON, a list of numbers on one line."""
    text = json.dumps(data, indent=1, sort_keys=True)
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]), text) + "\n"


def as_markdown(data: dict[str, Any]) -> str:
    """The tables of data/README.md."""
    lines = [
        "| profile | quantity | basis | p0 | p10 | p50 | p90 | p99 | p100 |",
        "|---|---|---|" + "--:|" * 6,
    ]
    fits = ["| profile | quantity | mu | sigma | KS distance |", "|---|---|--:|--:|--:|"]
    counts = [
        "| profile | endpoint | sent | errors | degenerate | used | rho | drawn |",
        "|---|---|" + "--:|" * 6,
    ]
    for name in CHOICES:
        entry = data["profiles"][name]
        for quantity, fit in entry["lognormal"].items():
            values = [f"{entry['profile'][quantity][percent]:g}" for percent in (0, 10, 50, 90, 99, 100)]
            lines.append(f"| {name} | {quantity} | {fit['basis']} | {' | '.join(values)} |")
            distance = f"{fit['ks_distance']:.3f}" if "ks_distance" in fit else "assumed"
            fits.append(f"| {name} | {quantity} | {fit['mu']:.3f} | {fit['sigma']:.3f} | {distance} |")
        used = entry["requests"]
        cells = [used[key] for key in ("sent", "dropped_errors", "dropped_degenerate", "used")]
        cells += [f"{entry['spearman_rho']:.2f}", f"{entry['profile']['rank_correlation']:g}"]
        counts.append(f"| {name} | {entry['endpoint']} | {' | '.join(map(str, cells))} |")
    percents = [f"p{level * 100:g}" for level in TOKEN_LEVELS]
    tokens = [f"| trace | quantity | requests | {' | '.join(percents)} |", "|---|---|" + "--:|" * 12]
    for trace, table in data["reference_tokens"].items():
        for quantity in ("context_tokens", "output_tokens"):
            numbers = " | ".join(map(str, table[quantity]))
            tokens.append(f"| {trace} | {quantity} | {table['requests']} | {numbers} |")
    return "\n\n".join("\n".join(table) for table in (counts, lines, fits, tokens))


def main(arguments: list[str] | None = None) -> None:
    """Write the JSON and print the tables."""
    parser = argparse.ArgumentParser(description="Derive the shipped latency profiles from public measurements.")
    parser.add_argument("directory", type=Path, help="directory with the three CSV files")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="JSON file to write (default: the shipped one)")
    options = parser.parse_args(arguments)
    data = derive(options.directory)
    options.out.write_text(as_json(data), encoding="utf-8")
    print(as_markdown(data))


if __name__ == "__main__":
    main()
