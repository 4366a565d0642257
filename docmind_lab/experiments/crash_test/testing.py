"""Assertions for a user's tests: a graph survives being cut everywhere, or at one instant.

from docmind_lab.testing import assert_survives_cuts

def test_the_agent_can_be_cut_anywhere():
    assert_survives_cuts("my_app:graph", ["What does a with statement do?"])
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.core.deadlines import DEADLINE_KEY, require_seconds
from docmind_lab.experiments.crash_test.bench import CrashBench, SaverMaker
from docmind_lab.experiments.crash_test.findings import timeline_of
from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Reference, Verdict, judge
from docmind_lab.experiments.crash_test.observation import Observation, Trial
from docmind_lab.experiments.crash_test.report import CrashReport, lines_of
from docmind_lab.experiments.crash_test.run import crash_test, require_usable, subject_of, volatile_keys
from docmind_lab.workloads.own import Inputs


def assert_survives_cuts(graph: Any, inputs: Inputs, **options: Any) -> CrashReport:
    """Fail the test unless every invariant holds wherever a graph is cut.

    Args:
        graph: As `crash_test` takes it.
        inputs: As `crash_test` takes them.
        options: Further arguments of `crash_test`, by name.

    Returns:
        The report.

    Raises: AssertionError with each finding, its timeline and a test that repeats it; and what `crash_test` raises.
    """
    # Without its own frame pytest shows the line of the test.
    __tracebackhide__ = True
    report = crash_test(graph, inputs, **options)
    if not report.holds:
        raise AssertionError("\n".join(lines_of(report)))
    return report


def cut_at(
    graph: Any,
    given: Any,
    alternative: str,
    at_s: float,
    *,
    seed: int = 7,
    schedule: int | None = None,
    checkpointer: str | SaverMaker | None = None,
    durability: str = "async",
    deadline_key: str = DEADLINE_KEY,
    context: Any = None,
    config: Mapping[str, Any] | None = None,
    resume: Sequence[Any] = (),
    endpoints: str | os.PathLike[str] | None = None,
    profile: str = "typical",
) -> Observation:
    """Cut one run of a graph at one instant, go on with its thread, and fail the test if an invariant does not hold.

    Args:
        graph: As `crash_test` takes it.
        given: The input of the run.
        alternative: What enforces the deadline, such as "A"; "kill" for a process that is killed.
        at_s: Instant of the deadline or the kill, in virtual seconds from the start of the run.
        seed: Keys every draw.
        schedule: Draws another order of threads and tasks; None for first come, first served.
        checkpointer: As `crash_test` takes it.
        durability: As `crash_test` takes it.
        deadline_key: As `crash_test` takes it.
        context: As `crash_test` takes it.
        config: As `crash_test` takes it.
        resume: As `crash_test` takes it.
        endpoints: As `crash_test` takes them.
        profile: As `crash_test` takes it.

    Returns:
        What the trial showed.

    Raises: AssertionError with what does not hold and the timeline; and what `crash_test` raises.
    """
    __tracebackhide__ = True
    require_seconds("at_s", at_s)
    subject = subject_of(
        graph,
        [given],
        checkpointer=checkpointer,
        durability=durability,
        deadline_key=deadline_key,
        context=context,
        config=config,
        resume=resume,
        endpoints=endpoints,
        profile=profile,
        seed=seed,
    )
    with CrashBench(subject).closing() as bench:
        trial = Trial(subject.inputs[0].id, alternative, at_s, schedule)
        undisturbed = bench.observe(Trial(trial.input_id, alternative, None, schedule))
        require_usable(undisturbed)
        control = bench.observe(Trial(trial.input_id, alternative, None, None, is_control=True))
        observation = bench.observe(trial)
    verdicts = judge(observation, Reference(undisturbed, volatile_keys(undisturbed, control)))
    broken = [verdict for verdict in verdicts if verdict.status == "broken"]
    if broken:
        raise AssertionError("\n".join(_lines(observation, broken)))
    if observation.not_judged:
        raise AssertionError(f"the trial cannot be judged: {observation.not_judged}")
    return observation


def _lines(observation: Observation, broken: Sequence[Verdict]) -> list[str]:
    lines = []
    for verdict in broken:
        lines += [f"{verdict.what}: {verdict.evidence}", f"  ({INVARIANTS[verdict.invariant]})"]
    return [*lines, *timeline_of(observation, broken[0])]
