"""Runs are read from what other tools wrote: which spans they have, what is left out, and which line cannot be read."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from docmind_lab.tables.traces.importers.export_records import json_values, records_in
from docmind_lab.tables.traces.importers.recordings import FORMAT
from docmind_lab.tables.traces.importers.spans import outcome_of_error
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.views.cli.app import app

EXPORTS = Path(__file__).parent / "exports"
BEGAN_NS = 1_700_000_000_000_000_000


_IDS = ["trace_id", "source", "span_id", "parent_id", "after"]


def told(traces: Traces) -> str:
    """The runs and spans of traces as tables, without ids and what is nowhere known, and their notes."""
    frames = (frame.drop(columns=_IDS, errors="ignore") for frame in (traces.runs, traces.spans))
    tables = [frame.loc[:, (frame.notna() & (frame != "")).any()].to_csv(index=False) for frame in frames]
    return "\n".join([*tables, *traces.notes])


def imported(folder: Path, name: str, text: str, **options: Any) -> Traces:
    """The traces of a file with this name and text."""
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
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


def jaeger_span(span: ReadableSpan) -> dict[str, Any]:
    """The span as Jaeger's query service writes it (its model `json.Span`)."""
    assert span.context
    trace_id = f"{span.context.trace_id:032x}"
    tags = [{"key": key, "type": "string", "value": value} for key, value in (span.attributes or {}).items()]
    if span.status.status_code is StatusCode.ERROR:
        tags.append({"key": "error", "type": "bool", "value": True})
    parent = [] if span.parent is None else [f"{span.parent.span_id:016x}"]
    return {
        "traceID": trace_id,
        "spanID": f"{span.context.span_id:016x}",
        "operationName": span.name,
        "references": [{"refType": "CHILD_OF", "traceID": trace_id, "spanID": each} for each in parent],
        "startTime": (span.start_time or 0) // 1000,
        "duration": ((span.end_time or 0) - (span.start_time or 0)) // 1000,
        "tags": tags,
        "logs": [
            {"timestamp": event.timestamp // 1000, "fields": [{"key": "event", "value": event.name}]}
            for event in span.events
        ],
        "processID": "p1",
    }


def jaeger_answer(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    written = [jaeger_span(span) for span in spans]
    traces = [{"traceID": written[0]["traceID"], "spans": written, "processes": {"p1": {"serviceName": "agent"}}}]
    return {"data": traces, "total": 0, "errors": None}


FORMS: dict[str, tuple[str, Callable[[Sequence[ReadableSpan]], str]]] = {
    "OTLP": ("spans.json", line_of),
    "the Collector": ("spans.jsonl.gz", lambda spans: "".join(f"{line_of([span])}\n" for span in spans)),
    "Tempo": (
        "trace.json",
        lambda spans: json.dumps({"batches": json.loads(line_of(spans))["resourceSpans"]}, indent=2),
    ),
    "an answer of Tempo": ("trace.json", lambda spans: json.dumps({"trace": json.loads(line_of(spans))})),
    "Jaeger": ("jaeger.json", lambda spans: json.dumps(jaeger_answer(spans))),
    "the console": ("spans.jsonl", lambda spans: "\n".join(span.to_json(indent=None) for span in spans)),
    "the console, indented": ("spans.jsonl", lambda spans: "\n".join(span.to_json() for span in spans)),
}


def test_a_span_of_an_agent_that_failed_is_a_failed_run(tmp_path: Path) -> None:
    agent = Agent()
    top = agent.begin("invoke_agent other", 0, operation="invoke_agent", **{"error.type": "ValueError"})
    agent.end(agent.begin("chat", 0, top, operation="chat"), 1)
    agent.end(top, 2)
    assert sorted(imported(tmp_path, "spans.json", line_of(agent.spans)).runs["outcome"]) == ["answered", "failed"]


def test_traces_without_any_call_are_left_out(tmp_path: Path) -> None:
    agent = Agent()
    agent.end(agent.begin("GET /health", 0), 1)
    traces = imported(tmp_path, "spans.json", line_of(agent.spans))
    assert len(traces) == 1
    assert "1 of 1 trace without any call" in traces.notes[0]


def test_the_span_of_a_request_around_an_agent_is_the_run(tmp_path: Path) -> None:
    agent = Agent()
    top = agent.begin("POST /ask", 0)
    agent.end(agent.begin("chat", 1, top, operation="chat"), 3)
    agent.end(top, 5)
    assert sorted(imported(tmp_path, "spans.json", line_of(agent.spans)).runs["ended_at_s"]) == [5, 9]


def test_a_tool_that_makes_calls_itself_is_an_agent(tmp_path: Path) -> None:
    agent = Agent()
    top = agent.begin("execute_tool research", 0, operation="execute_tool")
    agent.end(agent.begin("chat", 1, top, operation="chat"), 3)
    agent.end(top, 5)
    traces = imported(tmp_path, "spans.json", line_of(agent.spans[-2:]))
    assert traces.spans["kind"].tolist() == ["agent", "llm"]
    assert "1 tool that made calls themselves count as agents." in traces.notes


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
    """The same runs as JSON lines, as one document, as CSV and as Parquet."""
    rows = langsmith_rows()
    as_text = pd.DataFrame(rows).assign(extra=[json.dumps(row["extra"]) for row in rows], inputs=SECRET, attachments="")
    (folder / "runs.jsonl").write_text(lines_of(rows))
    (folder / "runs.json").write_text(json.dumps({"runs": rows}))
    as_text.to_csv(folder / "runs.csv", index=False)
    as_text.to_parquet(folder / "runs.parquet")
    return [import_traces(folder / f"runs.{ending}") for ending in ("jsonl", "json", "csv", "parquet")]


# ---- what a tracing tool says of whether a run was good


def langsmith_scored(path: Path, mean: float) -> Path:
    rows = langsmith_rows()
    rows[0]["feedback_stats"] = {"correct": {"n": 2, "avg": mean}, "note": {"n": 1, "avg": None}}
    path.write_text(lines_of(rows))
    return path


def test_feedback_of_langsmith_says_whether_a_run_was_good(tmp_path: Path) -> None:
    good, unsure = langsmith_scored(tmp_path / "good.jsonl", 1.0), langsmith_scored(tmp_path / "unsure.jsonl", 0.5)
    assert import_traces(good, success="correct").runs["succeeded"].tolist() == [1.0]
    assert import_traces(unsure, success="correct>=0.5").runs["succeeded"].tolist() == [1.0]
    assert import_traces(unsure, success="correct >= 0.6").runs["succeeded"].tolist() == [0.0]
    with pytest.raises(RecordError, match=r"'correct' is 0\.5, so say .* --success 'correct>=VALUE'"):
        import_traces(unsure, success="correct")
    unread = import_traces(good)
    assert unread.runs["succeeded"].isna().all()
    assert unread.notes[-1] == "Runs have scores (correct); --success NAME says which one means a good run."


def test_scores_of_langfuse_stand_in_a_trace_or_are_records_of_their_own(tmp_path: Path) -> None:
    rows = langfuse_rows()
    said = [{"name": "quality", "value": 4}, {"name": "tone", "value": "kind", "dataType": "CATEGORICAL"}]
    whole = {"id": "t1", "sessionId": "chat-9", "observations": rows, "scores": said}
    (tmp_path / "trace.json").write_text(json.dumps(whole))
    apart = tmp_path / "apart"
    apart.mkdir()
    (apart / "observations.jsonl").write_text(lines_of(rows))
    pd.DataFrame([{"id": "s", "timestamp": "2026-11-23", "traceId": "t1", **said[0]}]).to_csv(
        apart / "scores.csv", index=False
    )
    for source in (tmp_path / "trace.json", apart):
        assert import_traces(source, success="quality>=4").runs["succeeded"].tolist() == [1.0]
        assert import_traces(source, success="quality>=5").runs["succeeded"].tolist() == [0.0]
    with pytest.raises(ConfigurationError, match="no run has a score named 'tone'; there are quality"):
        import_traces(apart, success="tone")


def test_an_evaluation_event_of_opentelemetry_is_a_score(tmp_path: Path) -> None:
    agent = Agent()
    top = agent.begin("invoke_agent support", 0, operation="invoke_agent")
    top.add_event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "correct", "gen_ai.evaluation.score.value": 0})
    agent.end(agent.begin("chat", 1, top, operation="chat"), 3)
    agent.end(top, 5)
    traces = imported(tmp_path, "spans.json", line_of(agent.spans[-2:]), success="correct")
    assert traces.runs["succeeded"].tolist() == [0.0]


def test_a_success_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    export = EXPORTS / "langfuse.jsonl"
    written = import_traces(export).write(tmp_path / "traces.jsonl")
    for source, success, message in (
        (export, ">=3", "name of a score, or NAME>=VALUE"),
        (export, "quality>=high", "name of a score"),
        (export, "correct", "no run has a score"),
        (written, "correct", "of the format traces"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            import_traces(source, success=success)


# ---- Langfuse and Phoenix, as their own programs wrote them


def langfuse_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXPORTS / "langfuse.jsonl").read_text().splitlines()]


def test_the_session_of_a_langfuse_trace_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    rows = langfuse_rows()
    for row in rows:
        row.pop("sessionId")
    pd.DataFrame(rows).to_csv(tmp_path / "observations.csv", index=False)
    pd.DataFrame([{"id": "t1", "timestamp": "2026-11-23", "sessionId": "chat-8"}]).to_csv(
        tmp_path / "traces.csv", index=False
    )
    assert set(import_traces(tmp_path).runs["session"]) == {"chat-8"}
    alone = import_traces(tmp_path / "observations.csv")
    assert alone.notes[-1] == "Nothing says which runs are of one conversation, so each counts as independent."


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
    run = recorded_run(call, alternative=alternative, outcome=outcome, returned_at_s=returned_at_s, **changes)
    return f"{run.to_json()}\n"


def test_a_recording_has_the_runs_of_its_control(tmp_path: Path) -> None:
    run, other = recorded("unguarded", "answered", 2.5), recorded("cooperative", "timed_out", 5.0)
    # A kill leaves a torn line at the end.
    (tmp_path / "runs.jsonl").write_text(run + other + run[:40])
    (tmp_path / "manifest.json").write_text(json.dumps({"recording_format": FORMAT, "study_id": "s"}))
    traces = import_traces(tmp_path)
    assert traces.spans[["kind", "role", "outcome", "started_at_s", "ended_at_s"]].to_numpy().tolist() == [
        ["llm", "planner", "ok", 0.5, 2]
    ]
    assert list(traces.runs["ended_at_s"]) == [2.5]
    assert traces.notes == ("1 of 2 calls were used; left out: 1 run with a deadline.",)
    (tmp_path / "runs.jsonl").write_text(other)
    assert list(import_traces(tmp_path).runs["outcome"]) == ["cut"]


# ---- what is read of each


def test_runs_are_read_from_every_form_of_every_tool(tmp_path: Path) -> None:
    exports = {
        "OpenTelemetry": [imported(tmp_path, name, write(Agent().spans)) for name, write in FORMS.values()],
        "LangSmith": langsmith_exports(tmp_path),
        "Langfuse": [import_traces(EXPORTS / "langfuse.jsonl")],
        "Langfuse, downloaded": [imported(tmp_path, "trace.json", langfuse_download())],
        "Phoenix": [import_traces(EXPORTS / name) for name in ("phoenix.parquet", "phoenix.csv")],
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
            "runs.csv",
            lambda: pd.DataFrame(second_run(end_time="2020-01-01T00:00:00Z")).to_csv(index=False),
            "line 3: span 'planner' ends before it begins",
        ),
        ("runs.jsonl", lambda: lines_of(langsmith_rows()[:2])[:-50] + "\n", "line 2: it is not JSON"),
    ],
)
def test_the_first_bad_record_is_named_with_its_line(
    name: str, make: Callable[[], str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=words):
        imported(tmp_path, name, make())


def test_what_is_no_export_is_refused_with_the_formats(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"line 1: .*--format \(traces, study, .*Its fields are colour"):
        imported(tmp_path, "other.json", '[{"colour": "red"}]')
    with pytest.raises(RecordError, match="holds no record"):
        imported(tmp_path, "empty.json", "")
    with pytest.raises(ConfigurationError, match="--format must be one of traces, study"):
        import_traces(tmp_path / "other.json", "spam")


@pytest.mark.parametrize(
    "export",
    [
        {"trace_id": "t", "project_id": "p", "spans": [{"span_id": "s", "span_name": "chat", "duration": 5}]},
        {"trace": {"trace_id": "t"}, "spans": [{"span_id": "s", "attributes": {"agentops.span.kind": "llm"}}]},
        {"trace_id": "t", "span_id": "s", "span_name": "chat", "start_time": "2026-01-01T00:00:00Z"},
    ],
)
def test_an_export_of_agentops_is_refused_by_its_name(export: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"an export of AgentOps, which is not read; .* OTLP JSON"):
        imported(tmp_path, "trace.json", json.dumps(export))


def test_a_format_that_is_named_is_the_one_that_is_read(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="line 1: run_type is missing"):
        import_traces(EXPORTS / "langfuse.jsonl", "langsmith")


def test_the_page_on_traces_names_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
    named = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert sorted(named) == sorted([*FORMATS, "--format"])


# ---- reading as a stream


class Pieces(io.StringIO):
    """A text that says how much of it was read."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.was_read = 0

    def read(self, size: int | None = -1) -> str:
        piece = super().read(size)
        self.was_read += len(piece)
        return piece


@pytest.mark.parametrize("text", ['{{"resourceSpans": [{}]}}', "[{}]", '{{"data": [{}], "meta": {{}}}}'])
def test_a_long_list_of_json_is_read_a_piece_at_a_time(text: str) -> None:
    record = json.dumps({"run_type": "llm", "inputs": "x" * 500})
    stream = Pieces(text.format(",\n".join([record] * 2_000)))
    for number, _ in enumerate(records_in(stream, "runs.json", is_table=False), 1):
        assert stream.was_read < number * len(record) + 3 * 2**16
    assert number == 2_000


def test_lines_are_read_one_after_the_other() -> None:
    def lines() -> Iterator[str]:
        yield "a,b\n"
        yield "1,2\n"
        raise AssertionError("read ahead")

    class Lines(io.StringIO):
        def __iter__(self) -> Any:
            return lines()

    first = next(iter(records_in(Lines(), "table.csv", is_table=True)))
    assert (first.where, first.values) == ("table.csv, line 2", {"a": "1", "b": "2"})
    stream = Pieces('{"a": 1}\n' * 100_000)
    assert next(json_values(stream, "lines.jsonl")) == (1, {"a": 1})
    assert stream.was_read <= 2**16


def test_values_that_end_with_a_piece_are_whole() -> None:
    values = [*range(10_000), "x" * 70_000, {"a": "é\u20ac" * 40_000}, -1.5e300, None, [[1], "]"]]
    for text in (json.dumps(values), json.dumps(values, indent=1)):
        assert [value for _, value in json_values(io.StringIO(text), "values.json")] == values
    lines = "\n".join(map(json.dumps, values[:-1]))
    assert [value for _, value in json_values(io.StringIO(lines), "values.jsonl")] == values[:-1]


@pytest.mark.parametrize("text", ['[{"a": 1} {"b": 2}]', '{"a" 1}', '[{"a": 1}, nul]', '[{"a": 1},', '{"a": "x'])
def test_broken_json_is_refused_and_not_read_for_ever(text: str) -> None:
    with pytest.raises(RecordError, match=r"broken\.json, line 1: it is not JSON"):
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
