"""A user's graph with its probes on simulated services, for one trial after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.bound import copy_with
from docmind_lab.core.alternative_catalogue import CATALOGUE, level_and_variant
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.experiments.crash_test.observation import Ending, Journal, Promise
from docmind_lab.experiments.crash_test.probes import ProbedEndpoints, ProbedModel, ProbeSaver, ProbeStore
from docmind_lab.experiments.examination import Bench, Examined, Trial
from docmind_lab.services.plan import Chunk, Headers
from docmind_lab.services.scripted_model import Conversation, Reply, reply_to
from docmind_lab.services.virtual_door import VirtualDoor
from docmind_lab.systems.base.workload_kind import OWN_PREFIX
from docmind_lab.systems.own import GraphInput, graph_named, load_graph
from docmind_lab.systems.own.inputs import inputs_named
from docmind_lab.systems.own.making import simulated_while_made
from docmind_lab.systems.own.references import AGENT_PREFIX, AnyGraph, compile_graph, is_maker, load_object
from docmind_lab.systems.own.run_settings import store_for_run

DURABILITIES: Final = ("sync", "async", "exit")
DURABILITY_KEY: Final = "__pregel_durability"

SaverMaker = Callable[..., Any]
"""Makes a checkpointer; with a parameter, in the folder that it is given. It may be async."""

# Makers of live objects, by the name of the workload: only this process has them.
_live_makers: dict[str, Any] = {}


@dataclass(frozen=True)
class Subject:
    """The graph under test and what its runs are given: everything that a worker process needs.

    workload, corpus: names of the graph and its inputs, as `own_graph` gives them. durability: when LangGraph writes
    checkpoints: "sync", "async" or "exit". checkpointer: a reference to a function that makes the checkpointer of one
    trial; empty for the graph's own.
    """

    workload: str
    corpus: str
    inputs: tuple[GraphInput, ...]
    profile: str = "typical"
    seed: int = 7
    deadline_key: str = DEADLINE_KEY
    durability: str = "async"
    checkpointer: str = ""

    @classmethod
    def of(
        cls,
        examined: Examined,
        seed: int = 7,
        *,
        checkpointer: str | SaverMaker | None = None,
        durability: str = "async",
    ) -> Subject:
        """Check a graph and what its runs are given, as `crash_test` takes them.

        Raises: ConfigurationError for a value that cannot be used.
        """
        graph = examined.graph
        if graph.store is not None:
            raise ConfigurationError("store: a crash test watches the graph's own store; leave store out")
        if durability not in DURABILITIES:
            raise ConfigurationError(f"durability must be one of {', '.join(DURABILITIES)}, not {durability!r}")
        own, reference = examined.names, checkpointer if isinstance(checkpointer, str) else ""
        _register_makers(own.workload, graph.graph, checkpointer)
        return cls(
            own.workload,
            own.corpus,
            inputs_named(own.corpus),
            examined.latencies,
            seed,
            graph.deadline_key,
            durability,
            reference,
        )


def _register_makers(workload: str, graph: Any, checkpointer: Any) -> None:
    """Remember live functions that make the graph or its checkpointer anew for each trial."""
    makes_graph = callable(graph) and not isinstance(graph, StateGraph | Pregel)
    for name, maker in (("graph", graph if makes_graph else None), ("checkpointer", checkpointer)):
        _live_makers.pop(f"{name} {workload}", None)  # that of an earlier crash test
        if callable(maker):
            _live_makers[f"{name} {workload}"] = maker


def saver_maker(subject: Subject) -> SaverMaker | None:
    """Return the user's function that makes a checkpointer; None without one. Raises: ConfigurationError."""
    live = _live_makers.get(f"checkpointer {subject.workload}")
    if live is None and subject.checkpointer:
        return load_object(subject.checkpointer, "checkpointer")  # type: ignore[no-any-return]
    return live


def reply_by_content(conversation: Conversation) -> Reply:
    """Return the scripted model's reply, drawn by what was said and not by who asks when.

    So a resumed conversation gets the replies of an undisturbed one.
    """
    text = repr([(message.get("role"), message.get("content")) for message in conversation.messages])
    return reply_to(dataclasses.replace(conversation, key=DrawKey(0, text, "0")))


class CrashBench(Bench):
    """One graph and its services, made for each trial anew, in a world of its own in virtual time."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.workload, subject.corpus, profile=subject.profile, seed=subject.seed)
        self.subject = subject
        self.questions = {one.id: one for one in subject.inputs}
        self._known: dict[tuple[object, ...], Any] = {}
        # What the user's next message came to, by the thread that it was sent to.
        self.asked: dict[tuple[object, ...], tuple[Ending, tuple[str, ...]]] = {}

    def alternative(self, trial: Trial) -> Alternative:
        """Return the alternative of a trial; nobody limits a run whose process is killed."""
        return self.parse("unguarded" if trial.is_kill else trial.alternative)[0]

    def promise(self, trial: Trial) -> Promise:
        """Return what the alternative of a trial promises once the caller was told.

        A control promises nothing, and B lets the work go on. What cancels cannot cancel the code of a sync node, which
        it runs in a thread: there it promises only that no further node begins.
        """
        if trial.is_kill:
            return "none"
        level, _ = level_and_variant(trial.alternative)
        if CATALOGUE[level].is_control or level == "hard_timeout":
            return "none"
        is_of_loop = parse_alternatives(trial.alternative)[0].node_mode == "async"
        return "steps" if is_of_loop and not self.kind.async_only else "quiet"

    def door(self, trial: Trial, journal: Journal) -> VirtualDoor:
        """Return the simulated services of a trial, watched."""
        options = self.services(trial)
        door = self.system.door(options)
        model: Any = dataclasses.replace(
            door.llm,  # type: ignore[type-var]
            script=reply_by_content,
            checks_conversation=True,
            known={} if trial.is_control else self._known,
        )
        endpoints = ProbedEndpoints(options.endpoint_service(), journal)

        def note_chunk(step: Headers | Chunk) -> None:
            if isinstance(step, Chunk):
                journal.mark("chunk", "of a response")

        return dataclasses.replace(door, llm=ProbedModel(model, journal), endpoints=endpoints, on_send=note_chunk)

    def graph(self, journal: Journal) -> AnyGraph:
        """Return the graph for one trial, with its checkpointer and its store watched.

        What makes the graph is called anew, so that nothing of an earlier trial is in it.
        """
        made = self._made()
        store = store_for_run(None) if made.store is None else made.store
        # A graph without one is given one by the server it is deployed to.
        saver = made.checkpointer if isinstance(made.checkpointer, BaseCheckpointSaver) else InMemorySaver()
        changed = {"checkpointer": ProbeSaver(saver, journal), "store": ProbeStore(store, journal)}
        return copy_with(type(made), made, **changed)  # type: ignore[no-any-return]

    def _made(self) -> AnyGraph:
        maker = _live_makers.get(f"graph {self.workload}")
        with simulated_while_made():
            if maker is not None:
                return compile_graph(maker, self._reference)
            # A reference to what makes the graph when it is called, and needs nothing for it.
            is_of_object = ":" in self._reference and not self._reference.startswith(AGENT_PREFIX)
            if is_of_object and is_maker(load_object(self._reference)):
                return load_graph(self._reference)
        return graph_named(self.workload)

    @property
    def _reference(self) -> str:
        return self.workload.removeprefix(OWN_PREFIX).partition("?")[0]
