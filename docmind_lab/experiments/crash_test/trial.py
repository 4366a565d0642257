"""One trial: run the graph, cut it or kill it, wait until all is at rest, go on with its thread, and say what happened.

The whole of a trial is one world in virtual time. A kill ends the first run of its clock at the instant, with whatever
was under way, and a second run of the same clock goes on from what reached the stores.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Any, Final, cast
from unittest.mock import patch

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from docmind_lab.alternatives.base import Outcome
from docmind_lab.alternatives.bound import copy_with
from docmind_lab.alternatives.enforcement.repaired_threads import arepair, repair
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import NotSimulated, SimulationError, SimulationStalled
from docmind_lab.core.sync_async import in_daemon_thread
from docmind_lab.experiments.crash_test.checkpointers import OpenedSaver, SavedThread, read_thread
from docmind_lab.experiments.crash_test.crash_bench import DURABILITY_KEY, CrashBench, saver_maker
from docmind_lab.experiments.crash_test.held_locks import held_locks
from docmind_lab.experiments.crash_test.observation import (
    ASKED,
    FIRST,
    RESUMED,
    WRITE_S,
    Edge,
    Ending,
    Journal,
    Leftover,
    Mark,
    Observation,
    Saved,
    answer_in,
    comparable,
)
from docmind_lab.experiments.crash_test.probes import ProbeSaver, StepCallbacks, temporary_files
from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.measurement.simulation import fixed_randomness
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.openai_parameters import plain_parameters
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.network.snapshots import Snapshot
from docmind_lab.services.endpoints import EndpointTable
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.virtual_door import PORT
from docmind_lab.systems.own import GraphInput, OwnWorkload
from docmind_lab.systems.own.own_requests import SimulatedDestinations
from docmind_lab.systems.own.references import AnyGraph, one_line
from docmind_lab.systems.own.unsimulated import REMEDY as RUN_REMEDY
from docmind_lab.virtual_time import VirtualClock
from docmind_lab.virtual_time.virtual_clock import REMEDY as CLOCK_REMEDY

LONG_S: Final = 3600.0
"""Virtual seconds that a run has that is not cut, and the resumption of one that was."""
SETTLE_S: Final = 30.0
"""Virtual seconds for which a run is watched after its caller was told."""
_LATER_S: Final = 1000.0
# What goes on in the trial beside the two runs and the question: reading the thread, unwinding.
_SPARE_S: Final = 600.0
_STALL_AFTER_S: Final = 10.0
# Characters of an error.
_LONGEST: Final = 300
_REMEDY: Final = (
    "it cannot be judged in virtual time; if a checkpointer does it, open that one in a function with a parameter "
    "(--checkpointer), and it is reached in real time"
)

# LangGraph says so of a thread that has a checkpoint without the run's input: whoever resumes it gives that again.
_NOTHING_SAVED: Final = "EmptyInputError"

_CALLER: Final = "docmind-crash-caller"
_HERE: Final = f"{os.getcwd()}{os.sep}"

NEXT_MESSAGE: Final = "Thank you. What else should I know?"
"""What the user says next, in a thread whose run was cut."""


def observe(bench: CrashBench, trial: Trial) -> Observation:
    """Carry out a trial, and return what it showed.

    Raises:
        NotSimulated: The graph leaves virtual time; it says what for.
        ConfigurationError: The checkpointer cannot be used.
    """
    return _TrialRun(bench, trial).run()


class _TrialRun:
    """Carries out one trial. bench: makes the graph and its services."""

    def __init__(self, bench: CrashBench, trial: Trial) -> None:
        self.bench, self.trial = bench, trial
        self.question: GraphInput = bench.questions[trial.question_id]
        self.clock = VirtualClock(
            horizon_s=3 * (LONG_S + SETTLE_S) + _SPARE_S + _LATER_S,
            stall_after_s=_STALL_AFTER_S,
        )
        self.journal = Journal(self.clock, trial.decision_timeout_s if trial.is_kill else math.inf)
        door = bench.door(trial, self.journal)
        self.clock.on_entry = (lambda _: fixed_randomness(bench.seed), lambda _: plain_parameters(), door.open)
        self.clock.on_wait = self._note_wait
        self.graph: AnyGraph
        self.thread_id = f"crash-{trial.question_id}-{trial.alternative}"
        self._files: Callable[[], list[str]] = list
        self._opened = OpenedSaver(saver_maker(bench.subject))
        self._recorders: dict[str, Recorder] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._asks: Any = None
        self._missing: NotSimulated | None = None

    def run(self) -> Observation:
        """Carry the trial out. Raises: as `observe`."""
        with temporary_files() as self._files, _no_words_of_the_dead():
            try:
                # Made in virtual time, so that the locks of a graph that is made anew wait there.
                self.graph = VirtualClock(stall_after_s=60.0).run(self.bench.graph, self.journal)
                held = set(held_locks(self.graph))
                if self.trial.is_kill and self.trial.is_cut:
                    return self._killed(held)
                return self.clock.run(self._cut, held)
            except NotSimulated as error:
                text = str(error).removesuffix(CLOCK_REMEDY).removesuffix(RUN_REMEDY)  # a crash test has no wall clock
                raise NotSimulated(f"{text}{_REMEDY}") from error
            except SimulationStalled:
                raise
            except SimulationError as error:
                return Observation(self.trial, not_judged=str(error).partition("\n")[0])
            finally:
                with contextlib.suppress(Exception):  # there is no graph, or its checkpointer deletes nothing
                    self._probe.delete_thread(self.thread_id)
                self._opened.remove()

    # ---- the parts

    def _cut(self, held_before: set[str]) -> Observation:
        self._opened.open(self._probe)
        first = self._first()
        leftovers = self._leftovers(held_before)
        return self._go_on(first, leftovers)

    def _killed(self, held_before: set[str]) -> Observation:
        full_s, self.clock.horizon_s = self.clock.horizon_s, self.trial.decision_timeout_s
        try:
            ended = self.clock.run(self._until_killed, self.trial.decision_timeout_s)
        except SimulationError:
            if self.clock.now() < self.trial.decision_timeout_s:
                raise
            ended = None
        self._release_locks(held_before)  # a new process has its own
        self.journal.dead_from_s, self.clock.horizon_s = math.inf, full_s
        first = ended or Ending("killed", told_at_s=self.trial.decision_timeout_s)

        def go_on() -> Observation:
            self._opened.open_again(self._probe)
            return self._go_on(first, ())

        return self.clock.run(go_on)

    def _until_killed(self, at_s: float) -> Ending | None:
        """Run until the instant of the kill; return the ending of a run that was over before."""
        self._opened.open(self._probe)
        ended = self._ended(FIRST, self._inputs(), LONG_S, max(0.0, at_s - self.clock.now()))
        if ended is not None:
            self.clock.sleep(max(0.0, at_s - self.clock.now()))
        self._take_snapshot(FIRST)
        return ended

    def _first(self) -> Ending:
        if self.trial.is_control:
            self.clock.sleep(_LATER_S)
        limit_s = self.trial.decision_timeout_s if self.trial.is_cut else LONG_S
        return self._run(FIRST, self._inputs(), limit_s)

    def _go_on(self, first: Ending, leftovers: tuple[Leftover, ...]) -> Observation:
        """Resume the thread, ask on in a copy of it, and put everything together; of a trial that repairs, mended."""
        if self._missing is not None:
            raise self._missing
        thread, saved = self._read()
        if self.trial.repairs and thread is not None and not saved.interrupts:
            self._repair(self.graph, self.thread_id)
            thread, _ = self._read()
        resumed = completed = None
        if not saved.error and first.outcome != "answered" and not saved.interrupts:
            # Also where no node is said to be next: writes that are not in a checkpoint yet may lead to one.
            resumed = self._run(RESUMED, None if saved.is_there else self._inputs(), LONG_S)
            if resumed.error.startswith(_NOTHING_SAVED):
                resumed = self._run(RESUMED, self._inputs(), LONG_S)
        if resumed is not None:
            completed = self._read()[1]
            # Also by an agent within a node, whose messages are none of the thread.
            completed = replace(completed, calls_cut=(*completed.calls_cut, *self.journal.calls_cut))
        asked = self._asked(thread)
        self._opened.close(self.thread_id)
        # What unwinds after a kill is nothing that the process did.
        end_s = self.trial.decision_timeout_s if self.trial.is_kill else math.inf
        seen = [mark for mark in (*self.journal.marks, *self._marks()) if mark.part != FIRST or mark.at_s < end_s]
        marks = sorted(seen, key=lambda mark: (mark.at_s, mark.kind, mark.what))
        return Observation(
            self.trial,
            first,
            saved,
            resumed,
            completed,
            asked,
            tuple(marks),
            tuple(self.journal.effects),
            tuple(self.journal.refusals),
            frozenset(self.journal.conversed),
            leftovers,
            promise=self.bench.promise(self.trial),
        )

    def _repair(self, graph: AnyGraph, thread_id: str, *, drops_interrupts: bool = False) -> None:
        """Mend a thread, by a process that goes on with it."""
        self.journal.part = RESUMED
        config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        if self.bench.kind.async_only:
            shared_loop().run(arepair(graph, config, drops_interrupts=drops_interrupts))
        else:
            repair(graph, config, drops_interrupts=drops_interrupts)

    @property
    def _probe(self) -> ProbeSaver:
        return cast(ProbeSaver, self.graph.checkpointer)

    def _read(self) -> tuple[SavedThread | None, Saved]:
        return read_thread(self.graph, self.thread_id, async_only=self.bench.kind.async_only)

    def _asked(self, thread: SavedThread | None) -> Ending | None:
        """Return how the user's next message ends; of trials that leave the same thread, the first one asks."""
        if thread is None or "messages" not in self.graph.channels:
            return None
        node_mode = self.bench.alternative(self.trial).node_mode
        key = (self.trial.question_id, node_mode, self.trial.repairs, thread.content)
        if key not in self.bench.asked:
            ending = self._ask(thread)
            words = tuple(words for part, words in self.journal.refusals if part == ASKED)
            self.bench.asked[key] = ending, words
        ending, words = self.bench.asked[key]
        self.journal.refusals = [each for each in self.journal.refusals if each[0] != ASKED]
        self.journal.refusals += [(ASKED, each) for each in words]
        return ending

    def _ask(self, thread: SavedThread) -> Ending:
        """Send the user's next message to a copy of the thread as the cut run had left it."""
        self._asks = copy_with(type(self.graph), self.graph, checkpointer=thread.copied(ASKED))
        if self.trial.repairs:
            # Who goes on without an answer to what the thread waits for drops that.
            self._repair(self._asks, ASKED, drops_interrupts=True)
        inputs = {**self._inputs(), "messages": [HumanMessage(NEXT_MESSAGE, id="next")]}
        return self._run(ASKED, inputs, LONG_S)

    def _inputs(self) -> dict[str, Any]:
        # A copy: a node may change in place what it is given.
        return copy.deepcopy(dict(self.question.given))

    # ---- one run of the graph

    def _run(self, part: str, inputs: Any, limit_s: float) -> Ending:
        within_s = limit_s + LONG_S if self.trial.is_cut else LONG_S + SETTLE_S
        ending = self._ended(part, inputs, limit_s, within_s) or Ending("no end")
        # What begins late in a thread of nobody's is seen too, so the whole time is waited for.
        self.clock.sleep(SETTLE_S)
        self._take_snapshot(part)
        return ending

    def _ended(self, part: str, inputs: Any, limit_s: float, within_s: float) -> Ending | None:
        """Run the graph with a limit, and return how that ended; None if it had not within so many seconds."""
        self.journal.part = part
        graph = self.graph if part != ASKED else self._asks
        deadline = Deadline.after(limit_s, self.clock)
        recorder = Recorder(f"{self.thread_id}-{part}", self.bench.seed, deadline, self.clock)
        self._recorders[part] = recorder
        thread_id = ASKED if part == ASKED else self.thread_id
        alternative = self.bench.alternative(self.trial)

        def call() -> tuple[Outcome, float | None]:
            try:
                with recording(recorder), recorder.work("caller"):
                    workload = self._workload(graph)
                    made = workload.runnable(recorder, self._question(part))
                    configurable: Any = {DURABILITY_KEY: self.bench.subject.durability, "thread_id": thread_id}
                    config: Any = {"configurable": configurable, "callbacks": [StepCallbacks(self.journal)]}
                    runnable = made.with_config(config)
                    outcome = alternative.run(runnable, inputs, deadline, recorder)
                    told_at_s = recorder.mark_returned()
                    workload.require_answered()
                return outcome, told_at_s
            except BaseException as error:  # noqa: BLE001 - a run ends in a typed outcome, whatever it raised
                if isinstance(error, NotSimulated):
                    self._missing = self._missing or error
                return Outcome("failed", error_type=type(error).__name__, error=error), None

        with contextlib.suppress(FutureTimeoutError):
            return _ending(*in_daemon_thread(call, _CALLER).result(timeout=within_s))
        return None

    def _question(self, part: str) -> GraphInput:
        """Return the input of a part; a resumption has the answers that the cut run was not given."""
        events = self._recorders[FIRST].snapshot().events if part == RESUMED else ()
        left = [int(each.detail["left"]) for each in events if each.event == "interrupt_answered"]
        answers = self.question.settings.resume
        answers = answers[len(answers) - left[-1] :] if left else answers
        return replace(self.question, settings=replace(self.question.settings, resume=answers))

    def _workload(self, graph: AnyGraph) -> OwnWorkload:
        subject = self.bench.subject
        simulated = SimulatedDestinations.at(ServiceAddresses.at_port(PORT), EndpointTable(self.bench.kind.endpoints))
        return OwnWorkload("crash-test", graph, simulated, subject.deadline_key)

    # ---- what remains

    def _leftovers(self, held_before: set[str]) -> tuple[Leftover, ...]:
        leftovers = [
            Leftover(each.kind, each.name.removeprefix(_HERE), each.where.removeprefix(_HERE))
            for each in self.clock.left_at_work()
            if each.thread != _CALLER
        ]
        # Or the resumption would wait for them in real time.
        leftovers += [Leftover("lock", name) for name in self._release_locks(held_before)]
        # Without what is random in their names.
        names = (f"{name[:3]}…{name[-4:] if '.' in name[-5:] else ''}" for name in self._files())
        leftovers += [Leftover("temporary file", name) for name in sorted(names)]
        recorder = self._recorders[FIRST]
        for attempt in recorder.snapshot().attempts:
            if attempt.outcome == "open" and _is_request(attempt):
                leftovers.append(Leftover("open request", attempt.call.role or attempt.call.kind))
        return tuple(leftovers)

    def _release_locks(self, held_before: set[str]) -> list[str]:
        """Release the locks that the run left behind, and return their names."""
        left = {name: lock for name, lock in held_locks(self.graph).items() if name not in held_before}
        for lock in left.values():
            with contextlib.suppress(Exception):
                lock.release()
        return list(left)

    # ---- marks

    def _note_wait(self, name: str, waits_for: str, begun_at_s: float) -> None:
        # Those of the trial itself: its first thread, and the writes that the probes let take their time.
        is_own = name == "main" or math.isclose(self.clock.now() - begun_at_s, WRITE_S / 2, abs_tol=1e-9)
        if not is_own and self.clock.now() - begun_at_s < SETTLE_S:
            self.journal.mark("wait", waits_for, "begins", at_s=begun_at_s)
            self.journal.mark("wait", waits_for, "ends")

    def _take_snapshot(self, part: str) -> None:
        self._snapshots[part] = self._recorders[part].snapshot()

    def _marks(self) -> Iterator[Mark]:
        """Yield marks of the nodes and the requests that the recorders have seen."""
        for part, snapshot in self._snapshots.items():
            for event in snapshot.events:
                if event.event in ("node_started", "node_ended"):
                    edge: Edge = "begins" if event.event == "node_started" else "ends"
                    yield Mark(event.at, "node", str(event.detail.get("node", event.role)), edge, part)
            for attempt in snapshot.attempts:
                if attempt.outcome == "refused" or not _is_request(attempt):
                    continue
                what = f"{attempt.call.kind} of {attempt.call.role or 'the graph'}"
                yield Mark(attempt.started_at, "request", what, "begins", part)
                if attempt.first_byte_at is not None:
                    yield Mark(attempt.first_byte_at, "first byte", what, "", part)
                if attempt.ended_at is not None:
                    yield Mark(attempt.ended_at, "request", what, "ends", part)


@contextlib.contextmanager
def _no_words_of_the_dead() -> Iterator[None]:
    """Say nothing of threads that the cut ended, nor of coroutines and files that a killed process left half done."""

    def say_nothing(details: object) -> None:
        pass

    with (
        patch.object(threading, "excepthook", say_nothing),
        patch.object(sys, "unraisablehook", say_nothing),
        warnings.catch_warnings(),
    ):
        for category in (RuntimeWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        yield


def _is_request(attempt: Attempt) -> bool:
    """Return whether an attempt is a request. A tool has one too that spans it, and sends nothing itself."""
    return attempt.call.kind != "tool" or bool(attempt.sent_at)


def _ending(outcome: Outcome, told_at_s: float | None) -> Ending:
    error = outcome.error_type if outcome.error is None else one_line(outcome.error)[:_LONGEST]
    return Ending(outcome.outcome, error, answer_in(comparable(outcome.state)) if outcome.state else "", told_at_s)
