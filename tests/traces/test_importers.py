"""Runs are read from what other tools wrote: which spans they have, what is left out, and which line cannot be read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from exported_spans import SECRET, after, langsmith_run
from golden import assert_golden
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context
from production_calls import line_of
from recorded_runs import recorded_call, recorded_run
from typer.testing import CliRunner

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.findings.what_if.trace_formats import FORMATS, import_traces
from docmind_lab.tables.traces.importers import export_records
from docmind_lab.tables.traces.importers.export_records import json_values
from docmind_lab.tables.traces.importers.recordings import FORMAT
from docmind_lab.tables.traces.importers.spans import outcome_of_error
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.views.cli.app import app

EXPORTS = Path(__file__).parent / "exports"
BEGAN_NS = 1_700_000_000_000_000_000


_IDS = ["trace_id", "source", "span_id", "parent_id"]


def told(traces: Traces) -> str:
    """The runs and spans of traces as tables, without ids and what is nowhere known, and their notes."""
    frames = (frame.drop(columns=_IDS, errors="ignore") for frame in (traces.runs, traces.spans))
    tables = [frame.loc[:, (frame.notna() & (frame != "")).any()].to_csv(index=False) for frame in frames]
    return "\n".join([*tables, *traces.notes])


def imported(folder: Path, name: str, text: str, **options: Any) -> Traces:
    """The traces of a file with this name and text."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return import_traces(file, **options)


def lines_of(rows: Iterable[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def assert_no_text(traces: Traces, tmp_path: Path) -> None:
    written = traces.write(tmp_path / "written.jsonl").read_text()
    assert "secret" not in written
    assert "someone" not in written
    assert len(Traces.read(tmp_path / "written.jsonl").spans) == len(traces.spans)


# ---- OpenTelemetry, by its own SDK


class Agent:
    """An agent with a planner, a tool and a request to a database, as OpenTelemetry's SDK records it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._tracer = provider.get_tracer("test")
        top = self.begin("invoke_agent support", 0, operation="invoke_agent", **{"gen_ai.conversation.id": "chat-7"})
        planner = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 30, "gen_ai.request.model": "small"}
        chat = self.begin("chat small", 0, top, operation="chat", **planner, **{"gen_ai.input.messages": SECRET})
        chat.add_event("gen_ai.first_token", timestamp=BEGAN_NS + 10**9)
        self.end(chat, 4)
        tool = self.begin("execute_tool search", 4, top, operation="execute_tool")
        database = self.begin("SELECT", 4.25, tool)
        self.end(database, 4.5)
        self.end(tool, 5.5)
        late = self.begin("chat small", 6, top, operation="chat", **{"error.type": "asyncio.TimeoutError"})
        late.set_status(Status(StatusCode.ERROR))
        self.end(late, 9)
        self.end(top, 9)

    def begin(self, name: str, at_s: float, parent: Span | None = None, operation: str = "", **others: Any) -> Span:
        attributes = ({"gen_ai.operation.name": operation} if operation else {}) | others
        context = None if parent is None else set_span_in_context(parent)
        return self._tracer.start_span(name, context, attributes=attributes, start_time=BEGAN_NS + int(at_s * 1e9))

    def end(self, span: Span, at_s: float) -> None:
        span.end(BEGAN_NS + int(at_s * 1e9))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


FORMS: dict[str, tuple[str, Callable[[Sequence[ReadableSpan]], str]]] = {
    "OTLP": ("spans.json", line_of),
    "the Collector": ("spans.jsonl", lambda spans: "".join(f"{line_of([span])}\n" for span in spans)),
    "Tempo": (
        "trace.json",
        lambda spans: json.dumps({"batches": json.loads(line_of(spans))["resourceSpans"]}, indent=2),
    ),
    "an answer of Tempo": ("trace.json", lambda spans: json.dumps({"trace": json.loads(line_of(spans))})),
    "the console": ("spans.jsonl", lambda spans: "\n".join(span.to_json(indent=None) for span in spans)),
    "the console, indented": ("spans.jsonl", lambda spans: "\n".join(span.to_json() for span in spans)),
}


def spans_of(*, name: str, operation: str, inner: str = "", **attributes: str) -> Sequence[ReadableSpan]:
    """A span of this operation, around one of another, beside that of another trace."""
    agent = Agent()
    top = agent.begin(name, 0, operation=operation, **{"gen_ai.conversation.id": "chat-8"}, **attributes)
    if inner:
        agent.end(agent.begin(inner, 1, top, operation=inner), 3)
    agent.end(top, 5)
    return agent.spans[4:]


ALONE: dict[str, Sequence[ReadableSpan]] = {
    "an agent that failed is a failed run": spans_of(
        name="invoke_agent other", operation="invoke_agent", inner="chat", **{"error.type": "ValueError"}
    ),
    "a trace without any call is left out": spans_of(name="GET /health", operation=""),
    "a request around an agent is the run": spans_of(name="POST /ask", operation="", inner="chat"),
    "a tool that makes calls itself is an agent": spans_of(
        name="execute_tool research", operation="execute_tool", inner="chat"
    ),
}


# ---- LangSmith, by its own schema


def langsmith_rows() -> list[dict[str, Any]]:
    def node(name: str) -> dict[str, Any]:
        return {"metadata": {"thread_id": "chat-7", "langgraph_node": name, "ls_model_name": "small"}}

    of_call = {"first_token_time": after(1), "prompt_tokens": 100, "completion_tokens": 30}
    return [
        langsmith_run(1, None, "chain", "LangGraph", 0, 9),
        langsmith_run(2, 1, "chain", "planner", 0, 4, extra=node("planner")),
        langsmith_run(3, 2, "llm", "ChatOpenAI", 0, 4, extra=node("planner"), **of_call),
        langsmith_run(4, 1, "tool", "search", 4, 5.5),
        langsmith_run(5, 1, "retriever", "documents", 5.5, 6),
        langsmith_run(6, 1, "prompt", "template", 6, 6),
        langsmith_run(7, 1, "llm", "ChatOpenAI", 6, 9, error="TimeoutError('too slow')"),
    ]


def langsmith_exports(folder: Path) -> list[Traces]:
    """The same runs as JSON lines, as one document and as Parquet."""
    rows = langsmith_rows()
    as_text = pd.DataFrame(rows).assign(extra=[json.dumps(row["extra"]) for row in rows], inputs=SECRET, attachments="")
    (folder / "runs.jsonl").write_text(lines_of(rows))
    (folder / "runs.json").write_text(json.dumps({"runs": rows}))
    as_text.to_parquet(folder / "runs.parquet")
    return [import_traces(folder / f"runs.{ending}") for ending in ("jsonl", "json", "parquet")]


# ---- Langfuse and Phoenix, as their own programs wrote them


def langfuse_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXPORTS / "langfuse.jsonl").read_text().splitlines()]


def test_the_session_of_a_langfuse_trace_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    rows = langfuse_rows()
    for row in rows:
        row.pop("sessionId")
    (tmp_path / "observations.jsonl").write_text(lines_of(rows))
    (tmp_path / "traces.json").write_text(json.dumps([{"id": "t1", "timestamp": "2026-11-23", "sessionId": "chat-8"}]))
    assert set(import_traces(tmp_path).runs["session"]) == {"chat-8"}
    alone = import_traces(tmp_path / "observations.jsonl")
    assert alone.notes[-1] == "Nothing says which runs are of one conversation, so each counts as independent."


def test_an_event_that_is_noted_after_the_run_makes_it_no_longer(tmp_path: Path) -> None:
    rows = langfuse_rows()
    event = {"id": "feedback", "traceId": rows[0]["traceId"], "type": "EVENT", "name": "thumbs up", "level": "DEFAULT"}
    before = imported(tmp_path, "before.jsonl", lines_of(rows))
    traces = imported(tmp_path, "rows.jsonl", lines_of([*rows, event | {"startTime": "2027-01-01T00:00:00Z"}]))
    pd.testing.assert_series_equal(traces.runs["ended_at_s"], before.runs["ended_at_s"])


def langfuse_download() -> str:
    """A trace as Langfuse's page downloads it."""
    trace = {"id": "t", "name": "harbour", "timestamp": "2026-01-01T00:00:00Z", "sessionId": "a", "scores": []}
    call = {"traceId": "t", "level": "DEFAULT", "startTime": "2026-01-01T00:00:00Z", "metadata": {}}
    observations = [
        {**call, "id": "a", "type": "SPAN", "name": "harbour", "endTime": "2026-01-01T00:00:03Z"},
        {**call, "id": "b", "type": "GENERATION", "name": "chat", "endTime": "2026-01-01T00:00:02Z"}
        | {"parentObservationId": "a"},
    ]
    return json.dumps({"trace": trace, "observations": observations}, indent=2)


# ---- recordings


def recorded(alternative: str, outcome: str, returned_at_s: float) -> str:
    call = recorded_call("llm/planner/1", 0.5, 2.0, first_byte_at_s=None, queue_wait_s=None, output_tokens=7)
    changes = {"seed": 3, "question_id": "q1", "decision_timeout_s": 5.0, "horizon_s": 50.0}
    tool = recorded_call("tool/planner/1", 0.25, 2.25, status=None)
    run = recorded_run(tool, call, alternative=alternative, outcome=outcome, returned_at_s=returned_at_s, **changes)
    return f"{run.to_json()}\n"


def test_a_recording_has_the_runs_of_its_control(tmp_path: Path) -> None:
    run, other = recorded("unguarded", "answered", 2.5), recorded("cooperative", "timed_out", 5.0)
    # A kill leaves a torn line at the end.
    (tmp_path / "runs.jsonl").write_text(run + other + run[:40])
    (tmp_path / "manifest.json").write_text(json.dumps({"recording_format": FORMAT, "study_id": "s"}))
    traces = import_traces(tmp_path)
    assert traces.spans[["kind", "role", "outcome", "started_at_s", "ended_at_s"]].to_numpy().tolist() == [
        ["agent", "planner", "ok", 0.25, 2.25],
        ["llm", "planner", "ok", 0.5, 2],
    ]
    assert list(traces.runs["ended_at_s"]) == [2.5]
    assert traces.notes == ("2 of 4 calls were used; left out: 1 run with a deadline.",)
    (tmp_path / "runs.jsonl").write_text(other)
    assert list(import_traces(tmp_path).runs["outcome"]) == ["cut"]


# ---- what is read of each


def test_runs_are_read_from_every_form_of_every_tool(tmp_path: Path) -> None:
    exports = {
        "OpenTelemetry": [imported(tmp_path, name, write(Agent().spans)) for name, write in FORMS.values()],
        "LangSmith": langsmith_exports(tmp_path),
        "Langfuse": [import_traces(EXPORTS / "langfuse.jsonl")],
        "Langfuse, downloaded": [imported(tmp_path, "trace.json", langfuse_download())],
        "Phoenix": [import_traces(EXPORTS / "phoenix.parquet")],
        **{name: [imported(tmp_path, "spans.json", line_of(spans))] for name, spans in ALONE.items()},
    }
    texts = {}
    for tool, forms in exports.items():
        (texts[tool],) = {told(traces) for traces in forms}
        for traces in forms:
            assert_no_text(traces, tmp_path)
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


# ---- what cannot be read


def bad_span() -> str:
    first, second, *_ = [line_of([span]) for span in Agent().spans]
    return f"{first}\n{second.replace('endTimeUnixNano', 'gone')}\n"


def second_run(**changes: Any) -> list[dict[str, Any]]:
    first, second, *_ = langsmith_rows()
    return [first, second | changes]


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("spans.jsonl", bad_span, "line 2: span 'SELECT' cannot be read.*endTimeUnixNano"),
        (
            "runs.jsonl",
            lambda: lines_of(second_run(start_time="yesterday")),
            r"line 2: start_time is 'yesterday', and an instant is expected",
        ),
        (
            "runs.json",
            lambda: json.dumps(second_run(end_time="2020-01-01T00:00:00Z")),
            "line 1, record 2: span 'planner' ends before it begins",
        ),
        ("runs.jsonl", lambda: lines_of(second_run(run_type="")), "line 2: run_type is missing"),
        ("runs.jsonl", lambda: lines_of(langsmith_rows()[:2])[:-50] + "\n", "line 2: it is not JSON"),
    ],
)
def test_the_first_bad_record_is_named_with_its_line(
    name: str, make: Callable[[], str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=words):
        imported(tmp_path, name, make())


def test_what_is_no_export_is_refused_with_the_formats(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"line 1, record 1: .*the formats are traces, study, .*Its fields are colour"
    ):
        imported(tmp_path, "other.json", '[{"colour": "red"}]')
    with pytest.raises(RecordError, match="holds no record"):
        imported(tmp_path, "empty.json", "")


@pytest.mark.parametrize(
    "export",
    [
        {"data": [{"traceID": "t", "spans": [{"operationName": "chat"}], "processes": {"p1": {}}}]},
        {"trace_id": "t", "project_id": "p", "spans": [{"span_id": "s", "span_name": "chat", "duration": 5}]},
        {"trace": {"trace_id": "t"}, "spans": [{"span_id": "s", "attributes": {"agentops.span.kind": "llm"}}]},
        {"trace_id": "t", "span_id": "s", "span_name": "chat", "start_time": "2026-01-01T00:00:00Z"},
    ],
)
def test_an_export_that_is_not_read_is_refused_by_the_name_of_its_tool(export: dict[str, Any], tmp_path: Path) -> None:
    tool = "Jaeger" if "data" in export else "AgentOps"
    with pytest.raises(ConfigurationError, match=rf"an export of {tool}, which is not read; .* OTLP JSON"):
        imported(tmp_path, "trace.json", json.dumps(export))


def test_the_page_on_traces_names_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measurements.md").read_text(encoding="utf-8")
    traces = page.partition("\n## Traces\n")[2].partition("\n## ")[0]
    named = [line.split("`")[1] for line in traces.splitlines() if line.startswith("| `")]
    assert sorted(named) == sorted([*FORMATS])


# ---- reading as a stream


class Lines(io.StringIO):
    """A text that says how much of it was read."""

    was_read = 0

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        line = super().readline(size)
        self.was_read += len(line)
        return line


def test_lines_are_read_one_after_the_other() -> None:
    stream = Lines('{"a": 1}\n\n' * 1_000)
    values = json_values(stream, "lines.jsonl")
    assert [next(values), next(values)] == [(1, {"a": 1}), (3, {"a": 1})]
    assert stream.was_read == 19


def test_values_over_several_lines_are_said_by_the_line_that_they_begin_on() -> None:
    stream = io.StringIO('{"a": 1}\n\n{\n"b":\n[2]}\n  {"c": 3} 4\n')
    assert list(json_values(stream, "values.json")) == [(1, {"a": 1}), (3, {"b": [2]}), (6, {"c": 3}), (6, 4)]


def test_a_document_that_is_too_long_to_be_read_whole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_records, "_LONGEST_DOCUMENT", 100)
    with pytest.raises(RecordError, match=r"long\.json, line 1: .* may have 256 MiB; write one value a line"):
        list(json_values(io.StringIO(json.dumps(list(range(100)), indent=1)), "long.json"))


@pytest.mark.parametrize("text", ['[{"a": 1} {"b": 2}]', '[{"a": 1},', '{"a": "x', "[" * 100_000])
def test_broken_json_is_refused_and_not_read_for_ever(text: str) -> None:
    with pytest.raises(RecordError, match=r"broken\.json, line 1: (it is not JSON|its values are nested)"):
        list(json_values(io.StringIO(text), "broken.json"))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("", "ok"),
        ("openai.APITimeoutError: Request timed out.", "cut"),
        ("asyncio.exceptions.CancelledError()", "cut"),
        ("ValueError('the timeout was not a number')", "error"),
        ("GraphInterrupt((Interrupt(value='ok?'),))", "interrupted"),
        ("KeyboardInterrupt()", "error"),
    ],
)
def test_how_a_call_ended_is_read_from_the_name_of_its_error_alone(error: str, outcome: str) -> None:
    assert outcome_of_error(error) == outcome


def test_the_command_prints_what_was_used_and_left_out(tmp_path: Path) -> None:
    out, source = tmp_path / "traces.jsonl", tmp_path / "spans.json"
    source.write_text(line_of(Agent().spans))
    result = CliRunner().invoke(app, ["traces", "import", str(source), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "4 of 5 spans were used; left out: 1 neither calls nor agents nor steps." in result.output
    assert len(Traces.read(out)) == 1
