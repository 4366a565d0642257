"""What it costs to replay traces, and to draw a frontier from them.

The traces are those of the supervisor's control, measured in virtual time, and repeated under other names until there
are enough. Replays are timed by the CPU of one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

import docmind_lab as dl
from benchmarks.figures import Figure, sampled
from docmind_lab.experiments.comparison import compare
from docmind_lab.findings.what_if.outcomes import Replay
from docmind_lab.tables.traces.rules import rules_of
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study

SECONDS_A_RUN_TARGET = 1 / 20_000
FRONTIER_TARGET_S = 1.0
ALTERNATIVES = "control,A,B,C,D,E,F"


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    recorded: int = 40
    runs: int = 1_000
    deadlines: int = 200
    repeats: int = 5


FULL = Scale()
QUICK = Scale(recorded=2, runs=20, deadlines=5, repeats=1)


def run(scale: Scale = FULL) -> Iterator[Figure]:
    """Runs a second and core, and the frontier."""
    yield from replay_figures(repeated(supervisor_traces(scale.recorded), scale.runs), scale)


def supervisor_traces(runs: int) -> Traces:
    """Runs of the supervisor without a deadline."""
    study = compare(
        decision_timeout_s=20, alternatives="unguarded", world=dl.World(latencies="local_gpu"), runs=runs, seed=77
    )
    return traces_of_study(study)


def repeated(traces: Traces, runs: int) -> Traces:
    """The traces under other names, until there are so many."""
    times = -(-runs // len(traces))
    wanted = {
        name: pd.concat([frame.assign(trace_id=frame["trace_id"] + f" {n}") for n in range(times)], ignore_index=True)
        for name, frame in (("runs", traces.runs), ("spans", traces.spans), ("generation", traces.generation))
    }
    return Traces.of(**wanted).only(wanted["runs"]["trace_id"][:runs])


def replay_figures(traces: Traces, scale: Scale) -> Iterator[Figure]:
    """One deadline for each run under each alternative, and the frontier of all deadlines."""
    replay = Replay(traces)
    rules = [each.rule for each in rules_of(ALTERNATIVES)]
    deadlines = np.linspace(2.0, 30.0, scale.deadlines)
    one, frontier = [], []
    for _ in range(scale.repeats):
        begun_s = time.process_time()
        for rule in rules:
            replay.under(rule, deadlines)
        frontier.append(time.process_time() - begun_s)
        begun_s = time.process_time()
        answered = sum(replay.under(rule, [12.0]).in_time.sum() for rule in rules)
        one.append((time.process_time() - begun_s) / len(rules) / len(traces))
    assert answered, "the deadline is one that some runs meet"
    yield sampled(
        "CPU of a run at one deadline", [1e6 * each for each in one], unit="µs", at_most=1e6 * SECONDS_A_RUN_TARGET
    )
    yield Figure("runs a second and core", float(1 / np.median(one)), "runs/s")
    cells = [1e6 * each / (len(rules) * len(traces) * scale.deadlines) for each in frontier]
    yield sampled("CPU of a run in a frontier", cells, unit="µs", at_most=1e6 * SECONDS_A_RUN_TARGET)
    what = f"frontier of {len(traces):,} traces × {scale.deadlines} deadlines × {len(rules)} alternatives"
    yield sampled(what, frontier, unit="s", at_most=FRONTIER_TARGET_S)
