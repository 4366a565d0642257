"""What a summary says of runs of every sort: `test_summary.txt` has each of them, and every sentence there is true."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import BUDGET_ENDED, arm, budgeted
from sample_runs import LEVELS, MANIFEST, sample_run, study_of

from docmind_lab.core.text import in_python
from docmind_lab.findings.summary import Summary, summarise
from docmind_lab.tables.manifest import chosen_by
from docmind_lab.tables.records import RunRecord

CUT = {"outcome": "partial", "answered_in_time": False, "stop_reason": "deadline", "returned_at_s": 2.0}
LATE = {"answered_in_time": False, "returned_at_s": 5.0, "caller_overrun_s": 3.0}
FAILED = {"outcome": "failed", "answered_in_time": False, "error_type": "KeyError", "error_node": "planner"}
UNFINISHED = {"outcome": "unfinished", "returned_at_s": math.nan, "caller_overrun_s": math.nan}
CALLS = {"recorded": 1_200, "of_another_alternative": 3, "not_recorded": 4, "cut_in_the_recording": 5}
NOTES = {
    "replayed_calls": {**CALLS, "longer_than_observed": 2},
    "ended_by": "max_requests=60",
    "no_model_calls": True,
    "loops_blocked": {"my_app.py:7": 1},
    "errors_in_state": {"error": 2},
    "outputs_not_set": {"answer": 1},
    "never_reached": {"nodes": ["plan"], "tools": ["search"]},
    "made_up_answers": {"shape plan": 1, "collection notes": 1},
    "failed_calls": {"failed": 3, "requests": 12, "node": "plan"},
}


def of_own_graph(records: list[RunRecord], **changes: Any) -> list[RunRecord]:
    return [dataclasses.replace(run, workload="my_app:graph", **changes) for run in records]


def several_timeouts(in_time: int) -> list[RunRecord]:
    return [
        sample_run(
            level,
            repeat,
            run_id=f"{level}-{timeout_s}-{repeat}",
            decision_timeout_s=timeout_s,
            horizon_s=5 * timeout_s,
            answered_in_time=repeat < in_time,
            outcome="answered" if repeat < in_time else "partial",
        )
        for level in ("unguarded", "cooperative")
        for timeout_s in (2.0, 4.0)
        for repeat in range(80)
    ]


PAST_BUDGET = [budgeted("hard_timeout", n, 9.0) for n in range(3)]
BOTH = [*arm("cooperative", 12), *arm("hybrid", 12)]
RUNS: Mapping[str, list[RunRecord]] = {
    "all alternatives, the last first": [sample_run(level, 0) for level in reversed(LEVELS)],
    "nothing but the control": arm("unguarded", 1),
    "a control that was watched no longer, and one that failed": [
        sample_run("unguarded", 0),
        sample_run("unguarded", 1, **UNFINISHED),
        sample_run("unguarded", 2, outcome="failed", answered_in_time=False),
        sample_run("cooperative", 0),
    ],
    "callers, servers and checkpoints that were late": [
        sample_run(
            "hard_timeout",
            0,
            outcome="timed_out",
            answered_in_time=False,
            calls_after_deadline=2.0,
            busy_after_deadline_s=3.0,
            late_checkpoints=5,
        ),
        # The median of 0 and 1.691 is 0.846, which no run had (trust 9).
        *arm("unguarded", 2, caller_overrun_s=lambda n: 1.691 * n),
    ],
    "work in the process, threads and checkpoints (trust 13)": [
        sample_run("cooperative", 0, work_overrun_s=1.5),
        sample_run("hard_timeout", 0, threads_left=1),
        sample_run("async_cancellation", 0, late_checkpoints=2),
        sample_run("stop_flag", 0, work_overrun_s=0.004, calls_after_deadline=1.0, **CUT),
        sample_run("hybrid", 0, busy_after_deadline_s=8.0, work_overrun_s=8.0, work_censored=True),
    ],
    "no log of a server": arm("cooperative", 1, calls_after_deadline=math.nan, busy_after_deadline_s=math.nan),
    "two arms alike and one that is not": [
        *arm("cooperative", 1),
        *arm("async_cancellation", 1),
        *arm("hard_timeout", 1, busy_after_deadline_s=3.0),
    ],
    "a choice": [
        *arm("cooperative", 12, outcome="partial"),
        *arm("hard_timeout", 12, busy_after_deadline_s=lambda n: 1.0 + n / 10),
        *arm("stop_flag", 12, caller_overrun_s=0.6),
    ],
    "one answer more decides nothing": [
        *arm("cooperative", 12, outcome=lambda n: "answered" if n else "partial", answered_in_time=bool),
        *arm("async_cancellation", 12),
    ],
    "one run of each": [
        sample_run(level, 0, **(LATE if level == "unguarded" else CUT)) for level in ("unguarded", *LEVELS[1:4])
    ],
    "two runs of each": [*arm("cooperative", 2), *arm("hybrid", 2)],
    "nobody held the deadline": arm("stop_flag", 1, caller_overrun_s=0.6),
    "nobody held the deadline, and most were not back": [
        sample_run("stop_flag", n, answered_in_time=False, **(UNFINISHED if n else {"caller_overrun_s": 0.6}))
        for n in range(3)
    ],
    "every run failed": arm("cooperative", 3, **FAILED),
    "the control failed, and a deadline cut some runs before that": [
        *arm("unguarded", 12, **FAILED),
        *arm("cooperative", 12, **FAILED | {"outcome": lambda n: "timed_out" if n % 2 else "failed"}),
    ],
    "variants of one alternative": [
        sample_run("hard_timeout", 0),
        sample_run("hard_timeout", 1, alternative_options='{"naive": true}'),
    ],
    "30 of 40 in time": arm("cooperative", 40, answered_in_time=lambda n: n < 30),
    "several timeouts, all in time": several_timeouts(80),
    "several timeouts, few in time": several_timeouts(20),
    "several faults": [
        sample_run("cooperative", n, fault=fault, run_id=f"{fault}-{n}") for fault in ("none", "hang") for n in range(3)
    ],
    "a graph of one's own, and no run reached the deadline": of_own_graph(BOTH),
    "a graph of one's own under a fault": of_own_graph(BOTH, fault="hang", faulted_calls=1, work_overrun_s=1.5),
    "a graph of one's own that was cut": of_own_graph(
        [sample_run(level, n, **(CUT if n == 3 else {})) for level in ("cooperative", "hybrid") for n in range(12)]
    ),
    "a study with notes of every sort": arm("cooperative", 1),
    "a budget of calls ended two runs of three": [
        budgeted("cooperative", n, 6.0, **(BUDGET_ENDED if n < 2 else {})) for n in range(3)
    ],
    "a budget that is only measured is no choice where runs went past it": [
        *PAST_BUDGET,
        *(budgeted("cooperative", n, 6.0) for n in range(3)),
    ],
    "every run went past a budget that is only measured": PAST_BUDGET,
    "budgets from the tightest to none": [
        *(budgeted("cooperative", 0, 5.0, limit=limit, run_id=f"{limit}") for limit in (12.0, 6.0, 100.0)),
        sample_run("cooperative", 0),
    ],
}


def summary_of(name: str) -> Summary:
    manifest = {**MANIFEST, "systems": {"my_app:graph": {"kind": "own:my_app:graph", "reads_settings": False}}}
    manifest |= NOTES if "notes" in name else {}
    return summarise(study_of(RUNS[name]).runs, manifest)


def test_every_summary_is_the_one_that_was_read() -> None:
    texts = {}
    for name in RUNS:
        summary = summary_of(name)
        short, in_common = summary.short_table()
        texts[name] = "\n".join([summary.markdown(), short.to_string(), *in_common, *summary.advice])
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_in_python_no_option_of_the_command_line_is_named() -> None:
    summary = summary_of("two runs of each")
    assert "Add runs=24 or more" in summary.text()
    assert not [word for word in summary.markdown().split() if word.startswith("--") and word.strip("-|:")]


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ("--fault hang and --fault http_500@1 show it.", "fault='hang' and fault='http_500@1' show it."),
        ("Answer with --resume (resume=[...]).", "Answer with resume=[...]."),
        ("Its line: docmind-lab doctor --graph my_app:graph.", "Its line: docmind-lab doctor --graph my_app:graph."),
    ],
)
def test_an_option_becomes_the_keyword_and_a_command_stays(options: str, keywords: str) -> None:
    assert in_python(options) == keywords


@pytest.mark.parametrize(
    ("workload", "system", "chosen"),
    [
        ("my_app:graph", {"kind": "own:my_app:graph", "reads_settings": False}, "enforce"),
        ("agent:my_app:answer", {"kind": "own:agent:my_app:answer", "reads_settings": False}, "nothing"),
        ("node agent.mjs", {"kind": "program:node agent.mjs", "reads_settings": False}, "nothing"),
        ("supervisor", {"kind": "supervisor", "reads_settings": True}, "settings"),
        # Of manifests that do not say what their systems are.
        ("supervisor", None, "settings"),
        ("my_package:KIND", None, "nothing"),
    ],
)
def test_what_a_choice_is_made_by_is_that_of_the_kind_of_system(
    workload: str, system: dict[str, Any] | None, chosen: str
) -> None:
    manifest = {} if system is None else {"systems": {workload: system}}
    assert chosen_by(pd.DataFrame({"workload": [workload]}), manifest) == chosen
