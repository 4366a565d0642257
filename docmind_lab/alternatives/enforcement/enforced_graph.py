"""An enforced graph that is itself a LangGraph graph, for servers and for graphs around it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

from docmind_lab.alternatives.bound import copy_with


def enforced_graph(agent: Any) -> Any:
    """Return the graph of an `EnforcedAgent` as a graph whose every run is enforced as the agent's calls are."""
    kind: Any = type(agent.graph)
    return copy_with(_enforced_kind(kind), agent.graph, enforcement=agent)


@functools.cache
def _enforced_kind(kind: type[Any]) -> type[Any]:
    """Return a subclass of the graph's class whose streams, and so all its runs, are enforced."""

    class Enforced(kind):  # type: ignore[misc]
        # In a slot: LangGraph hands everything in a graph's __dict__ to the constructor of its copy.
        __slots__ = ("enforcement",)

        def copy(self, update: dict[str, Any] | None = None) -> Any:
            if (update or {}).keys() <= {"config", "checkpointer"}:
                return copy_with(type(self), self, **(update or {}))
            result = super().copy(update)
            result.enforcement = self.enforcement
            return result

        def _agent(self) -> Any:
            """Return the agent over this graph as it is now, which may have another configuration or checkpointer."""
            return dataclasses.replace(self.enforcement, graph=copy_with(kind, self))

        def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
            return self._agent().stream(input, config, **self._mode(config, options))  # type: ignore[no-any-return]

        async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
            chunks = self._agent().astream(input, config, **self._mode(config, options))
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

        def _mode(self, config: Any, options: dict[str, Any]) -> dict[str, Any]:
            # What a graph streams by default, also as a node of another one.
            return {**options, "stream_mode": options.get("stream_mode") or self.stream_mode}

    Enforced.__name__ = Enforced.__qualname__ = f"Enforced{kind.__name__}"
    return Enforced
