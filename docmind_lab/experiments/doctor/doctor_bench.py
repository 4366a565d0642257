"""Measured runs of a user's graph, one at a time, each with an alternative, a budget and a fault."""

from __future__ import annotations

import dataclasses
import os
import shlex
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError

from docmind_lab.alternatives.async_form import in_async_form
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import NotSimulated, SimulationStalled
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.examination import Bench, Examined, Trial
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.endpoint_shape import Unanswered
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.own import OwnWorkload, graph_named
from docmind_lab.systems.own.references import AGENT_PREFIX
from docmind_lab.systems.own.unsimulated import REMEDY, RUNS_FOR_REAL

_CANNOT_BE_JUDGED = "cannot be judged in virtual time"
_VIRTUAL_ONLY = "the deadline lint runs in virtual time only; measure this graph with docmind-lab compare --clock wall"


class TrialBench(Bench):
    """A user's graph with its inputs and its settings. seed: keys every draw.

    Raises: ConfigurationError if the graph or its inputs cannot be used.
    """

    def __init__(self, examined: Examined, seed: int) -> None:
        own = examined.names
        super().__init__(own.workload, own.corpus, profile=examined.latencies, seed=seed)
        self._examined, self._inputs = examined, own.questions
        # The lint says which answers were made up, and goes on.
        self._runs_of = cast(OwnWorkload, self.system.workload)
        self._runs_of.goes_on_made_up = True
        self.graph = graph_named(own.workload)

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that the graph is asked."""
        return tuple(question for _, question in self._comparison(Trial("unguarded", 1.0, "")).questions())

    def measure(self, trial: Trial, *, seen_by: Any = None) -> MeasuredRun:
        """Measure the trial. seen_by: wraps its alternative in an observing one.

        Raises: NotSimulated for a graph that leaves virtual time, saying by what and in which node.
        """
        comparison = self._comparison(trial)
        (order,) = [one for one in comparison.orders() if one.question.id == trial.question_id]
        if trial.awaited:
            order = dataclasses.replace(order, alternative=in_async_form(order.alternative))
        if seen_by is not None:
            order = dataclasses.replace(order, alternative=seen_by(order.alternative))
        try:
            return self.system.measure(order, self.services(trial))
        except NotSimulated as error:
            # What the lab cannot answer needs services of the user's own; a program only needs real time.
            own = " --services own" if str(error).endswith(REMEDY) else ""
            what = str(error).removesuffix(REMEDY).removesuffix(RUNS_FOR_REAL).removesuffix("; ")
            raise NotSimulated(f"{_CANNOT_BE_JUDGED}: {what}; {_VIRTUAL_ONLY}{own}") from error
        except SimulationStalled as error:
            raise NotSimulated(f"{_CANNOT_BE_JUDGED}: {error}\n{_VIRTUAL_ONLY}") from error

    @property
    def unanswered(self) -> tuple[Unanswered, ...]:
        """Requests of all runs so far that no simulated service answers, and that got made-up answers."""
        return tuple(self._runs_of.unanswered)

    def command(self, trial: Trial) -> str:
        """Return the command that measures the same run again, with placeholders for what is in memory."""
        words = ["docmind-lab", "compare", *_words_of(self._examined)]
        words += ["--alternatives", trial.alternative, "--decision-timeout", repr(trial.decision_timeout_s)]
        words += ["--runs", str(self._inputs), "--seed", str(self.seed), "--latencies", self._examined.latencies]
        for fault in trial.faults:
            words += ["--faults", fault]
        key = self._examined.graph.deadline_key
        words += ["--deadline-key", key] if key != DEADLINE_KEY else []
        return shlex.join(words)

    def _comparison(self, trial: Trial) -> Comparison:
        return Comparison(
            decision_timeout_s=trial.decision_timeout_s,
            runs=self._inputs,
            seed=self.seed,
            alternatives=self.parse(trial.alternative),
            profile=self.profile,
            faults=self.faults(trial),
            workload=self.workload,
            documents=Documents(self.corpus),
            # As `compare` has it for such a graph, so that its command gives the same run, by the same id.
            side_by_side=1,
        )


def _words_of(examined: Examined) -> list[str]:
    """Return the options that name a graph, its inputs and what its runs are given besides."""
    graph, inputs = examined.graph, examined.graph.inputs
    reference = graph.graph if isinstance(graph.graph, str) else "module:attribute"
    option = "--agent" if reference.startswith(AGENT_PREFIX) else "--graph"
    file = os.fspath(inputs) if isinstance(inputs, str | os.PathLike) else "inputs.jsonl"
    words = [option, reference.removeprefix(AGENT_PREFIX), "--inputs", file]
    for name in ("context", "config"):
        if given := getattr(graph, name):
            words += [f"--{name}", _as_json(given)]
    if graph.store is not None:
        words += ["--store", graph.store if isinstance(graph.store, str) else "module:attribute"]
    for answer in graph.resume or ():
        words += ["--resume", _as_json(answer)]
    if examined.endpoints is not None:
        words += ["--endpoints", os.fspath(examined.endpoints)]
    return words


def _as_json(value: Any) -> str:
    try:
        return TypeAdapter(type(value)).dump_json(value).decode()
    except PydanticSchemaGenerationError:
        return type(value).__name__
