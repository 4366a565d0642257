"""Every public object says in a few lines what it is, in a terminal and in a notebook, and gives nothing away."""

from __future__ import annotations

import inspect
import math
from html import escape
from pathlib import Path

import numpy as np
import pytest
from golden import assert_golden
from held_graphs import async_graph
from sample_runs import sample_run, sample_study
from well_formed import assert_well_formed

import docmind_lab as dl
from docmind_lab import findings
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.crash_test import CrashReport, Violation
from docmind_lab.experiments.crash_test.invariants import INVARIANTS
from docmind_lab.experiments.doctor import Evidence, LintReport, Problem, Verdict
from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.findings.agreement import agreement
from docmind_lab.findings.diff import diff
from docmind_lab.statistics.answer_times import answer_times
from docmind_lab.statistics.differences import paired_by_seed, paired_mean_difference
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.statistics.sample_size import gated_quantile
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.traces.trace_tables import TracedRun

SECRET = "sk-not-to-be-shown"
MOST_LINES, MOST_COLUMNS = 25, 80


def runs_of_two_clocks():
    return [sample_study(runs=2, clock=clock) for clock in ("virtual", "wall")]


def response():
    return dl.AgentResponse(
        content="A with statement calls __enter__ & __exit__. " * 40,
        sources=({"id": "with#1", "content": "a private page", "metadata": {}, "score": 0.9},),
        metadata={"thread_id": "a-private-thread", "outcome": "answered", "decision_timeout_s": 20.0},
        validation_score=0.5,
        processing_time=3.25,
    )


def coordinator():
    made = dl.MultiAgentCoordinator.__new__(dl.MultiAgentCoordinator)
    # Without the system behind it, which takes seconds to build and which a repr must not need.
    made.settings, (made.alternative,) = settings(), parse_alternatives("A")
    return made


def simulated_system():
    made = SimulatedSystem.__new__(SimulatedSystem)
    made.settings, made.client_retries, made.corpus = settings(), None, None
    return made


def settings():
    llm = {"api_key": SECRET, "base_url": f"http://somebody:{SECRET}@127.0.0.1:8000/v1"}
    return dl.Settings(agents={"decision_timeout": 7.5}, llm=llm)


def swept_runs():
    """Two budgets under the control, A and B, half of the seeds late under the shorter one."""
    rows = []
    for budget_s in (2.0, 4.0):
        for alternative in ("unguarded", "cooperative", "hard_timeout"):
            for seed in range(6):
                late = budget_s == 2.0 and seed % 2 and alternative != "unguarded"
                ended = {"outcome": "timed_out", "answered_in_time": False, "stop_reason": "deadline"} if late else {}
                ident = {"run_id": f"{alternative}-{budget_s:g}-{seed}", "decision_timeout_s": budget_s}
                rows.append(sample_run(alternative, seed, **(ident | ended)))
    return to_frame("runs", rows)


def doctor_report():
    evidence = (Evidence("run-1", "A waits for <model>", "docmind-lab compare --graph a:b"),)
    remedy = "give the client max_retries=0, and leave retries to one layer alone, which knows of the deadline"
    found = [Problem(f"node_{n}", f"kind_{n}", "<model> is tried again", evidence, remedy, ("A",)) for n in range(12)]
    verdicts = [Verdict(name, "caller only", "<model> works on after the return", 8, 2) for name in "ABCD"]
    return LintReport("a:graph", 20.0, 0.05, (), tuple(found), tuple(verdicts), (), interrupted="4 of 7 alternatives")


def crash_report():
    evidence = "POST /pay of run 1 was received at 0.2 s, and again at 1.4 s after the thread was resumed"
    given = {"order": "17"}
    timeline = tuple(f"{at / 10:.1f} step {at}" for at in range(30))
    trial = Trial("A", 0.4, "001")
    found = Violation("effects", "POST <model> twice", ("A", "kill"), 2, trial, given, evidence, timeline)
    return CrashReport("a:graph", (found,) * 3, (), (), dict.fromkeys(INVARIANTS, 2), 2)


def traces():
    runs = [TracedRun(f"run-{n}", f"session-{n}", "test", 1.0 + n, 1.0 + n, "answered") for n in range(30)]
    return dl.Traces.of(runs, [])


def large_system():
    return dl.graph(async_graph("http://127.0.0.1:9"), [{"question": "a long question, " * 20}] * 40)


def cut_result():
    state = {"log": ["a private page"]}
    return dl.Result("partial", state, stop_reason="deadline", cut_at=("ask",), limit_s=2.0, elapsed_s=2.003)


def shown():
    """Public objects and main results, by name."""
    runs = swept_runs()
    one = runs[runs["decision_timeout_s"] == 2.0]
    pairs = paired_by_seed(one, "A  cooperative", "B  hard timeout")
    return {
        "Agent": dl.agent("my_app:agent", ["a"]),
        "AgentResponse": response(),
        "Agreement": agreement(*runs_of_two_clocks()),
        "AnswerTimes": answer_times(pairs.first),
        "Command": dl.command(["node", "agent.mjs"], "questions.txt"),
        "Comparison": Comparison(),
        "CrashReport": crash_report(),
        "CallCut": dl.CallCut(cut_result()),
        "Deadline": dl.Deadline(100.0, 2.0),
        "DeadlineOnWire": dl.DeadlineOnWire(hosts=("api.internal",)),
        "EnforcedAgent": dl.enforce(async_graph("http://127.0.0.1:9"), 20, "E"),
        "Difference": paired_mean_difference(np.arange(9.0), np.zeros(9)),
        "Budget": dl.Budget(tokens=6000, cost=0.02, price=dl.Price(0.15, 0.60)),
        "DocMind": dl.docmind("papers", "questions.jsonl", retries=0),
        "LintReport": doctor_report(),
        "Graph": dl.graph("my_app:graph", ["a"], context={"user": "ada"}),
        "Hops": dl.hops(adoption=0.5),
        "Interval": share_interval(38, 40),
        "Limits": dl.Limits(first_token_s=8, by_role={"judge": dl.Limits(total_s=5)}),
        "LatencyProfile": dl.LatencyProfile.named("heavy_tail/3"),
        "Live": dl.Live(record="monday", max_requests=60),
        "MultiAgentCoordinator": coordinator(),
        "OtherSystem": dl.workload(kind="mine:KIND"),
        "Peers": dl.peers(),
        "QuantileTable": dl.LatencyProfile.named("fast").first_token_s,
        "Partial": cut_result().partial,
        "Price": dl.Price(0.15, 0.60),
        "Recommendation": findings.recommend(runs),
        "Repair": cut_result().repair(),
        "Replay": dl.Replay("monday"),
        "Research": dl.research(),
        "Result": cut_result(),
        "Scorecard": findings.scorecard(one),
        "ScriptedModel": dl.ScriptedModel(0.2),
        "Settings": settings(),
        "SimulatedSystem": simulated_system(),
        "Staged": dl.staged(),
        "Study": sample_study(),
        "StudyDesign": dl.StudyDesign.of({"factors": {"alternative": "A,B:naive", "decision_timeout_s": [5, 10]}}),
        "StudyDiff": diff(sample_study(), sample_study()),
        "System": large_system(),
        "WhatIf": dl.what_if(traces()),
        "World": dl.World(latencies="typical", faults="hang", server="goes-on"),
        "WrapUp": dl.WrapUp(8, tell="nothing"),
        "WrapUpMiddleware": dl.WrapUpMiddleware(dl.WrapUp(8)),
        "deadline": dl.deadline(20),
        "Traces": traces(),
        "TooFewRuns": gated_quantile([1.0, 2.0], 0.95),
    }


SHOWN = shown()
every_object = pytest.mark.parametrize("name", SHOWN)
# Numbers behind other results, which nobody puts on the last line of a cell: a repr is enough for them.
WITHOUT_HTML = {"AnswerTimes"}
# One line of many fields, or an answer of which nothing is cut: a terminal wraps it.
LONG_LINES = {"AgentResponse", "Budget", "Comparison", "DeadlineOnWire", "Difference", "Settings", "SimulatedSystem"}
FOLDED = {"CrashReport", "LintReport", "Study", "WhatIf"}
# What says most, which comes first.
VERDICTS = {
    "CrashReport": "a:graph: 3 findings in 2 trials.",
    "LintReport": "Interrupted, with 4 of 7 alternatives. No alternative keeps the 20 s deadline of a:graph",
    "Recommendation": "Nothing to choose: no arm was shown to reach the target.",
    "Study": "Too few runs to choose among A cooperative, B hard timeout",
    "StudyDiff": "No regression shown.",
    "WhatIf": "No decision timeout up to 30 s is sure to have 95% answered",
}


def test_no_public_class_is_left_out():
    public = [getattr(dl, name) for name in dl.__all__]
    classes = {each.__name__ for each in public if inspect.isclass(each)}
    assert classes <= SHOWN.keys()


@every_object
def test_its_text_is_a_few_lines_that_people_can_read(name):
    assert name in {kind.__name__ for kind in type(SHOWN[name]).__mro__}
    text = repr(SHOWN[name])
    assert text.strip()
    assert len(text.splitlines()) <= MOST_LINES
    if name not in LONG_LINES:
        assert max(map(len, text.splitlines())) <= MOST_COLUMNS
    # What Python itself writes of an object, of an array and of a decimal.
    assert not any(sign in text for sign in (" object at 0x", "array([", "Decimal(", "dtype:"))


@every_object
def test_a_notebook_shows_it_as_well_formed_html_with_no_key_and_no_text_of_a_user(name):
    assert hasattr(SHOWN[name], "_repr_html_") == (name not in WITHOUT_HTML)
    html = "" if name in WITHOUT_HTML else SHOWN[name]._repr_html_()
    assert_well_formed(html)
    # A heading without words is an obstacle for who hears a table.
    assert name != "Study" or "<th></th>" not in html
    for told in (repr(SHOWN[name]), str(SHOWN[name]), html):
        assert not any(private in told for private in (SECRET, "a private page", "a-private-thread"))


@pytest.mark.parametrize("name", VERDICTS)
def test_a_result_says_its_verdict_first_and_folds_what_no_screen_has_room_for(name):
    shown, html = SHOWN[name], SHOWN[name]._repr_html_()
    assert " ".join(repr(shown).split()).startswith(VERDICTS[name])
    top, _, folded = html.partition("<details>")
    assert f"<p><b>{escape(VERDICTS[name])}" in top
    # A browser test measures it in pixels; what is folded is there as well.
    assert sum(map(top.count, ("<tr", "<p>", "<li>"))) <= 24
    assert bool(folded) == (name in FOLDED)
    last = shown._summary().finding().words[-1] if name == "Study" else shown.finding().words[-1]
    assert escape(str(last if isinstance(last, str) else last[-1])) in html


def test_objects_show_the_text_that_was_read() -> None:
    refused = dl.StudyDesign.model_validate({"factors": {"alternative": "nobody"}})
    others = {
        "a table of quantiles": QuantileTable((0.0, 1.0), (1.0, 3.0)),
        "a design that cannot be run": refused,
        "an interval that knows no bound": Interval(6.25, 5.0, math.inf, 0.95, "order statistics", 60),
    }
    named = {name: SHOWN[name] for name in ("AgentResponse", "LatencyProfile", "Settings", "StudyDesign", "Result")}
    texts = {name: repr(each) for name, each in ({**named, "EnforcedAgent": SHOWN["EnforcedAgent"]} | others).items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)
    assert response()._repr_html_().count("__enter__ &amp; __exit__") == 40, "a long answer is whole in a notebook"


def test_looking_at_a_deadline_asks_no_clock():
    class NoClock:
        def now(self):
            raise AssertionError("a clock was asked")

    deadline = dl.Deadline(100.0, 2.0, NoClock())
    assert repr(deadline) == "Deadline(at_s=100.0, limit_s=2.0)"
    assert "100.0" in deadline._repr_html_()


def test_what_lint_and_crash_test_say_is_html_in_a_notebook_which_breaks_no_words():
    lint, crash = doctor_report(), crash_report()
    for shown in (*lint.findings[0].evidence, lint.findings[0], *lint.verdicts, lint, *crash.findings, crash):
        assert_well_formed(shown._repr_html_())
        assert "&lt;model&gt;" in shown._repr_html_()
    assert "(defeats A)" in lint.findings[0]._repr_html_()
    # Two spaces part the columns of a line: "A does not keep 2 of 8 runs late" would say something else.
    assert "<p>A  caller only  " in lint._repr_html_()
    assert ".docmind-lab p{white-space:pre-wrap}" in lint._repr_html_()


def test_a_deadline_of_a_block_says_whether_it_is_in_force():
    limit = dl.deadline(5.0, label="report")
    assert repr(limit) == "deadline: report, 5 s, not in force"
    with limit:
        assert repr(limit) == "deadline: report, 5 s, in force"
