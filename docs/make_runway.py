"""Prints the table of docs/runway.md that says what `wrap_up` gains, at three times, on DocMind and on other graphs.

    python docs/make_runway.py

A first study without a deadline that matters gives each system's median time, and the 90th percentile of its final
model call, which becomes the reserve. The arms are then judged on other seeds. Everything is in virtual time, so the
numbers are the same every time.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import docmind_lab as dl

GRAPHS = Path(__file__).resolve().parent.parent / "examples" / "graphs"
LATENCIES = "typical"
NAMES = ("docmind", "parallel_tools", "supervisor", "swarm", "deep_agent")
SHARES = (0.5, 0.8, 1.0)
FIRST_SEED, FIRST_RUNS = 1_000, 60
JUDGED_SEED, JUDGED_RUNS = 23_000, 100
LONG_S = 240.0


class Row(NamedTuple):
    """What `wrap_up` does at one share of the median time: pairs are without it and with it."""

    share: float
    timeout_s: float
    reserve_s: float
    answered: tuple[int, int]
    tokens: tuple[float, float]
    gain: Any


def system_of(name: str) -> dl.System:
    """The system of this name."""
    return dl.docmind() if name == "docmind" else dl.graph(f"{GRAPHS / name}.py:graph", GRAPHS / f"{name}.jsonl")


def measured(
    name: str, shares: Sequence[float] = SHARES, seed: int = JUDGED_SEED, runs: int = JUDGED_RUNS
) -> Iterator[Row]:
    """Yield a row for each share of the median time of one system."""
    system, world = system_of(name), dl.World(latencies=LATENCIES)
    first = dl.compare(system, LONG_S, alternatives="control", world=world, runs=FIRST_RUNS, seed=FIRST_SEED)
    ended_s = first.runs.loc[first.runs["outcome"] == "answered", "returned_at_s"]
    reserve_s = math.ceil(10 * dl.findings.final_call_s(first).estimate) / 10
    for share in shares:
        timeout_s = round(share * float(ended_s.median()), 1)
        arms = ["E", f"E+wrap_up:{reserve_s:g}s"]
        study = dl.compare(system, timeout_s, alternatives=arms, world=world, runs=runs, seed=seed)
        has_it = study.runs["alternative_options"].str.contains("wrap_up")
        plain, told = study.runs[~has_it], study.runs[has_it]
        answered = int(plain["answered_in_time"].sum()), int(told["answered_in_time"].sum())
        tokens = float(plain["tokens_spent"].mean()), float(told["tokens_spent"].mean())
        gain = study.compare_to("E", measures=("answered_in_time",)).iloc[0]
        yield Row(share, timeout_s, reserve_s, answered, tokens, gain)


def line_of(name: str, row: Row) -> str:
    """The line of the table."""
    interval = f"{row.gain['difference']:+.0%} [{row.gain['low']:+.0%}, {row.gain['high']:+.0%}]"
    tokens = (f"{each:,.0f}" for each in row.tokens)
    time = f"{row.share:g} ({row.timeout_s:g} s)"
    cells = [name, time, f"{row.reserve_s:g} s", *map(str, row.answered), interval, *tokens]
    return f"| {' | '.join(cells)} |".replace("-", "−").replace("%", " %")


if __name__ == "__main__":
    # The clients ask for one, in every process; the simulated models do not.
    os.environ.setdefault("OPENAI_API_KEY", "none")
    for each in sys.argv[1:] or NAMES:
        for measured_row in measured(each):
            sys.stdout.write(line_of(each, measured_row) + "\n")
            sys.stdout.flush()
