"""Whatever an export holds, it is read, or refused with an error of the lab's own that names the place."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from often import often

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.findings.what_if.trace_formats import import_traces
from docmind_lab.tables.traces.trace_tables import Traces

HUGE = 10**400
# A record, or a whole trace, as each tool writes it.
SPANS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "exports" / "one_of_each.json").read_text(encoding="utf-8")
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([HUGE, -HUGE, float("inf"), float("-inf"), float("nan"), 1e308, str(HUGE), "1e400", "inf"]),
    st.sampled_from(["", "t", "s", "a", "\ud800", "x\udfff", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, as keys and indices."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for key, of_key in inner for each in ((*path, key), *places_in(of_key, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for key in path[:-1]:
        if not isinstance(value, dict | list) or (isinstance(value, list) and key not in range(len(value))):
            return
        value = value.get(key) if isinstance(value, dict) else value[key]
    if isinstance(value, dict) or (isinstance(value, list) and path[-1] in range(len(value))):
        value[path[-1]] = odd


def read(text: str, folder: Path) -> Traces | None:
    """Import a text and write it again; None if an error of the lab's own says that it cannot be read."""
    file = folder / "export.jsonl"
    file.write_text(text, encoding="utf-8")
    with contextlib.suppress(RecordError, ConfigurationError):
        traces = import_traces(file)
        Traces.read(traces.write(folder / "traces.jsonl"))
        return traces
    return None


def fuzz(name: str, folder: Path, data: st.DataObject) -> None:
    """Read two records of an export in which something is odd."""
    records = [json.loads(json.dumps(SPANS[name])) for _ in range(2)]
    for _ in range(data.draw(st.integers(1, 3))):
        record = data.draw(st.sampled_from(records))
        put(record, data.draw(st.sampled_from(places_in(SPANS[name]))), data.draw(ODD))
    read("\n".join(map(json.dumps, records)), folder)


CHECKED = [HealthCheck.function_scoped_fixture]


@pytest.mark.parametrize("name", SPANS)
@settings(max_examples=8, deadline=None, suppress_health_check=CHECKED)
@given(data=st.data())
def test_no_export_ends_in_an_error_of_somebody_else(name: str, tmp_path: Path, data: st.DataObject) -> None:
    fuzz(name, tmp_path, data)


@pytest.mark.parametrize("empty", [None, ""])
def test_a_span_without_an_id_is_named(empty: str | None, tmp_path: Path) -> None:
    record = json.loads(json.dumps(SPANS["otlp"]))
    put(record, ("resourceSpans", 0, "scopeSpans", 0, "spans", 0, "spanId"), empty)
    (tmp_path / "export.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(RecordError, match="'chat' has no id of its own"):
        import_traces(tmp_path / "export.json")


@pytest.mark.parametrize("number", often(["9" * 400, "-" + "9" * 5000, "1e400"], "1e400"))
@pytest.mark.parametrize("name", SPANS)
def test_a_number_of_any_size_is_no_foreign_error(name: str, number: str, tmp_path: Path) -> None:
    for path in places_in(SPANS[name]):
        record = json.loads(json.dumps(SPANS[name]))
        put(record, path, "HERE")
        read(json.dumps(record).replace('"HERE"', number), tmp_path)


def span(span_id: str, parent_id: str, kind: str) -> str:
    return json.dumps({**SPANS["langsmith"], "id": span_id, "parent_run_id": parent_id, "run_type": kind})


@pytest.mark.parametrize(
    "spans",
    [
        [("1", "1", "llm")],
        [("1", "2", "llm"), ("2", "1", "llm")],
        [("1", "2", "chain"), ("2", "1", "llm")],
        [("1", "2", "llm"), ("2", "3", "tool"), ("3", "2", "llm")],
    ],
)
def test_a_span_that_is_inside_itself_is_a_span_at_the_top(spans: list[tuple[str, str, str]], tmp_path: Path) -> None:
    traces = read("\n".join(span(*each) for each in spans), tmp_path)
    assert traces is not None
    assert len(traces.runs) == 1
    assert (traces.spans["parent_id"] != traces.spans["span_id"]).all()


def test_half_a_sign_of_utf_16_is_replaced(tmp_path: Path) -> None:
    text = json.dumps({**SPANS["langsmith"], "extra": {}, "name": "chat \ud800"})
    assert "\\ud800" in text
    traces = read(text, tmp_path)
    assert traces is not None
    assert traces.spans["role"].tolist() == ["chat ?"]
    traces.spans.to_parquet(tmp_path / "spans.parquet")
