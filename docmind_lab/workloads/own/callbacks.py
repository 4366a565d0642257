"""LangChain callbacks that record a graph's nodes, models, tools and retrievers, each with the node it belongs to.

calls = RunCalls(recorder)
graph.with_config({"callbacks": [GraphCallbacks(calls)]})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.outputs import LLMResult

from docmind_lab.docmind.graphs.observer import RunCallbacks
from docmind_lab.network.attempts import CallKind, call_scope
from docmind_lab.workloads.own.calls import RunCalls


class GraphCallbacks(RunCallbacks):
    """Callback handler that records nodes, and begins and ends the run's calls in the thread or task making them.

    One handler for both: LangChain asks each about every run, and a model looks each over before a call. What it raises
    is a RunCut: LangChain logs an `Exception` of a callback and goes on.
    """

    ignore_llm = False
    ignore_chat_model = False
    ignore_retriever = False
    ignore_agent = False

    def __init__(self, calls: RunCalls) -> None:
        super().__init__(calls.recorder)
        self.calls = calls

    def on_chain_start(self, serialized: Any, inputs: Any, **details: Any) -> None:
        """Note the start of a node, or of any other runnable that has children."""
        super().on_chain_start(serialized, inputs, **details)
        self.calls.tree.note_start(
            details["run_id"], details.get("parent_run_id"), details.get("tags"), details.get("metadata")
        )

    def on_chain_error(self, error: BaseException, **details: Any) -> None:
        """Note the error, and end the calls under it: LangChain reports no end of a cancelled tool."""
        super().on_chain_error(error, **details)
        self.calls.ended_above(details["run_id"], error)

    def on_llm_start(self, serialized: Any, prompts: Any, **details: Any) -> None:
        """Begin the call of a model."""
        self._begin_call("llm", details)

    def on_chat_model_start(self, serialized: Any, messages: Any, **details: Any) -> None:
        """Begin the call of a chat model."""
        self._begin_call("llm", details)

    def on_tool_start(self, serialized: Any, input_str: Any, **details: Any) -> None:
        """Begin the call of a tool, and note its name."""
        place = self.calls.tree.place_of(details.get("parent_run_id"))
        self._begin_call("tool", details)
        self.calls.recorder.event("tool_started", place.role, tool=str((serialized or {}).get("name") or ""))

    def on_retriever_start(self, serialized: Any, query: Any, **details: Any) -> None:
        """Begin the call of a retriever."""
        self._begin_call("retrieval", details)

    def _begin_call(self, kind: CallKind, details: Mapping[str, Any]) -> None:
        self.calls.started(kind, details["run_id"], details.get("parent_run_id"))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """End the call of a model, and note its tokens if it counts them."""
        opened = self.calls.ended(run_id)
        usage = _usage(response)
        if opened is not None and usage is not None:
            with call_scope(opened.call):
                self.calls.recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the failed call of a model."""
        self.calls.ended(run_id, error)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """End the call of a tool."""
        self.calls.ended(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the failed call of a tool."""
        self.calls.ended(run_id, error)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        """End the call of a retriever."""
        self.calls.ended(run_id)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End the failed call of a retriever."""
        self.calls.ended(run_id, error)


def _usage(response: LLMResult) -> Any:
    messages = (getattr(item, "message", None) for row in response.generations for item in row)
    counted = (getattr(message, "usage_metadata", None) for message in messages)
    return next((usage for usage in counted if usage), None)
