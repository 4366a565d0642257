"""Writes what docs/limits.md says that limits buy: its numbers to the screen, and docs/images/limits.png.

    python docs/make_limits.py

A first study without faults gives the limits, as a user would find them: the 99th percentile of its calls. The arms are
then judged on other seeds, with one call in twenty that never answers. Everything is in virtual time, so the numbers
are the same every time.
"""

from __future__ import annotations

import math
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy

import docmind_lab as dl
from docmind_lab.alternatives import Alternative, Cooperative
from docmind_lab.core.deadlines import PropagationPolicy
from docmind_lab.core.limits import Limits
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.tables.conditions import with_arms

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = ROOT / "examples" / "graphs"
LATENCIES = "typical"
HANG, SILENCE = "hang:*:0.05", "stall_mid_stream=3600:*:0.05"
FIRST_SEED, FIRST_RUNS = 1_000, 40
JUDGED_SEED, JUDGED_RUNS = 9_000, 200
DOCMIND_TIMEOUT_S, GRAPH_TIMEOUT_S = 30.0, 20.0


def healthy_calls(system: dl.System | None) -> dict[str, float]:
    """The 99th percentile of three times of a system's model calls without faults, up to the next tenth of a second."""
    world = dl.World(latencies=LATENCIES)
    study = dl.compare(system, 120, alternatives="A", world=world, runs=FIRST_RUNS, seed=FIRST_SEED)
    calls = study.calls[(study.calls["seen_from"] == "client") & (study.calls["kind"] == "llm")]
    assert set(calls["outcome"]) == {"ok"}, "nothing fails without a fault"
    times = {
        "first_token_s": calls["first_token_at_s"] - calls["started_at_s"],
        "idle_s": calls["longest_gap_s"],
        "total_s": calls["latency_s"],
    }
    # What is not streamed has one token, and no gap.
    known = {name: values for name, values in times.items() if values.notna().any()}
    percentiles = {name: math.ceil(10 * float(values.quantile(0.99))) / 10 for name, values in known.items()}
    sys.stdout.write(f"99th percentile of {len(calls)} healthy calls: {percentiles}\n")
    return percentiles


def judged(system: dl.System | None, timeout_s: float, fault: str, arms: Sequence[str | Alternative]) -> dl.Study:
    """Run the arms on fresh seeds, and print what they answered and how they differ from A."""
    world = dl.World(latencies=LATENCIES, faults=fault)
    study = dl.compare(system, timeout_s, alternatives=arms, world=world, runs=JUDGED_RUNS, seed=JUDGED_SEED)
    runs = with_arms(study.runs).groupby("arm", observed=True, sort=False)
    counts = runs.agg(in_time=("answered_in_time", "sum"), runs=("run_id", "size"), requests=("llm_calls", "sum"))
    ends = runs["outcome"].value_counts().unstack(fill_value=0)
    sys.stdout.write(f"\n{fault}, {timeout_s:g} s\n{counts.join(ends).to_string()}\n")
    shown = study.compare_to("A", measures=("answered_in_time",))
    sys.stdout.write(f"{shown[['arm', 'reference', 'difference', 'low', 'high', 'p_corrected']].to_string()}\n")
    cut = study.calls[study.calls["seen_from"] == "client"].groupby(["cut_by", "outcome"], observed=True).size()
    sys.stdout.write(f"{cut.to_string()}\n")
    return study


def streaming_with_retries() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph of examples/graphs/streaming.py, each node of which LangGraph tries once more."""
    builder = runpy.run_path(str(GRAPHS / "streaming.py"))["builder"]
    for node in builder.nodes.values():
        node.retry_policy = RetryPolicy(max_attempts=2)
    return builder.compile()


def main() -> None:
    """Judge limits on DocMind, with no retry and with one, and on a graph that streams."""
    # The client asks for one, in every process; the simulated model does not.
    os.environ.setdefault("OPENAI_API_KEY", "none")
    total = TimePolicies(limits=Limits(total_s=healthy_calls(None)["total_s"]))
    arms = [
        Cooperative(policy=PropagationPolicy(retries=retries, policies=policies))
        for policies in (TimePolicies(), total)
        for retries in (0, 1)
    ]
    study = judged(None, DOCMIND_TIMEOUT_S, HANG, arms)
    dl.plots.save_png(dl.plots.completion(study, ax=dl.plots.OFFSCREEN), ROOT / "docs" / "images" / "limits.png")
    streaming = dl.graph(f"{GRAPHS / 'streaming.py'}:graph", GRAPHS / "streaming.jsonl")
    retried = dl.graph(f"{__file__}:streaming_with_retries", GRAPHS / "streaming.jsonl")
    limit_s = healthy_calls(streaming)["first_token_s"]
    first_token, idle = f"A+limits:first_token={limit_s:g}", f"A+limits:idle={limit_s:g}"
    judged(streaming, GRAPH_TIMEOUT_S, HANG, ["A", first_token])
    judged(streaming, GRAPH_TIMEOUT_S, SILENCE, ["A", first_token, idle])
    judged(retried, GRAPH_TIMEOUT_S, SILENCE, ["A", idle])


if __name__ == "__main__":
    main()
