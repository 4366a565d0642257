"""Load studies on traces: by hand, and beside the load study of the whole stack."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from golden import assert_golden
from typer.testing import CliRunner

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.load import (
    Constant,
    LoadDesign,
    LoadOnTraces,
    Poisson,
    Trace,
    load_on_traces,
    load_options,
    run_load,
)
from docmind_lab.experiments.load.on_traces.shapes import shapes_of
from docmind_lab.experiments.load.on_traces.traced_server import POLICIES
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.findings.study import Study
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.traces.trace_tables import Span, TracedRun, Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study
from docmind_lab.views.cli.app import app
from docmind_lab.views.plots.goodputs import goodput_frame

_SAME = ["counted", "goodput_per_s", "share_in_time", "response_median_s", "live_queue_wait_s", "busy_share"]


def run_of(*calls: tuple[float, float], name: str = "a", **changes: Any) -> tuple[TracedRun, list[Span]]:
    """A run of model calls, each with its begin and end; it ends with the last."""
    end = max(ended for _, ended in calls)
    run = TracedRun(name, name, "by hand", end, end, "answered", **changes)
    return run, [Span(name, f"{name}{n}", "", "agent", "llm", *call) for n, call in enumerate(calls)]


def served_until(run: tuple[TracedRun, list[Span]], *ends: float) -> tuple[TracedRun, list[Span]]:
    """The run with the ends of its calls that the server saw."""
    seen = [
        dataclasses.replace(span, server_started_at_s=span.started_at_s, server_ended_at_s=end)
        for span, end in zip(run[1], ends, strict=True)
    ]
    return run[0], seen


def traces_of(*runs: tuple[TracedRun, list[Span]]) -> Traces:
    return Traces.of([run for run, _ in runs], [span for _, spans in runs for span in spans])


def offered(traces: Traces, at_s: tuple[float, ...], timeout_s: float = 10.0, **options: Any) -> LoadOnTraces:
    """One query after the other, run n at instant n, and a last one far off, so that all before it count."""
    first = {"alternatives": "B", "slots": 1, "in_order": True, "replicates": 1, "warm_up_s": 0.0}
    arrivals = Trace((0.0, *at_s, 1_000.0))
    return load_on_traces(traces, [arrivals], queries=len(at_s) + 2, decision_timeout_s=timeout_s, **first | options)


LATER = run_of((0.0, 1.0), name="b")
LONG = traces_of(run_of((0.0, 8.0), (8.0, 16.0)), LATER)
EARLIEST = traces_of(
    run_of((0.0, 3.0)),
    run_of((0.0, 1.0), (1.0, 2.0), name="b"),
    run_of((0.0, 1.0), name="c"),
    run_of((0.0, 1.0), name="d"),
)
EXPIRING = traces_of(run_of((0.0, 9.0)), run_of((0.0, 4.0), name="b"), run_of((0.0, 1.0), name="c"))
PAUSES = traces_of(run_of((0.0, 2.0), (3.0, 4.0)))
LEFT: dict[str, Any] = {"timeout_s": 6.0, "horizon_factor": 20.0}
NO_LIMIT: dict[str, Any] = {"timeout_s": 5.0, "alternatives": "control"}
PREDICTED: dict[str, Any] = {"timeout_s": 9.0, "queue_policy": "admit_by_prediction", "alternatives": "control"}
Offer = tuple[Traces, tuple[float, ...], dict[str, Any]]
OFFERS: dict[str, Offer] = {
    # The second query waits 1.5 s for the slot, and the first one then waits 1 s for it. The pauses of 1 s stay.
    "a call that waits for its slot moves the rest of its run": (PAUSES, (0.5,), {}),
    "calls that overlapped are parallel, and the next waits for both": (
        traces_of(run_of((0.0, 2.0), (0.0, 3.0), (3.0, 4.0))),
        (),
        {},
    ),
    # Both wait for the slot at 8 s under B; then the newcomer is before the second call of the run without a caller.
    "what a caller left behind keeps its slots until it ends": (LONG, (5.0,), LEFT),
    "and what was cut does not": (LONG, (5.0,), LEFT | {"alternatives": "C"}),
    "a server that goes on keeps the slot of a call that was cut": (
        traces_of(run_of((0.0, 8.0)), LATER),
        (5.0,),
        {"timeout_s": 6.0, "alternatives": "C", "server_behaviour": "goes-on"},
    ),
    "what is left of a query is cut at its horizon": (
        traces_of(run_of((0.0, 50.0)), LATER),
        (11.0,),
        {"timeout_s": 6.0, "horizon_factor": 2.0},
    ),
    # The newcomer has the slot at 2 s, before the caller has its answer at 3, and at 5 s, after it.
    "a slot is free when the server is done, and a caller back when its client is": (
        traces_of(served_until(run_of((0.0, 3.0)), 2.0), LATER),
        (1.0,),
        {},
    ),
    "a server that goes on after the answer keeps its slot": (
        traces_of(served_until(run_of((0.0, 3.0)), 5.0), LATER),
        (1.0,),
        {},
    ),
    "E without propagation cuts what is under way a twentieth of a second after the deadline": (
        traces_of(run_of((0.0, 8.0)), LATER),
        (5.0,),
        {"timeout_s": 6.0, "alternatives": "E:unpropagated"},
    ),
    "a stop flag lets the step under way end, and no further one begin": (
        traces_of(run_of((0.0, 4.0), (4.0, 8.0), (8.0, 9.0))),
        (),
        {"timeout_s": 6.0, "alternatives": "D"},
    ),
    "first come, first served": (EARLIEST, (1.0, 1.5, 1.8), {}),
    # The second call of "b" comes after "d" has come, and its query has the earlier deadline.
    "deadline first serves the earliest deadline": (EARLIEST, (1.0, 1.5, 1.8), {"queue_policy": "deadline_first"}),
    "without a limit nothing expires": (EXPIRING, (1.0, 6.0), NO_LIMIT),
    "a call whose query has no time left is refused": (
        EXPIRING,
        (1.0, 6.0),
        NO_LIMIT | {"queue_policy": "drop_expired"},
    ),
    # With two waiting, the next would wait for 8 s and take 4.
    "a query that would end too late is refused": (traces_of(run_of((0.0, 4.0))), (0.1, 0.2, 0.3), PREDICTED),
    "a brownout slows the calls that get their slot within it": (
        traces_of(run_of((0.0, 2.0), (2.0, 4.0))),
        (),
        {"brownout": "brownout=3@1-3"},
    ),
    **{f"{policy}, where none waits": (PAUSES, (100.0,), {"queue_policy": policy}) for policy in POLICIES},
}


def waits(*spans: tuple[str, str, float, float], **after: str) -> dict[str, tuple[list[str], float]]:
    """For each call of a run, what it waits for and the pause before it. A span in capitals is an agent's."""
    rows = [
        Span("r", name, parent, "w", "agent" if name.isupper() else "llm", *times, after=after.get(name, "[]"))
        for name, parent, *times in spans
    ]
    (shape,) = shapes_of(Traces.of([TracedRun("r", "r", "by hand", 20.0, 100.0, "answered")], rows))
    names = [name for name, *_ in spans if not name.isupper()]
    return {
        name: ([names[each] for each in call.before], call.pause_s)
        for name, call in zip(names, shape.calls, strict=True)
    }


def test_a_call_waits_for_those_that_had_ended_and_not_for_those_beside_it() -> None:
    fork = [("plan", "", 1, 3), ("left", "", 4, 9), ("right", "", 4.5, 6), ("later", "", 6.5, 8), ("join", "", 10, 15)]
    assert waits(*fork) == {
        "plan": ([], 1),
        "left": (["plan"], 1),
        "right": (["plan"], 1.5),
        "later": (["right"], 0.5),
        "join": (["left", "later"], 1),
    }
    nested = [("A", "", 2, 9), ("a1", "A", 3, 5), ("a2", "A", 5.5, 8), ("b", "", 10, 12)]
    assert waits(*nested) == {"a1": ([], 3), "a2": (["a1"], 0.5), "b": (["a2"], 2)}
    # What a span names counts, though it overlaps.
    assert waits(("a", "", 0, 5), ("b", "", 4.5, 8), b='["a"]')["b"] == (["a"], 0.0)


def test_what_becomes_of_the_queries() -> None:
    texts = {}
    for name, (traces, at_s, options) in OFFERS.items():
        study = offered(traces, at_s, **options)
        queries = study.queries[["response_s", "outcome"]].to_csv(index=False, float_format="%.6g")
        texts[name] = f"{queries}abandoned share {study.crowds['abandoned_share'].iloc[0]:.4g}"
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_the_same_seed_gives_the_same_study_and_figures_take_it(tmp_path: Path) -> None:
    traces = traces_of(run_of((0.0, 2.0)), run_of((0.0, 1.0), (1.0, 5.0), name="b"))
    options: dict[str, Any] = {"alternatives": "B,C", "slots": [1, 2], "queries": 200, "replicates": 2}
    one, again = (load_on_traces(traces, [0.1, 0.3], decision_timeout_s=6.0, **options) for _ in range(2))
    pd.testing.assert_frame_equal(one.crowds, again.crowds)
    assert one.manifest["study_id"] == again.manifest["study_id"]
    frame = goodput_frame(one)
    assert set(frame["arm"]) == {
        f"{name}, {count}" for name in ("B  hard timeout", "C  async cancellation") for count in ("1 slot", "2 slots")
    }
    assert len(one.summary()) == 8
    assert len(one.differences("B  hard timeout, 1 slot")) == 6
    assert "goodput /s" in repr(one)
    folder = one.save(tmp_path / "study")
    assert sorted(path.name for path in folder.iterdir()) == ["crowds.parquet", "manifest.json", "queries.parquet"]
    read = LoadOnTraces.load(folder)
    pd.testing.assert_frame_equal(read.summary(), one.summary())
    assert repr(read) == repr(one)
    with pytest.raises(RecordError, match="holds no load study that can be read"):
        LoadOnTraces.load(tmp_path)


def test_an_interrupted_study_keeps_the_crowds_that_were_done(tmp_path: Path) -> None:
    def interrupt(done: int, of: int) -> None:
        if done == 400:
            raise KeyboardInterrupt

    out = tmp_path / "study"
    with pytest.raises(KeyboardInterrupt):
        load_on_traces(
            traces_of(run_of((0.0, 2.0))),
            [0.1],
            alternatives="B,C,D",
            decision_timeout_s=6.0,
            queries=200,
            replicates=1,
            out=out,
            progress=interrupt,
        )
    kept = LoadOnTraces.load(out)
    assert len(kept.crowds) == 2
    assert kept.manifest["complete"] is False


def test_a_load_table_with_traces_is_a_study_on_them(tmp_path: Path) -> None:
    path = traces_of(run_of((0.0, 2.0)), run_of((0.0, 1.0), (1.0, 5.0), name="b")).write(tmp_path / "traces.jsonl")
    study = tmp_path / "study.toml"
    study.write_text(
        f'''
        [load]
        traces = "{path}"
        rates_per_s = [0.1, 0.3]
        alternatives = ["B", "C"]
        decision_timeout_s = [6, 8]
        queue_policy = ["first_come", "drop_expired"]
        queries = 300
        replicates = 1
        ''',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["sweep", str(study), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "crowds.parquet, queries.parquet, goodput.png, abandoned.png, manifest.json" in done.output
    assert len(LoadOnTraces.load(out).summary()) == 2 * 2 * 2 * 2
    with pytest.raises(ConfigurationError, match=r"load\.profile: there is no such field"):
        load_options({"traces": str(path), "rates_per_s": [0.1], "profile": "local_gpu"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queue_policy": "last_come"}, "queue policy must be one of first_come"),
        ({"slots": 0}, "slots must be a whole number"),
        ({"alternatives": "A:equal"}, "changes the path of a run"),
        ({"decision_timeout_s": [5.0, 5.0]}, "each once"),
        ({"queries": 3}, "none is counted"),
        ({"brownout": "hang"}, "more than a trace can say of"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_on_traces(traces_of(run_of((0.0, 2.0))), [Constant(0.1)], **{"replicates": 1, **changes})


def test_runs_that_were_cut_and_runs_that_adapt_are_refused() -> None:
    cut = Traces.of([TracedRun("a", "a", "by hand", math.nan, 5.0, "cut")], [Span("a", "1", "", "x", "llm", 0.0, 5.0)])
    with pytest.raises(ConfigurationError, match="1 of the 1 runs were cut"):
        load_on_traces(cut, [0.1])
    with pytest.raises(ConfigurationError, match="A  cooperative: some runs would adapt"):
        load_on_traces(traces_of(run_of((0.0, 2.0), adapts=True)), [0.1], alternatives="A")


# ---- beside the stack


def recorded(queries: int, seed: int) -> Traces:
    """The runs of a load study's queries, each alone and without a deadline."""
    settings = Settings()
    profile = dataclasses.replace(LatencyProfile.named("local_gpu"), slots=4)
    design = LoadDesign(
        arrivals=(Poisson(0.5),),
        alternatives=parse_alternatives("unguarded", None, budgeted_retries=settings.agents.max_retries),
        profile=profile,
        queries=queries,
        replicates=1,
        seed=seed,
        warm_up_s=0.0,
        decision_timeout_s=0.01 * queries,
        horizon_factor=100_000.0 / queries,
        router_injection=settings.agents.enable_router_injection,
    )
    system = SimulatedSystem(settings, corpus="handbook")
    orders = [query.order for cell in design.cells() for query in design.queries_of(cell)]
    done = [system.measure(order, ServiceOptions(profile=profile, seed=seed)) for order in orders]
    tables = (
        to_frame("runs", [each.run for each in done]),
        to_frame("calls", [call for each in done for call in each.calls]),
        to_frame("events", [event for each in done for event in each.events]),
    )
    return traces_of_study(Study(*tables, {}))


def both(
    queries: int,
    seed: int,
    rate_per_s: float,
    alternatives: str,
    timeout_s: float,
    *,
    stops: bool,
    brownout: str | None = None,
) -> Any:
    """The measures of one crowd in the stack, and from traces."""
    same: dict[str, Any] = {
        "alternatives": alternatives,
        "slots": 4,
        "queries": queries,
        "replicates": 1,
        "seed": seed,
        "warm_up_s": 1.0,
        "decision_timeout_s": timeout_s,
    }
    stack = run_load([rate_per_s], stops_on_disconnect=stops, fault=brownout or (), **same)
    behaviour = "stops" if stops else "goes-on"
    traced = load_on_traces(
        recorded(queries, seed),
        [rate_per_s],
        in_order=True,
        server_behaviour=behaviour,
        brownout=brownout,
        **same,
    )
    return stack, traced


@pytest.mark.full
@pytest.mark.parametrize("stops", [True, False])
def test_traces_say_what_the_stack_does_under_load(stops: bool) -> None:
    """The same arrivals, runs and draws give the same crowd, to a microsecond."""
    stack, traced = both(
        14,
        11,
        1.2,
        "A,B,D" if stops else "C",
        8.0,
        stops=stops,
        brownout=None if stops else "brownout=1.3@2-5",
    )
    there = stack.replicates().set_index("arm")
    here = traced.replicates().set_index("arm")
    assert (there["busy_share"] > 0.5).all(), "the load matters"
    columns = [*_SAME, "abandoned_share"]
    pd.testing.assert_frame_equal(
        here.loc[there.index.astype("str"), columns].reset_index(drop=True),
        there[columns].reset_index(drop=True),
        atol=1e-6,
        check_dtype=False,
    )


@pytest.mark.full
@pytest.mark.parametrize("rate_per_s", [0.4, 0.6])
def test_goodput_and_provider_share_are_those_of_the_stack_within_2_percent(rate_per_s: float) -> None:
    """10,000 queries of the stack: 250 in each of five crowds, under four alternatives, at two loads."""
    for seed in range(5):
        stack, traced = both(250, 40_000 + seed, rate_per_s, "A,B,C,D", 20.0, stops=seed % 2 == 0)
        there, here = (study.replicates().set_index("arm") for study in (stack, traced))
        for name in ("goodput_per_s", "abandoned_share"):
            for arm in there.index:
                assert here.loc[arm, name] == pytest.approx(there.loc[arm, name], rel=0.02, abs=0.002), (arm, name)
