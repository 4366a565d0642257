"""The state of the ladder's graph, its options, and what its rungs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.numbers import require_seconds
from docmind_lab.systems.base.state import Merged, keep_reason, merge_documents, newest
from docmind_lab.systems.staged.graph_store import GraphStore
from docmind_lab.systems.staged.staged_ledger import Desk, StageLedger

STORE_KEY = "graph_store"
"""Where the configuration of a run has the store that it writes to."""


class StagedState(TypedDict, total=False):
    """State of the ladder's graph.

    messages: first the chunk. source, chunk: the document, and which part of it. documents: the confirmed writes.
    ledger: all that is known of writes, see `staged_ledger.py`. outcome: the rung that wrote first, "skipped_empty" or
    "failed". deadline_ts and primary hold instants, which mean nothing after a checkpoint is resumed.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    deadline_ts: Annotated[float, UntrackedValue]
    documents: Annotated[list[Mapping[str, Any]], Merged(list, merge_documents)]
    stop_reason: Annotated[str, Merged(str, keep_reason)]
    source: str
    chunk: str
    primary: Annotated[dict[str, Any], UntrackedValue]
    ledger: Annotated[dict[str, Any], Merged(dict, newest)]
    outcome: str


@dataclass(frozen=True)
class StagedOptions:
    """Options of a ladder: the limits of its rungs.

    primary_timeout_s: of the agent, all its model calls together. reserve_s: of a deadline that the ladder knows of, so
    much is kept for the rungs below the agent. max_calls: run at once; the rest is dropped. max_rounds: model calls of
    the agent.
    """

    primary_timeout_s: float = 12.0
    reserve_s: float = 0.25
    max_calls: int = 10
    max_rounds: int = 6

    def __post_init__(self) -> None:
        require_seconds("primary_timeout_s", self.primary_timeout_s)
        if not self.reserve_s >= 0:
            raise ConfigurationError(f"reserve_s must be 0 or more seconds, not {self.reserve_s!r}")
        for name in ("max_calls", "max_rounds"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be 1 or more, not {getattr(self, name)!r}")


def desk_of(options: StagedOptions, state: Mapping[str, Any], config: RunnableConfig) -> Desk:
    """Return the desk for this run's writes. Raises: ConfigurationError if its configuration has no store."""
    store: GraphStore | None = config.get("configurable", {}).get(STORE_KEY)
    if store is None:
        raise ConfigurationError(
            f"the ladder has nothing to write to: run it with config={{'configurable': {{'{STORE_KEY}': store}}}}"
        )
    source, chunk = str(state.get("source", "text")), str(state.get("chunk", "1"))
    return Desk(store, StageLedger.of(state), source, chunk, options.max_calls)


class LadderFailed(DocmindLabError):
    """Nothing could be written of a chunk, on any rung. record: the content of its dead letter."""

    def __init__(self, message: str, record: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.record = dict(record)


def text_of(state: Mapping[str, Any]) -> str:
    """Return the text of the chunk from the state."""
    return next((m.text for m in state.get("messages", ()) if isinstance(m, HumanMessage)), "")


def last_reply(messages: Sequence[AnyMessage]) -> AIMessage | None:
    """Return the agent's last message; None without one."""
    return next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character."""
    return not any(character.isprintable() and not character.isspace() for character in text)
