"""Problems at the nodes of a graph: the measured runs that show each, the remedy, and the alternatives it defeats."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from docmind_lab.core.text import count_of, join_names, node_in_words
from docmind_lab.experiments.doctor.facts import NodeFacts
from docmind_lab.experiments.doctor.late_runs import Overrun
from docmind_lab.findings.finding import Block, Code, Finding, MakesFinding

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "call": (
        "requests go on past the deadline when nothing hands it to them",
        "have the deadline travel (A, E, :propagate)",
    ),
    "per_read": (
        "a client's timeout bounds one read: a body that comes in pieces outlives it",
        "bound the whole call: asyncio.timeout, or the caps of A and E",
    ),
    "retries": (
        "a failed request leads to others (retries, fallbacks), and a wait before them heeds no deadline",
        "retry in one layer, within what is left; elsewhere max_retries=0",
    ),
    "code": (
        "code outside every call, which a deadline that is handed to calls does not cut",
        "wait with asyncio.sleep in an async node, or for no longer than is left",
    ),
    "blocks_loop": (
        "async in name only: it blocks the event loop, and with it every cancellation",
        "await an async client and asyncio.sleep, or make the node a plain function",
    ),
    "thread": (
        "sync code that an event loop has put into a thread: a cancellation leaves it running",
        "make that code async; if it only waits for requests, have the deadline travel too (C:propagate, E)",
    ),
    "uncancelled": (
        "it goes on after it was cancelled: it catches CancelledError, shields what it awaits, or waits in a finally",
        "let CancelledError through: catch Exception and TimeoutError only, and wait for nothing in a finally",
    ),
    "no_context": (
        "requests in a thread that was started without the node's context, where no deadline reaches them",
        "start it by contextvars.copy_context().run, asyncio.to_thread or langchain_core's ContextThreadPoolExecutor",
    ),
    "key": (
        "the key of the deadline does not reach it",
        "name the key in the state schema of node or agent, and in every Send",
    ),
    "cannot_run": (
        "does not run in this mode",
        "give the node, tool or middleware both a sync and an async form",
    ),
    "graph": (
        "something outside every node goes on past the deadline",
        "measure its run again (--verbose prints the command), then docmind-lab show",
    ),
}
"""Kind → what it means, and the remedy."""


@dataclass(frozen=True, repr=False)
class Evidence(MakesFinding):
    """A measured run. says: its numbers. command: measures the same run again; empty if no command can."""

    run_id: str
    says: str
    command: str = ""

    def finding(self) -> Finding:
        """Return its numbers and its command."""
        return Finding((self.says, *([Code(self.command)] if self.command else [])), dataclasses.asdict(self))


@dataclass(frozen=True, repr=False)
class Problem(MakesFinding):
    """A problem at a node. defeats: the alternatives whose runs it made late; none for a warning."""

    node: str
    kind: str
    what: str
    evidence: tuple[Evidence, ...]
    remedy: str
    defeats: tuple[str, ...] = ()

    def finding(self) -> Finding:
        """Return the problem, the alternatives that it defeats, the runs that show it, and the remedy."""
        return Finding(words_of([self], verbose=True), dataclasses.asdict(self))


def words_of(problems: Sequence[Problem], *, verbose: bool) -> tuple[Block, ...]:
    """Return where problems of one kind are, what they defeat, and the remedy. verbose: with the runs that show it."""
    defeats = list(dict.fromkeys(name for problem in problems for name in problem.defeats))
    what = f"{problems[0].what} (defeats {', '.join(defeats)})" if defeats else problems[0].what
    runs: list[Block] = []
    for evidence in [evidence for problem in problems for evidence in problem.evidence] if verbose else ():
        runs += [f"   {evidence.says}", Code(f"     $ {evidence.command}")]
    return f"{_places(problems, verbose=verbose)}: {what}", *runs, f"   → {problems[0].remedy}"


# Nodes of one problem that are named in short.
_NAMED: Final = 2


def _places(problems: Sequence[Problem], *, verbose: bool) -> str:
    words = {problem.node: node_in_words(problem.node) if problem.node else "the graph" for problem in problems}
    plain = [node for node, name in words.items() if name == f"node {node}"]
    more = 0 if verbose else len(plain) - _NAMED
    names = plain if more <= 0 else [*plain[:_NAMED], count_of(more, "other")]
    nodes = [f"node{'s' if len(plain) > 1 else ''} {join_names(names)}"] if plain else []
    return join_names([*nodes, *(name for node, name in words.items() if node not in plain)])


Symptom = tuple[str, str, Evidence, tuple[str, ...]]
"""A node, the kind of its problem, a run that shows it, and the alternatives that it defeats."""


def problems_of(symptoms: Iterable[Symptom]) -> tuple[Problem, ...]:
    """Return a problem for each kind at each node with all its evidence, those that defeat most alternatives first."""
    groups: dict[tuple[str, str], list[Symptom]] = {}
    for each in symptoms:
        groups.setdefault(each[:2], []).append(each)
    made = []
    for (node, kind), group in groups.items():
        what, remedy = KINDS[kind]
        defeats = tuple(dict.fromkeys(name for *_, names in group for name in names))
        made.append(Problem(node, kind, what, tuple(evidence for _, _, evidence, _ in group), remedy, defeats))
    return tuple(sorted(made, key=lambda problem: -len(problem.defeats)))


def symptoms_of_overruns(overruns: Mapping[Overrun, str]) -> Iterator[Symptom]:
    """Yield the worst overrun of each alternative. overruns: each with its command."""
    worst: dict[tuple[str, str, str], Overrun] = {}
    for overrun in overruns:
        key = overrun.node, overrun.cause, overrun.trial.alternative
        if key not in worst or overrun.worst_s > worst[key].worst_s:
            worst[key] = overrun
    for (node, cause, alternative), overrun in worst.items():
        yield node, cause, Evidence(overrun.run_id, lateness_of(overrun), overruns[overrun]), (alternative,)


def lateness_of(overrun: Overrun) -> str:
    """Say in words how late the run of an overrun was, and under which conditions."""
    waited = "at least " if overrun.is_unfinished else ""
    caller = f"the caller waited {waited}{overrun.caller_s:.3f} s past the deadline"
    if overrun.caller_s <= 0:
        caller = "the caller was back by the deadline"
    work = f"work went on for {'at least ' if overrun.is_censored else ''}{overrun.work_s:.3f} s past it"
    lateness = caller if overrun.caller_s >= overrun.work_s else f"{caller}, {work}"
    trial = overrun.trial
    fault = f", fault {trial.fault}" if trial.fault != "none" else ""
    return f"{trial.called}, {trial.decision_timeout_s:.3f} s{fault}: {lateness}: {overrun.what_ate_it()}"


def symptoms_of_facts(facts: NodeFacts, decision_timeout_s: float) -> Iterator[Symptom]:
    """Yield what the facts of a node warn of: from its undisturbed runs, and those with a single fault."""
    node, worst, retries, trickled = facts.node, facts.worst_case, facts.retries, facts.trickled
    if worst is not None and worst.took_s > decision_timeout_s:
        yield node, "call", Evidence(worst.run_id, f"a service that never answers: {worst}", worst.command), ()
    if retries is not None and (retries.failing > retries.well or retries.of_one_call > 1):
        says = f"{retries.failing} requests in one visit when each fails at once, {retries.well} when all goes well"
        if retries.of_one_call > 1:
            says += f"; the client alone makes {retries.of_one_call} of one call"
        if worst is not None and not math.isinf(worst.took_s):
            says += f"; never answered, {worst}"
        yield node, "retries", Evidence(retries.run_id, says, retries.command), ()
    if trickled is not None:
        says = f"{trickled.call_id}: a timeout of {trickled.timeout_s:g} s, and {trickled.took_s:,.1f} s of body"
        yield node, "per_read", Evidence(trickled.run_id, says, trickled.command), ()
