"""Assertions for tests of your own graph: that it keeps its deadline, and that it survives being cut anywhere.

    import docmind_lab as dl
    from docmind_lab.testing import assert_keeps_deadline, assert_survives_cuts

    def test_the_agent_answers_or_stops_in_twenty_seconds():
        assert_keeps_deadline(dl.graph("my_app:graph", ["What does a with statement do?"]), decision_timeout_s=20)

    def test_the_agent_can_be_cut_anywhere():
        assert_survives_cuts(dl.graph("my_app:graph", ["What does a with statement do?"]))

They measure in virtual time, on simulated services: seconds of work, no waiting, no key, the same result every time.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from docmind_lab.core.numbers import require_seconds
from docmind_lab.experiments.crash_test.crash_bench import CrashBench, Subject
from docmind_lab.experiments.crash_test.crash_report import CrashReport, timeline_of
from docmind_lab.experiments.crash_test.crash_run import crash_test, require_usable, volatile_keys
from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Reference, judge
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.trial import observe
from docmind_lab.experiments.doctor import LintReport, doctor
from docmind_lab.experiments.examination import Examined, Trial
from docmind_lab.systems.system_catalogue import Graph

__all__ = ["assert_keeps_deadline", "assert_survives_cuts", "cut_at"]


def assert_keeps_deadline(system: Any, decision_timeout_s: float, **options: Any) -> LintReport:
    """Fail the test unless at least one alternative keeps the deadline on a graph, and no answer was made up.

    Args:
        system: A graph or an agent with its inputs, as `doctor` takes them: dl.graph("my_app:graph", ["…"]).
        decision_timeout_s: Seconds that each run has.
        options: Further arguments of `doctor`, by name: `alternatives="A"` holds the graph to one.

    Returns:
        The lint's report.

    Raises:
        AssertionError: It names, for each alternative, the call that took the time, how late it was, and the remedy.
        ConfigurationError: As `doctor`, which raises further errors.
    """
    # Without its own frame pytest shows the line of the test.
    __tracebackhide__ = True
    report = doctor(system, decision_timeout_s=decision_timeout_s, **options)
    if not report.is_clean:
        raise AssertionError(report.finding(verbose=True).text())
    return report


def assert_survives_cuts(system: Any, **options: Any) -> CrashReport:
    """Fail the test unless every invariant holds wherever a graph is cut.

    Args:
        system: A graph or an agent with its inputs, as `crash_test` takes them.
        options: Further arguments of `crash_test`, by name.

    Returns:
        The report.

    Raises:
        AssertionError: It has each finding, its timeline and a test that repeats it.
        ConfigurationError: As `crash_test`, which raises further errors.
    """
    __tracebackhide__ = True
    report = crash_test(system, **options)
    if not report.holds:
        raise AssertionError(str(report))
    return report


def cut_at(graph: Any, graph_input: Any, alternative: str, at_s: float, **options: Any) -> Observation:
    """Cut one run of a graph at one instant, go on with its thread, and fail the test if an invariant does not hold.

    Args:
        graph: As `crash_test` takes it.
        graph_input: The input of the run.
        alternative: What enforces the deadline, such as "A"; "kill" for a process that is killed.
        at_s: Instant of the deadline or the kill, in virtual seconds from the start of the run.
        options: What `crash_test` gives each run, by the same names: seed, profile, checkpointer, durability,
            deadline_key, context, config, resume, endpoints; and repair.

    Returns:
        What the trial showed.

    Raises:
        AssertionError: It says what does not hold, with the timeline.
        ConfigurationError: As `crash_test`, which raises further errors.
    """
    __tracebackhide__ = True
    require_seconds("at_s", at_s)
    repairs = bool(options.pop("repair", False))
    latencies, endpoints = options.pop("profile", "typical"), options.pop("endpoints", None)
    of_trial = {name: options.pop(name) for name in ("seed", "checkpointer", "durability") if name in options}
    subject = Subject.of(Examined(Graph(graph, [graph_input], **options), latencies, endpoints), **of_trial)
    with contextlib.closing(CrashBench(subject)) as bench:
        trial = Trial(alternative, at_s, subject.inputs[0].id, repairs=repairs)
        undisturbed = observe(bench, trial.undisturbed)
        require_usable(undisturbed)
        control = observe(bench, Trial(alternative, math.inf, trial.question_id, is_control=True))
        observation = observe(bench, trial)
    judgements = judge(observation, Reference(undisturbed, volatile_keys(undisturbed, control)))
    broken = [judgement for judgement in judgements if judgement.status == "broken"]
    if broken:
        lines = [f"{each.what}: {each.evidence}\n  ({INVARIANTS[each.invariant]})" for each in broken]
        raise AssertionError("\n".join([*lines, *timeline_of(observation, broken[0])]))
    if observation.not_judged:
        raise AssertionError(f"the trial cannot be judged: {observation.not_judged}")
    return observation
