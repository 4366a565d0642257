"""What is read from tables and spans, and the one clear line for each thing that cannot be."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from exported_spans import otlp, otlp_span
from sample_calls import call
from sample_runs import sample_study

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.latency.fitting import split_calls
from docmind_lab.statistics.latency.observed_calls import read_calls
from docmind_lab.tables.frames import to_frame

ROWS = [
    {"duration_ms": 900.0, "ttft_ms": 400.0, "tokens": 25, "status": "ok", "type": "llm"},
    {"duration_ms": 2000.0, "ttft_ms": None, "tokens": None, "status": "timeout", "type": "llm"},
    {"duration_ms": 50.0, "ttft_ms": None, "tokens": None, "status": "ok", "type": "retrieval"},
    {"duration_ms": 1.0, "ttft_ms": None, "tokens": None, "status": "ok", "type": "tool"},
]
COLUMNS = {
    "latency_s": "duration_ms:ms",
    "first_token_s": "ttft_ms:ms",
    "output_tokens": "tokens",
    "outcome": "status",
    "kind": "type",
}


def written(folder, suffix, rows=ROWS):
    path, frame = folder / f"calls{suffix}", pd.DataFrame(rows)
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".ndjson", ".json"])
def test_every_kind_of_file_gives_the_same_calls_in_seconds(tmp_path, suffix):
    found = read_calls(written(tmp_path, suffix), COLUMNS)
    assert found.frame["kind"].tolist() == ["llm", "llm", "retrieval"]
    assert found.frame["complete"].tolist() == [True, False, True]
    assert found.frame["latency_s"].tolist() == pytest.approx([0.9, 2.0, 0.05])
    assert found.frame["first_token_s"].iloc[0] == pytest.approx(0.4)
    assert "1 rows are neither llm nor retrieval" in " ".join(found.notes)


def test_columns_with_our_names_need_no_mapping():
    found = read_calls(pd.DataFrame({"latency_s": [1.0, 2.0], "error": ["", "ReadTimeout"]}))
    assert found.frame["complete"].tolist() == [True, False]


def test_without_an_outcome_every_call_counts_as_complete_and_that_is_said():
    found = read_calls(pd.DataFrame({"latency_s": [1.0]}))
    assert "No column says how a call ended" in found.notes[0]


def test_outcomes_in_the_words_of_the_user_are_told_by_ok():
    frame = pd.DataFrame({"latency_s": [1.0, 2.0], "outcome": ["finished", "gave up"]})
    with pytest.raises(ConfigurationError, match=r"'finished', which may mean.*--ok finished"):
        read_calls(frame)
    assert read_calls(frame, ok=["finished"]).frame["complete"].tolist() == [True, False]


def test_models_are_told_apart_or_said_to_be_mixed():
    frame = pd.DataFrame({"latency_s": [1.0, 2.0], "model": ["small", "large"]})
    assert len(read_calls(frame).only("model", "large").frame) == 1
    assert "Several models are mixed: large, small." in read_calls(frame).only("model", None).notes
    with pytest.raises(ConfigurationError, match="no model call is of the model 'huge'; there are large, small"):
        read_calls(frame).only("model", "huge")


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ({"a": [1.0]}, {"latency_s": "b:ms"}, r"calls.csv has no column 'b:ms' \(mapped to latency_s\); it has a"),
        (
            {"a": [1.0]},
            {},
            "has no column for latency_s; it has a: name it, as in latency_s=duration_ms:ms",
        ),
        ({"a": [1.0]}, {"ttft": "a"}, "no field is called 'ttft': columns can be mapped to latency_s"),
        ({"latency_s": [1.0, -2.0]}, {}, r"column 'latency_s' is negative in 1 of 2 rows \(first: -2\)"),
        (
            {"latency_s": ["1.0", "fast"]},
            {},
            r"column 'latency_s' has 'fast' where a number is expected \(1 of 2 rows\)",
        ),
        ({"latency_s": [1.0, math.inf]}, {}, "latency_s is inf in 1 of 2 rows"),
        ({"latency_s": [1.0], "first_token_s": [2.0]}, {}, "first_token_s .2 s. is longer than latency_s"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_its_column(tmp_path, rows, columns, words):
    path = tmp_path / "calls.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    with pytest.raises(ConfigurationError, match=words):
        read_calls(path, columns)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("calls.csv", "", "calls.csv is empty: give a file with a row for each call"),
        ("calls.csv", "latency_s\n", "calls.csv has no rows"),
        ("calls.txt", "x", "its name must end in one of .csv"),
        ("calls.parquet", "x", "cannot be read as .parquet.*save it again"),
        ("calls.jsonl", '{"latency_s": 1}\n{oops\n', "line 2: it is not JSON"),
        ("calls.jsonl", '{"latency_s": 1}\n3\n', "value 2 is not an object"),
        ("calls.json", "[]", "calls.json has no rows"),
        (
            "calls.json",
            '{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"s","startTimeUnixNano":1,"endTimeUnixNano":2}]}]}]}',
            "this export of OpenTelemetry has no model call; export the spans of all kinds",
        ),
        ("calls.json", '{"resourceSpans": [{"scopeSpans": 3}]}', "is not OTLP JSON"),
        ("missing.csv", None, "cannot be read: there is no such file;"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ConfigurationError, match=words) as error:
        read_calls(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_study_or_its_folder_is_refused_with_the_table_to_give(tmp_path):
    with pytest.raises(ConfigurationError, match="source is a Study: give a DataFrame, such as the calls of a study"):
        read_calls(sample_study(runs=1))
    with pytest.raises(ConfigurationError, match=r"in the folder of a study it is calls\.parquet"):
        read_calls(tmp_path)


def span(op, begun_s, ended_s, attributes=(), **more):
    return otlp_span(
        op, begun_s, ended_s, {"gen_ai.operation.name": op, "gen_ai.request.model": "m", **dict(attributes)}, **more
    )


SPANS = [
    span("chat", 1.0, 2.5, {"gen_ai.usage.output_tokens": 50}),
    span("chat", 2.0, 3.0, {"gen_ai.response.time_to_first_chunk": 0.25}),
    span("generate_content", 3.0, 5.0, events=[{"name": "First token", "timeUnixNano": "3500000000"}]),
    span("text_completion", 4.0, 34.0, {"error.type": "timeout"}, status={"code": 2}),
    # A search inside a call leaves out neither.
    span("retrieval", 5.0, 5.125, parentSpanId="4.0"),
    span("embeddings", 6.0, 6.5),
    # A framework's span around the request of its client.
    span("chat", 7.0, 8.5, spanId="outer"),
    span("chat", 7.25, 8.25, spanId="inner", parentSpanId="outer"),
]


@pytest.mark.parametrize("lines", [False, True])
def test_spans_with_the_gen_ai_conventions_are_calls(tmp_path, lines):
    path = tmp_path / "traces.jsonl"
    documents = [otlp([item]) for item in SPANS] if lines else [otlp(SPANS)]
    path.write_text("\n".join(json.dumps(document) for document in documents))
    frame = read_calls(path).frame
    assert frame["latency_s"].tolist() == pytest.approx([1.5, 1.0, 2.0, 30.0, 0.125, 1.0])
    assert frame["kind"].tolist() == ["llm"] * 4 + ["retrieval", "llm"]
    assert frame["complete"].tolist() == [True, True, True, False, True, True]
    assert frame["first_token_s"].tolist() == pytest.approx([math.nan, 0.25, 0.5] + [math.nan] * 3, nan_ok=True)
    assert frame["output_tokens"].iloc[0] == 50
    assert set(frame["model"]) == {"m"}


def test_the_calls_of_a_study_are_a_table_like_any_other():
    calls = to_frame(
        "calls",
        [
            call("r", "planner", 1.0, 3.0, output_tokens=5.0),
            call("s", "router", 2.0, 5.0, outcome="cancelled"),
            call("s", "reader", 5.0, 6.0, kind="tool"),
        ],
    )
    frame = read_calls(calls, {"session": "run_id"}, ok=["ok"]).frame
    assert frame["latency_s"].tolist() == [2.0, 3.0]
    assert frame["complete"].tolist() == [True, False]
    assert frame["session"].tolist() == ["r", "s"]


def test_all_rows_of_a_kind_cut_and_no_model_call_are_refused():
    for frame, words in (
        ({"latency_s": [30.0] * 3, "outcome": "timeout"}, "all 3 calls of kind llm were cut"),
        ({"latency_s": [1.0], "kind": "retrieval"}, "has no model call"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            split_calls(read_calls(pd.DataFrame(frame)))


def test_a_first_byte_at_the_end_is_no_first_token():
    tokens = np.arange(20, 60)
    frame = {"latency_s": 1 + 0.1 * tokens, "first_token_s": 1 + 0.1 * tokens, "output_tokens": tokens}
    parts = split_calls(read_calls(pd.DataFrame(frame)))
    assert np.median(parts.first_token.observed_s) == pytest.approx(1.0, rel=0.01)
    assert np.median(parts.inter_token.observed_s) == pytest.approx(0.1, rel=0.01)
