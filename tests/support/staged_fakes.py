"""A chat model that says what a test gives it, a store that fails when told to, and one chunk through a ladder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from graph_fakes import FakeModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from docmind_lab.systems.staged.graph_store import GraphStore
from docmind_lab.systems.staged.staged_ledger import StageLedger
from docmind_lab.systems.staged.staged_state import StagedOptions
from docmind_lab.systems.staged.staged_workload import build_staged_graph

TEXT = "The railway joins Oslo and Bergen. A checkpoint is the state of a graph."


def said_model(*says: Any) -> FakeModel:
    """A model that says the given things in turn, then "Done."; an exception among them is raised."""

    def say(messages: Sequence[BaseMessage], tools: Mapping[str, Any]) -> AIMessage:
        rounds = sum(isinstance(message, AIMessage) for message in messages)
        said = says[rounds] if rounds < len(says) else "Done."
        if isinstance(said, BaseException):
            raise said
        return AIMessage(said) if isinstance(said, str) else said.model_copy()

    return FakeModel(say=say)


def calling(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    """A message with native calls."""
    native = [
        {"name": name, "args": arguments, "id": f"{name}-{n}", "type": "tool_call"}
        for n, (name, arguments) in enumerate(calls)
    ]
    return AIMessage("", tool_calls=native)


def in_text(*calls: tuple[str, dict[str, Any]], finish_reason: str = "stop") -> AIMessage:
    """A message with calls in its text."""
    text = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    return AIMessage(text, response_metadata={"finish_reason": finish_reason})


def entity(name: str) -> tuple[str, dict[str, Any]]:
    return "create_entity", {"name": name, "type": "city"}


def relation(subject: str, target: str) -> tuple[str, dict[str, Any]]:
    return "create_relation", {"subject": subject, "predicate": "near", "object": target}


class FailingStore(GraphStore):
    """A store that answers some writes with what a test says: by the name of its method, "*" for all others."""

    def __init__(self, answers: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self.answers = answers
        self.tried: list[str] = []


def _answering(method: str) -> Callable[..., Any]:
    """The method of a store, or what a test says in its place."""

    def write(self: FailingStore, *arguments: Any) -> Any:
        self.tried.append(method)
        answer = self.answers.get(method, self.answers.get("*"))
        return getattr(GraphStore, method)(self, *arguments) if answer is None else answer()

    return write


for _method in ("add_entity", "add_observation", "relate", "add_evidence", "link_evidence"):
    setattr(FailingStore, _method, _answering(_method))


def run_of(
    store: GraphStore, text: str = TEXT, *, chunk: str = "7", deadline_ts: float | None = None
) -> tuple[dict[str, Any], Any]:
    """The input and the configuration of a run of the ladder's graph for one chunk."""
    of_deadline = {} if deadline_ts is None else {"deadline_ts": deadline_ts}
    inputs = {"messages": [HumanMessage(text, id="chunk")], "source": "src", "chunk": chunk, **of_deadline}
    return inputs, {"configurable": {"graph_store": store}, "recursion_limit": 100}


def result_of(state: Mapping[str, Any]) -> SimpleNamespace:
    """The outcome, the counts and the warnings in the last state of a run."""
    ledger = StageLedger.of(state)
    return SimpleNamespace(outcome=state["outcome"], **ledger.counts(), warnings=tuple(ledger.warnings))


def climbed(
    *says: Any, text: str = TEXT, store: GraphStore | None = None, options: StagedOptions | None = None
) -> tuple[SimpleNamespace, GraphStore]:
    """What came of a chunk under a model that says this, and the store."""
    used = store or GraphStore()
    graph = build_staged_graph(said_model(*says), options)
    return result_of(graph.invoke(*run_of(used, text))), used
