"""`docmind-lab watch`: production beside a study, from the spans that production's own calls left (enforce.md 6)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from often import often
from scipy import stats

pytest.importorskip("opentelemetry.exporter.otlp.proto.common")
from commands_here import said
from golden import assert_golden
from held_graphs import Notes, two_nodes
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from production_calls import Production, drawn, line_of, result_of, run_of, shares, study_with
from sample_runs import study_of

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.diff import StudyDiff
from docmind_lab.findings.study import Study
from docmind_lab.findings.watch import read_enforced_calls, runs_of_calls, watch
from docmind_lab.tables.records import TABLES
from docmind_lab.views.telemetry import Telemetry

# The calls that are answered take some 10 ms of the machine, all together.
LIMIT_S = 1.0


@pytest.fixture
def production() -> Production:
    return Production()


def calls_of(production: Production, folder: Path) -> pd.DataFrame:
    return read_enforced_calls([production.write(folder / "traces.jsonl")])


def watched(study: Study, *results: Any) -> StudyDiff:
    """Watch calls without a file: the columns are those that files have (`test_what_enforce_wrote_is_read`)."""
    same = ("alternative", "alternative_options", "outcome", "stop_reason")
    rows = [
        {
            **{name: getattr(result, name) for name in same},
            "workload": "support",
            "decision_timeout_s": result.remaining_at_start_s,
            "caller_overrun_s": result.overrun_s,
            "requests_cut": float(result.requests_cut),
            "threads_left": float(len(result.still_running)),
        }
        for result in results
    ]
    return watch(study, runs_of_calls(rows))


def results_of(answered: list[bool], late_s: float = 0.01, **changes: Any) -> list[Any]:
    return [result_of(is_answered, late_s, **changes) for is_answered in answered]


# ---- reading


@pytest.mark.wall
def test_what_enforce_wrote_is_read(production: Production, tmp_path: Path) -> None:
    async def ask(state: Notes) -> Notes:
        await asyncio.sleep(float(state["path"]))
        return {"log": ["asked"]}

    graph = two_nodes(lambda state: {"log": ["plan"]}, ask)
    agent = dl.enforce(graph, LIMIT_S, "E", on_result=production.telemetry)
    asyncio.run(agent.abatch([{"path": wait, "log": []} for wait in ["0"] * 12 + ["60"] * 6]))
    calls = calls_of(production, tmp_path)
    assert len(calls) == 18
    assert calls["outcome"].value_counts().to_dict() == {"answered": 12, "partial": 6}
    assert calls["decision_timeout_s"].to_numpy() == pytest.approx(LIMIT_S, rel=0.02)
    assert set(calls["alternative"]) == {"hybrid"}
    assert (calls["caller_overrun_s"][calls["outcome"] == "partial"] > 0).all()
    runs = [
        run_of(repeat, is_answered, 0.01, decision_timeout_s=LIMIT_S)
        for repeat, is_answered in enumerate(shares(20, 30))
    ]
    answered = watch(study_of(runs), calls).effects.iloc[0]
    assert (answered["decision_timeout_s"], answered["runs_after"], answered["runs_before"]) == (LIMIT_S, 18, 30)
    assert answered[["before", "after"]].tolist() == pytest.approx([2 / 3, 2 / 3])


def test_what_is_read_is_what_the_results_say(production: Production, tmp_path: Path) -> None:
    production.telemetry(result_of(True))
    production.telemetry(result_of(False, 0.25, still_running=("ask",), alternative_options='{"propagate": false}'))
    expected = {
        "workload": ["support", "support"],
        "alternative": ["hybrid", "hybrid"],
        "alternative_options": ["{}", '{"propagate": false}'],
        "outcome": ["answered", "timed_out"],
        "stop_reason": ["", "deadline"],
        "answered_in_time": [True, False],
        "decision_timeout_s": [20.0, 20.0],
        "caller_overrun_s": [0.0, 0.25],
        "requests_cut": [0.0, 1.0],
        "threads_left": [0.0, 1.0],
    }
    calls = calls_of(production, tmp_path)
    pd.testing.assert_frame_equal(calls[list(expected)], pd.DataFrame(expected))
    assert {column.name for column in TABLES["runs"][1]} | {"requests_cut"} == set(calls)


def test_files_folders_and_one_document_over_lines_are_read_and_a_span_counts_once(
    production: Production, tmp_path: Path
) -> None:
    for answer in shares(3, 5):
        production.telemetry(result_of(answer))
    production.write(tmp_path / "traces.jsonl", batch=2)
    # A rotated copy of some of them, in one document over several lines, and what is no trace.
    (tmp_path / "old.json").write_text(json.dumps(json.loads(line_of(production.spans[:2])), indent=2))
    (tmp_path / "metrics.jsonl").write_text('{"resourceMetrics": []}\n')
    (tmp_path / "notes.txt").write_text("no spans")
    assert len(read_enforced_calls([tmp_path])) == 5
    assert len(read_enforced_calls([tmp_path / "traces.jsonl", tmp_path / "old.json"])) == 5


def test_a_line_that_is_still_being_written_is_passed_over(production: Production, tmp_path: Path) -> None:
    for answer in shares(3, 4):
        production.telemetry(result_of(answer))
    path = production.write(tmp_path / "traces.jsonl", batch=2)
    path.write_text(path.read_text()[:-40])
    assert len(read_enforced_calls([path])) == 2


def test_spans_of_the_labs_own_runs_are_no_calls_of_production(production: Production, tmp_path: Path) -> None:
    lab = InMemorySpanExporter()
    told = Telemetry(spans=lab)
    dl.compare(decision_timeout_s=8.0, alternatives="A", world=dl.World(latencies="typical"), runs=1, telemetry=told)
    (tmp_path / "lab.jsonl").write_text(line_of(lab.get_finished_spans()) + "\n")
    with pytest.raises(ConfigurationError, match="no span of an enforced call"):
        read_enforced_calls([tmp_path])
    production.telemetry(result_of(True))
    production.write(tmp_path / "production.jsonl")
    assert len(read_enforced_calls([tmp_path])) == 1


REFUSED: list[tuple[bytes | tuple[str, str], str]] = [
    (b"", "no span of an enforced call"),
    (b"{}\nnonsense\n{}\n", "line 2: it is not JSON"),
    (b"nonsense", "line 1: it is not JSON"),
    (b"\xff\xfe\x00", "cannot be read as .jsonl"),
    (b'{"resourceSpans": 3}', "it is not OTLP JSON"),
    (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": 3}]}]}]}', "attributes cannot be read"),
    (b"[1, 2]", "a record must be an object"),
    (('"docmind.outcome"', '"docmind.out"'), "has no docmind.outcome"),
    (('{"doubleValue": 20.0}', '{"stringValue": "soon"}'), "remaining_at_start_s of a call is 'soon', not a number"),
]


def test_what_cannot_be_read_is_one_clear_line(production: Production, tmp_path: Path) -> None:
    production.telemetry(result_of(True))
    path = production.write(tmp_path / "traces.jsonl")
    whole = path.read_text()
    for change, named in REFUSED:
        path.write_bytes(change if isinstance(change, bytes) else whole.replace(*change).encode())
        with pytest.raises(ConfigurationError, match=named) as refused:
            read_enforced_calls([path])
        assert "\n" not in str(refused.value)
    (tmp_path / "empty").mkdir()
    for name, named in (("empty", r"no file whose name ends in \.json"), ("none.jsonl", "no such file or folder")):
        with pytest.raises(ConfigurationError, match=named):
            read_enforced_calls([tmp_path / name])


# ---- the verdict

SAID = study_with(shares(900, 1000))
FEW = study_with(shares(90, 100))
MY_APP = study_with(shares(90, 100), workload="my_app:graph")
MY_APP.manifest["systems"] = {"my_app:graph": {"kind": "own:my_app:graph", "reads_settings": False}}
HEALTHY = [run_of(repeat, True) for repeat in range(50)]
FAULTY = [run_of(repeat, False, fault="hang:*", run_id=f"f{repeat}") for repeat in range(50)]
SLOW = [run_of(repeat, True, latency_profile="heavy_tail", run_id=f"s{repeat}") for repeat in range(50)]
SHORT = {"decision_timeout_s": 5.0, "horizon_s": 25.0}
TWO_LIMITS = [*HEALTHY, *(run_of(repeat, False, run_id=f"s{repeat}", **SHORT) for repeat in range(40))]
PRODUCED: dict[str, tuple[Study, list[Any]]] = {
    "as the study said": (SAID, results_of(shares(890, 1000))),
    "fewer are answered": (SAID, results_of(shares(300, 400))),
    "as many are answered, and callers wait longer": (SAID, results_of(shares(900, 1000), 1.5)),
    "surely later, and less than callers are allowed to wait": (SAID, results_of(shares(900, 1000), 0.05)),
    "better": (study_with(shares(500, 1000)), results_of(shares(990, 1000))),
    "too few calls": (SAID, results_of(shares(11, 12))),
    "too few runs": (study_with(shares(18, 20)), results_of(shares(1800, 2000))),
    "calls that no deadline ended are not counted": (
        SAID,
        [
            *results_of(shares(90, 100)),
            result_of(True, outcome="interrupted"),
            *[result_of(False, stop_reason="caller_left")] * 2,
        ],
    ),
    "no call that a deadline ended": (
        FEW,
        [result_of(True, outcome="interrupted"), result_of(False, stop_reason="caller_left")],
    ),
    "a graph that fails is not answered, and not cut": (
        SAID,
        [*results_of(shares(300, 300)), *results_of(shares(100, 100), outcome="failed")],
    ),
    "what was cut, and threads that went on": (
        SAID,
        [*results_of(shares(90, 90)), *results_of(shares(0, 10), still_running=("ask",), requests_cut=3)],
    ),
    "another alternative": (FEW, results_of(shares(9, 10), alternative="hard_timeout")),
    "a variant of a graph": (MY_APP, results_of(shares(9, 10), alternative_options='{"propagate": false}')),
    "limits that were not measured, and one a hop shorter": (
        FEW,
        [
            *results_of(shares(9, 10)),
            *results_of(shares(5, 5), remaining_at_start_s=19.7),
            *results_of(shares(6, 6), remaining_at_start_s=12.0),
            *results_of(shares(5, 5), remaining_at_start_s=19.5),
        ],
    ),
    "each limit with the runs of its own": (
        study_of(TWO_LIMITS),
        [*results_of(shares(20, 20)), *results_of(shares(0, 10), remaining_at_start_s=5.0)],
    ),
    "runs with a fault are left out": (study_of([*HEALTHY, *FAULTY]), results_of(shares(20, 20))),
}


def test_what_is_said_of_production() -> None:
    """A verdict of all that is compared, the differences that were shown, and what cannot be compared."""
    texts = {}
    for name, (study, results) in PRODUCED.items():
        found = watched(study, *results)
        numbers = ["measure", "before", "after", "low", "high", "runs_before", "runs_after", "p_corrected"]
        table = found.effects[["decision_timeout_s", *numbers]].to_csv(index=False, float_format="%.4g")
        texts[name] = "\n".join([found.text(), "", f"{found.verdict}:", table])
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_a_study_of_several_conditions_or_without_runs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"several values of latency_profile \(heavy_tail, typical/6\), and"):
        watched(study_of([*HEALTHY, *SLOW]), *results_of(shares(20, 20)))
    with pytest.raises(ConfigurationError, match="the study has no runs"):
        watched(study_of([]), *results_of(shares(20, 20)))


def test_spans_of_several_graphs_are_refused_until_one_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("support", "sales"):
        other = Production(name)
        for answer in shares(18, 20):
            other.telemetry(result_of(answer))
        other.write(tmp_path / f"{name}.jsonl")
    study_with(shares(90, 100)).save(tmp_path / "study")
    code, _, error = said(capsys, "watch", tmp_path / "study", "--spans", tmp_path)
    assert (code, error) == (
        2,
        "docmind-lab: the spans are of 2 graphs (sales, support); choose one with --workflow\n",
    )
    code, printed, _ = said(capsys, "watch", tmp_path / "study", "--spans", tmp_path, "--workflow", "sales")
    assert (code, printed.splitlines()[0]) == (0, "20 enforced calls of sales beside study made-up.")
    code, _, error = said(capsys, "watch", tmp_path / "study", "--spans", tmp_path, "--workflow", "sails")
    assert (code, error) == (2, "docmind-lab: --workflow: no call is of 'sails'; choose among sales, support\n")


# ---- the command


def test_the_command_prints_the_verdict_and_has_all_measures_as_json(
    production: Production, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for result in results_of(shares(300, 400)):
        production.telemetry(result)
    path = production.write(tmp_path / "traces.jsonl")
    study_with(shares(900, 1000)).save(tmp_path / "study")
    words = ("watch", tmp_path / "study", "--spans", path)
    code, printed, error = said(capsys, *words)
    assert (code, error) == (0, "")
    assert printed.splitlines()[0] == "400 enforced calls of support beside study made-up."
    assert "E hybrid (20 s decision timeout): answered in time 0.90 → 0.75" in printed
    assert said(capsys, *words, "--fail-if-worse")[0] == 1
    code, printed, _ = said(capsys, *words, "--json")
    answer = json.loads(printed)
    assert answer["verdict"] == "regressed"
    assert [row["measure"] for row in answer["effects"]] == ["answered_in_time", "caller_overrun_s"]


def test_fail_if_worse_fails_too_where_nothing_could_be_compared(
    production: Production, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    production.telemetry(result_of(True, alternative="hard_timeout"))
    path = production.write(tmp_path / "traces.jsonl")
    study_with(shares(9, 10)).save(tmp_path / "study")
    code, printed, _ = said(capsys, "watch", tmp_path / "study", "--spans", path, "--fail-if-worse")
    assert code == 1
    assert "In production only: B hard timeout (20 s decision timeout)" in printed


# ---- against the truth


def verdicts(repetitions: int, share: float, late_s: float = 0.01, runs: int = 400, calls: int = 400) -> list[str]:
    """The verdicts of repetitions: the study's truth is 90 % answered, and cut runs 10 ms late."""
    verdicts = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([7, repetition, round(1000 * share), round(1000 * late_s)])
        study = study_with(drawn(rng, 0.9, runs))
        verdicts.append(watched(study, *results_of(drawn(rng, share, calls), late_s)).verdict)
    return verdicts


def most(repetitions: int, rate: float) -> float:
    """The most errors that a rule with this rate of errors makes: it makes more in one of a thousand such tests."""
    return float(stats.binom.ppf(0.999, repetitions, rate))


@pytest.mark.full
def test_production_that_is_as_the_study_is_called_worse_in_one_of_twenty_at_most() -> None:
    assert verdicts(200, 0.9).count("regressed") <= most(200, 0.05)


@pytest.mark.parametrize(
    ("share", "late_s", "repetitions"),
    often([(0.75, 0.01, 12), (0.75, 0.01, 200), (0.9, 1.5, 200)], (0.75, 0.01, 12)),
)
def test_production_that_is_worse_is_called_worse(share: float, late_s: float, repetitions: int) -> None:
    assert verdicts(repetitions, share, late_s).count("regressed") >= 0.9 * repetitions
