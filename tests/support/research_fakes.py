"""A research over a scripted model and scripted sources, in virtual time: what a unit test of the loop needs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import RunControl

from docmind_lab.core.sync_async import Operation
from docmind_lab.systems.base.encoders import SparseEncoder
from docmind_lab.systems.research.loop import SourceLoop
from docmind_lab.systems.research.research_graph import ResearchGraph, config_of
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.sources import Item, Source, SourceSpec
from docmind_lab.systems.research.tasks import Hypothesis, ResearchLimits, ResearchTask
from docmind_lab.virtual_time import VirtualClock

CONTINUE = json.dumps({"decision": "CONTINUE", "reasoning": "more may come"})
SATURATED = json.dumps({"decision": "SATURATED", "reasoning": "nothing new"})


def waiting(seconds: Callable[[], float], result: Callable[[], Any]) -> Operation:
    def blocking() -> Any:
        time.sleep(seconds())
        return result()

    async def awaited() -> Any:
        await asyncio.sleep(seconds())
        return result()

    return Operation(blocking, awaited)


@dataclass
class FakeModel:
    """Each role answers with a function of what it is given, after so many seconds."""

    write: Callable[[dict[str, Any]], str]
    filter: Callable[[dict[str, Any]], str]
    judge: Callable[[dict[str, Any]], str]
    seconds: dict[str, float] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def asking(self, role: str) -> Any:
        return FakeAsking(self, SimpleNamespace(role=role))

    def reply(self, role: str, given: dict[str, Any]) -> str:
        self.asked[role] += 1
        if role == "synthesis":
            return "Findings."
        return {"query_writer": self.write, "filter": self.filter, "judge": self.judge}[role](given)


@dataclass(frozen=True)
class FakeAsking:
    model: FakeModel
    calls: SimpleNamespace

    def ask(self, messages: Sequence[HumanMessage], state: Any, *, system: str = "") -> Operation:
        given = json.loads(messages[-1].text)
        role = self.calls.role
        return waiting(lambda: self.model.seconds.get(role, 1.0), lambda: AIMessage(self.model.reply(role, given)))


@dataclass
class FakeSearching:
    """Searches take `seconds` and find what `find(source, query)` says, or raise it."""

    find: Callable[[str, str], Sequence[Item]]
    seconds: float = 1.0
    asked: list[tuple[str, str]] = field(default_factory=list)

    def search(self, source: Source, query: str, hypothesis: str, state: Any) -> Operation:
        self.asked.append((source.spec.name, query))
        return waiting(lambda: self.seconds, lambda: tuple(self.find(source.spec.name, query)))


def numbered_queries() -> Callable[[dict[str, Any]], str]:
    """A writer that always has another query, unlike all before it."""

    def write(given: dict[str, Any]) -> str:
        number = len(given["history"])
        words = f"{given['hypothesis']} a{number} b{number} c{number} d{number}"
        return json.dumps({"query": words, "reasoning": "next"})

    return write


def accept_all(given: dict[str, Any]) -> str:
    return json.dumps({"accepted": [one["number"] for one in given["results"]], "reasoning": "all of it"})


def two_items(source: str, query: str) -> list[Item]:
    return [Item(f"{query} {n}", url=f"urn:{source}:{query}:{n}", source=source, hypothesis="h1") for n in (1, 2)]


def fake_model(**parts: Any) -> FakeModel:
    given: dict[str, Any] = {"write": numbered_queries(), "filter": accept_all, "judge": lambda given: CONTINUE}
    return FakeModel(**{**given, **parts})


def task(hypotheses: int = 1, sources: Sequence[str] = ("one",)) -> ResearchTask:
    return ResearchTask(
        "t", "What?", hypotheses=tuple(Hypothesis(f"h{n}", f"topic{n}") for n in range(1, hypotheses + 1)),
        sources=tuple(sources),
    )  # fmt: skip


def source(name: str) -> Source:
    return Source(SourceSpec(name, "A source."), name, SparseEncoder(10.0), 1)


@dataclass
class Done:
    """What a run has led to. state: the last one seen. ended_at_s: on its clock, from 0."""

    ledger: ResearchLedger
    state: dict[str, Any]
    error: BaseException | None
    ended_at_s: float

    def reasons(self) -> dict[str, str]:
        return {f"{c.hypothesis} {c.source}": c.exit_reason for c in self.ledger.completions()}


def graph_of(model: FakeModel, searching: Any, sources: Sequence[str]) -> Any:
    roles = ("query_writer", "filter", "judge", "synthesis")
    loop = SourceLoop({role: model.asking(role) for role in roles}, searching)
    return ResearchGraph(loop, {name: source(name) for name in sources}).compile()


def run(
    model: FakeModel | None = None,
    searching: Any = None,
    *,
    asked: ResearchTask | None = None,
    known: Sequence[str] = ("one", "two"),
    limits: ResearchLimits | None = None,
    mode: str = "sync",
    cancel_after_s: float | None = None,
    deadline_after_s: float | None = None,
    drain_after_s: float | None = None,
) -> Done:
    """A whole research on a virtual clock of its own."""
    asked = asked or task()

    def work() -> Done:
        ledger = ResearchLedger(limits or ResearchLimits())
        graph = graph_of(model or fake_model(), searching or FakeSearching(two_items), known)
        config = config_of(ledger)
        inputs: dict[str, Any] = {"messages": [HumanMessage("What?", id="question")], "task": asked}
        if deadline_after_s is not None:
            inputs["deadline_ts"] = time.monotonic() + deadline_after_s
        control = RunControl()
        if drain_after_s is not None:
            threading.Timer(drain_after_s, lambda: control.request_drain("test")).start()
        state: dict[str, Any] = {}
        error: BaseException | None = None
        started_at = time.monotonic()

        def sync() -> None:
            for seen in graph.stream(inputs, config, stream_mode="values", control=control):
                state.update(seen)

        async def streamed() -> None:
            async with asyncio.timeout(cancel_after_s):
                async for seen in graph.astream(inputs, config, stream_mode="values", control=control):
                    state.update(seen)

        try:
            sync() if mode == "sync" else asyncio.run(streamed())
        except Exception as raised:  # noqa: BLE001 - whatever ends a run is for the test to see
            error = raised
        return Done(ledger, state, error, time.monotonic() - started_at)

    return VirtualClock().run(work)
