"""What LangChain tells of a graph at work: its models, tools and retrievers, each with the node it belongs to.

calls = RunCalls(recorder)
graph.with_config({"callbacks": [GraphCallbacks(calls)]})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult

from docmind_lab.errors import RunCut
from docmind_lab.network.attempts import call_scope
from docmind_lab.workloads.own.calls import RunCalls


class GraphCallbacks(BaseCallbackHandler):
    """Begins and ends the calls of one run, in the thread or task that they are made in.

    What it raises is a RunCut: LangChain logs an `Exception` of a callback and goes on.
    """

    run_inline = True

    def __init__(self, calls: RunCalls) -> None:
        super().__init__()
        self.calls = calls

    def on_chain_start(
        self,
        serialized: Mapping[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A node, or anything else that has runs below it."""
        self.calls.tree.begun(run_id, parent_run_id, tags, metadata)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """With it ends what it left under way: LangChain tells of no tool's end by cancellation."""
        self.calls.ended_above(run_id, error)

    def on_llm_start(
        self,
        serialized: Mapping[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model is asked."""
        self.calls.started("llm", run_id, parent_run_id)

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model is asked."""
        self.calls.started("llm", run_id, parent_run_id)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """The model has answered: its tokens, as far as it counts them."""
        opened = self.calls.ended(run_id)
        usage = _usage(response)
        if opened is not None and usage is not None:
            with call_scope(opened.call):
                self.calls.recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The model has not. Raises: a RunCut again."""
        self.calls.ended(run_id, error)
        if isinstance(error, RunCut):
            # An async model gathers what it waits for, takes what is no `Exception` for a result, and fails over that
            # with an AttributeError, which others would try again.
            raise error

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool is called."""
        self.calls.started("tool", run_id, parent_run_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The tool has returned."""
        self.calls.ended(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The tool has raised."""
        self.calls.ended(run_id, error)

    def on_retriever_start(
        self,
        serialized: Mapping[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever is asked."""
        self.calls.started("retrieval", run_id, parent_run_id)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        """The retriever has found something or nothing."""
        self.calls.ended(run_id)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """The retriever has raised."""
        self.calls.ended(run_id, error)


def _usage(response: LLMResult) -> Any:
    messages = (getattr(item, "message", None) for row in response.generations for item in row)
    counted = (getattr(message, "usage_metadata", None) for message in messages)
    return next((usage for usage in counted if usage), None)
