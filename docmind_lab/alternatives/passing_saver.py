"""A checkpointer that passes all operations on to another one, through one method that a subclass can change."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple


def _passes(operation: str) -> Any:
    """Return a method that passes an operation on, with the signature of LangGraph's, and arguments in its order."""
    original: Any = getattr(BaseCheckpointSaver, operation)
    signature = inspect.signature(original)

    def in_order(*arguments: Any, **options: Any) -> tuple[Any, ...]:
        values = signature.bind(*arguments, **options)
        values.apply_defaults()
        return values.args

    @functools.wraps(original)
    def method(*arguments: Any, **options: Any) -> Any:
        saver, *values = in_order(*arguments, **options)
        return saver.pass_on(operation, *values)

    @functools.wraps(original)
    async def method_async(*arguments: Any, **options: Any) -> Any:
        saver, *values = in_order(*arguments, **options)
        return await saver.pass_on_async(operation, *values)

    return method_async if inspect.iscoroutinefunction(original) else method


class PassingSaver(BaseCheckpointSaver[Any]):
    """Passes reads and writes on to an inner checkpointer.

    A subclass overrides `answer_instead` if it looks at operations or keeps some of them out, and `pass_on` and
    `pass_on_async`, by which every operation goes, if it does more.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

    def answer_instead(self, operation: str, *arguments: Any) -> tuple[Any] | None:
        """Return the result of an operation that the inner checkpointer is not to have; None to pass it on.

        operation: its name, which begins with "a" if it is async.
        """
        return None

    def pass_on(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Return what an operation of the inner checkpointer returns; `list` as a list."""
        if (answer := self.answer_instead(operation, *arguments)) is not None:
            return answer[0]
        result = getattr(self.inner, operation)(*arguments, **options)
        return list(result) if operation == "list" else result

    async def pass_on_async(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """`pass_on`, of an async method."""
        if (answer := self.answer_instead(operation, *arguments)) is not None:
            return answer[0]
        result = getattr(self.inner, operation)(*arguments, **options)
        return [item async for item in result] if operation == "alist" else await result

    @property
    def config_specs(self) -> list[Any]:
        """The configuration fields of the inner checkpointer."""
        return self.inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel from the inner checkpointer."""
        return self.inner.get_next_version(current, channel)

    get_tuple, put, put_writes, delete_thread = map(_passes, ("get_tuple", "put", "put_writes", "delete_thread"))
    aget_tuple, aput, aput_writes, adelete_thread = map(
        _passes, ("aget_tuple", "aput", "aput_writes", "adelete_thread")
    )

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints."""
        return iter(self.pass_on("list", config, **options))

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, async."""
        for item in await self.pass_on_async("alist", config, **options):
            yield item
