"""A compiled graph bound to one run: its runtime context, and how long its next step may take.

LangGraph takes the context as an argument of each door and reads `step_timeout` before each step. Alternatives know
neither the context nor when a step begins, so a graph that is bound carries both.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from langgraph.graph.state import CompiledStateGraph

Compiled = CompiledStateGraph[Any, Any, Any, Any]


def bound(
    runnable: Compiled,
    *,
    context: Any = None,
    step_limit_s: Callable[[], float] | None = None,
) -> Compiled:
    """A copy of the graph that runs with this context and these limits.

    context: given to the run when its caller gives none. step_limit_s: asked before each step for the seconds it may
    take; LangGraph's `step_timeout` is a number that starts anew with each step, which bounds no run. The limit
    surfaces as `TimeoutError` in async runs; a sync run waits for its step all the same.
    """
    kind = _bound_kind(type(runnable))
    given = {name: value for name, value in vars(runnable).items() if name != "__orig_class__"}
    made: Any = kind(**given)
    earlier: Mapping[str, Any] = getattr(runnable, "binding", {})
    made.binding = {**earlier, **_given(context=context, step_limit_s=step_limit_s)}
    return made  # type: ignore[no-any-return]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@functools.cache
def _bound_kind(kind: type[Any]) -> type[Any]:
    """A subclass of the graph's own class, so that whatever else that class does stays as it is."""
    if hasattr(kind, "binding"):
        return kind

    class Bound(kind):  # type: ignore[misc]
        # In a slot: LangGraph hands everything in a graph's __dict__ to the constructor of its copy.
        __slots__ = ("binding",)

        def copy(self, update: dict[str, Any] | None = None) -> Any:
            made = super().copy(update)
            made.binding = self.binding
            return made

        @property
        def step_timeout(self) -> float | None:
            limit_s = getattr(self, "binding", {}).get("step_limit_s")
            # LangGraph takes 0 for "no limit".
            return vars(self).get("step_timeout") if limit_s is None else max(0.001, limit_s())

        @step_timeout.setter
        def step_timeout(self, value: float | None) -> None:
            self.__dict__["step_timeout"] = value

        def stream(self, *arguments: Any, context: Any = None, **options: Any) -> Iterator[Any]:
            return super().stream(*arguments, context=self._context(context), **options)  # type: ignore[no-any-return]

        def astream(self, *arguments: Any, context: Any = None, **options: Any) -> AsyncIterator[Any]:
            return super().astream(*arguments, context=self._context(context), **options)  # type: ignore[no-any-return]

        def _context(self, given: Any) -> Any:
            return self.binding.get("context") if given is None else given

    Bound.__name__ = Bound.__qualname__ = f"Bound{kind.__name__}"
    return Bound
