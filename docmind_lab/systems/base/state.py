"""What the states of the systems' graphs have in common: a deadline, documents, and how values are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, Self

from langchain.agents import AgentState
from langgraph.channels import BinaryOperatorAggregate, UntrackedValue


def merge_documents(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Append the new documents whose id is not there yet to the old ones; merging twice changes nothing."""
    merged = {str(document["id"]): document for document in old or ()}
    for document in new or ():
        merged.setdefault(str(document["id"]), document)
    return list(merged.values())


def keep_reason(old: str, new: str) -> str:
    """Return the first reason given: parallel agents may be cut at the same instant."""
    return old or new


def newest(old: Any, new: Any) -> Any:
    """Return the newer value: of agents side by side that both decide, the last one in the message counts."""
    return new


class Merged(BinaryOperatorAggregate[Any]):
    """A channel that merges values as LangGraph's own does, but is copied at a tenth of the cost.

    LangGraph copies every channel of a graph at each of its conditional edges: 0.3 µs each in place of 2.5 µs, which
    the constructor takes to work out the first value.
    """

    __slots__ = ()

    def copy(self) -> Self:
        """Return a copy of the channel with its value."""
        result = object.__new__(type(self))
        result.typ, result.key, result.operator, result.value = self.typ, self.key, self.operator, self.value
        return result


class SystemState(AgentState[Any]):
    """State of a system's graph.

    deadline_ts: monotonic instant at which the budget ends; absent when it is not propagated. A sub-agent whose own
    schema lacks the key never sees it: LangGraph drops what a schema does not name. It is in no checkpoint: a
    monotonic instant means nothing after a resume.
    documents: what was found, each a mapping with id, content, metadata, score.
    """

    deadline_ts: NotRequired[Annotated[float, UntrackedValue]]
    documents: NotRequired[Annotated[list[Mapping[str, Any]], Merged(list, merge_documents)]]
