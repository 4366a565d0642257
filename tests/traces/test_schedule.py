"""What spans waited for, and the schedules that other durations would give."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmind_lab.analysis.traces.model import Span, TracedRun, Traces
from docmind_lab.analysis.traces.schedule import Schedule
from docmind_lab.core.errors import ConfigurationError, RecordError


def traces_of(*spans: tuple[str, str, float, float], ended_at_s: float = 20.0, **after: str) -> Traces:
    run = TracedRun("r", "r", "test", ended_at_s, 100.0, "answered")
    rows = [
        Span("r", name, parent, "w", "agent" if name.isupper() else "llm", begun, ended, after=after.get(name, "[]"))
        for name, parent, begun, ended in spans
    ]
    return Traces.of([run], rows)


def waits(traces: Traces) -> dict[str, tuple[list[str], float]]:
    rows = Schedule(traces).spans
    return {row.span_id: (row.after, row.think_s) for row in rows.itertuples()}  # type: ignore[misc]


FORK = traces_of(
    ("plan", "", 1, 3), ("left", "", 4, 9), ("right", "", 4.5, 6), ("after_right", "", 6.5, 8), ("join", "", 10, 15)
)


def test_a_span_waited_for_those_that_had_ended_and_were_not_waited_for_by_others() -> None:
    assert waits(FORK) == {
        "plan": ([], 1),
        "left": (["plan"], 1),
        "right": (["plan"], 1.5),
        "after_right": (["right"], 0.5),
        "join": (["left", "after_right"], 1),
    }


def test_a_span_within_another_waits_for_that_to_begin() -> None:
    nested = traces_of(("A", "", 2, 9), ("a1", "A", 3, 5), ("a2", "A", 5.5, 8), ("b", "", 10, 12))
    assert waits(nested) == {"A": ([], 2), "a1": ([], 1), "a2": (["a1"], 0.5), "b": (["A"], 1)}


def test_a_span_waits_for_what_it_names_even_where_that_overlaps() -> None:
    assert waits(traces_of(("a", "", 0, 5), ("b", "", 4.5, 8), b='["a"]'))["b"] == (["a"], -0.5)


def test_a_longer_call_on_the_critical_path_makes_the_run_longer_and_one_beside_it_does_not() -> None:
    def end(**longer: float) -> float:
        names = list(FORK.spans["span_id"])
        durations = np.full(len(names), np.nan)
        for name, seconds in longer.items():
            durations[names.index(name)] = seconds
        return float(Schedule(FORK).rescheduled(durations).run_ended_at_s[0])

    assert end() == 20
    assert end(left=7) == 22
    assert end(right=2.25) == 20
    assert end(right=4) == 21.5
    assert end(plan=0) == 18


def test_a_holder_ends_with_what_it_holds() -> None:
    nested = traces_of(("A", "", 2, 9), ("a1", "A", 3, 5), ("a2", "A", 5.5, 8), ("b", "", 10, 12))
    schedule = Schedule(nested).rescheduled([99, 4, np.nan, np.nan])
    assert list(schedule.ended_at_s) == [11, 7, 10, 14]


def test_a_span_that_never_ended_holds_nobody_up() -> None:
    schedule = Schedule(traces_of(("a", "", 0, np.nan), ("b", "", 1, 3), ended_at_s=5.0)).rescheduled([np.nan, 4])
    assert (schedule.ended_at_s[0], schedule.run_ended_at_s[0]) == (np.inf, 7)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ('["c"]', "span b waited for 'c', which is not in its run"),
        ('["b"]', "waited for itself"),
        ("7", "after must be a JSON list"),
    ],
)
def test_a_wait_that_cannot_be_is_named(after: str, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        Schedule(traces_of(("a", "", 0, 1), ("b", "", 1, 2), b=after))


@pytest.mark.parametrize(("durations", "words"), [([1.0], "one for each of 2 spans"), ([1.0, -1.0], "0 or more")])
def test_durations_that_cannot_be_are_named(durations: list[float], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Schedule(traces_of(("a", "", 0, 1), ("b", "", 1, 2))).rescheduled(durations)


instants = st.integers(0, 12).map(float)


@st.composite
def any_traces(draw: st.DrawFn) -> Traces:
    runs, spans = [], []
    for run in range(draw(st.integers(1, 3))):
        names: list[str] = []
        last = 0.0
        for number in range(draw(st.integers(0, 8))):
            begun = draw(instants)
            ended = begun + draw(instants)
            parent = draw(st.sampled_from(["", *names]))
            is_open = draw(st.integers(0, 9)) == 0
            spans.append(Span(str(run), str(number), parent, "w", "llm", begun, np.nan if is_open else ended))
            names.append(str(number))
            last = max(last, ended)
        runs.append(TracedRun(str(run), "s", "test", draw(st.sampled_from([last, last / 2, np.nan])), last, "answered"))
    return Traces.of(runs, spans)


@settings(max_examples=50, deadline=None)
@given(any_traces())
def test_the_recorded_durations_give_the_recorded_schedule(traces: Traces) -> None:
    schedule = Schedule(traces)
    recorded = (traces.spans["ended_at_s"] - traces.spans["started_at_s"]).to_numpy()
    for durations in (recorded, np.full(len(recorded), np.nan)):
        again = schedule.rescheduled(durations)
        assert again.started_at_s == pytest.approx(traces.spans["started_at_s"].to_numpy(), abs=1e-9)
        assert again.ended_at_s == pytest.approx(traces.spans["ended_at_s"].fillna(np.inf).to_numpy(), abs=1e-9)
        assert again.run_ended_at_s == pytest.approx(traces.runs["ended_at_s"].to_numpy(), abs=1e-9, nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(any_traces(), st.data())
def test_longer_durations_make_nothing_earlier(traces: Traces, data: st.DataObject) -> None:
    schedule, n = Schedule(traces), len(traces.spans)
    shorter = np.array(data.draw(st.lists(instants, min_size=n, max_size=n)), dtype=np.float64)
    more = np.array(data.draw(st.lists(instants, min_size=n, max_size=n)), dtype=np.float64)
    before, after = (schedule.rescheduled(durations) for durations in (shorter, shorter + more))
    assert (after.started_at_s >= before.started_at_s - 1e-9).all()
    assert (after.ended_at_s >= before.ended_at_s - 1e-9).all()
    ended = ~np.isnan(before.run_ended_at_s)
    assert (after.run_ended_at_s[ended] >= before.run_ended_at_s[ended] - 1e-9).all()


@pytest.mark.full
def test_a_thousand_runs_of_fifty_spans_are_rescheduled_in_a_second_of_processor_time() -> None:
    generator = np.random.default_rng(1)
    runs, spans = [], []
    for run in range(1_000):
        at_s = 0.0
        for number in range(50):
            seconds = float(generator.exponential())
            spans.append(Span(str(run), str(number), "", "w", "llm", at_s, at_s + seconds))
            at_s += seconds * float(generator.uniform(0.3, 1.2))
        runs.append(TracedRun(str(run), str(run), "test", at_s + 2, at_s + 2, "answered"))
    schedule = Schedule(Traces.of(runs, spans))
    begun = time.process_time()
    schedule.rescheduled(generator.exponential(size=50_000))
    # It takes some 10 ms; processor time is not lengthened by what else runs.
    assert time.process_time() - begun < 1
