"""Exports of tracing tools as sources of latencies (agents.md 10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from exported_spans import after, langsmith_run, otlp, otlp_span
from golden import assert_golden

from docmind_lab.statistics.latency.observed_calls import ObservedCalls, read_calls

EXPORTS = Path(__file__).parents[1] / "traces" / "exports"
CALLS = 24


def langsmith() -> list[dict[str, Any]]:
    rows = []
    for number in range(CALLS):
        begun = 10.0 * number
        node, model = "agent" if number % 3 else "judge", "large" if number % 2 else "small"
        more = {
            "error": None if number else "TimeoutError()",
            "first_token_time": after(begun + 0.5),
            "completion_tokens": 30 + number,
            "extra": {"metadata": {"ls_model_name": model, "langgraph_node": node}},
        }
        rows.append(
            langsmith_run(number, None, "llm", "ChatOpenAI", begun, begun + 2 + number / 10, trace=number, **more)
        )
        # The chain around the call is no model call.
        rows.append(langsmith_run(100 + number, None, "chain", "node", begun, begun + 9, trace=number))
    return rows


def openinference() -> dict[str, Any]:
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "small", "llm.token_count.completion": 40}
    return otlp([otlp_span("call", 0, 2, attributes, traceId=str(number)) for number in range(3)])


def test_which_calls_are_read_of_each_export(tmp_path: Path) -> None:
    for name, content in (("langsmith", langsmith()), ("openinference", openinference())):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = {
        "LangSmith": tmp_path / "langsmith.json",
        "Langfuse": EXPORTS / "langfuse.jsonl",
        "Phoenix": EXPORTS / "phoenix.parquet",
        "OTLP of OpenInference": tmp_path / "openinference.json",
    }
    texts = {name: told(read_calls(file)) for name, file in files.items()}
    assert told(read_calls(pd.read_parquet(EXPORTS / "phoenix.parquet"))) == texts["Phoenix"]
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def told(calls: ObservedCalls) -> str:
    """The calls as a table, without what is nowhere known, and what was left out."""
    known = calls.frame.loc[:, (calls.frame.notna() & (calls.frame != "")).any()]
    return "\n".join([known.to_csv(index=False, float_format="%.6g"), *calls.notes])


def test_the_same_export_as_a_table_gives_the_same_calls(tmp_path: Path) -> None:
    frame = pd.DataFrame(langsmith()).assign(extra=lambda rows: rows["extra"].map(json.dumps))
    frame = frame.drop(columns=["inputs", "attachments"])
    frame.to_csv(tmp_path / "runs.csv", index=False)
    stamped = frame.assign(
        **{name: pd.to_datetime(frame[name], format="ISO8601") for name in ("start_time", "end_time")}
    )
    stamped.to_parquet(tmp_path / "runs.parquet")
    wanted = read_calls(pd.DataFrame(langsmith())).frame
    for name in ("runs.csv", "runs.parquet"):
        pd.testing.assert_frame_equal(read_calls(tmp_path / name).frame, wanted, check_dtype=False)
