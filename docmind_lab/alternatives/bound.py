"""Binds a compiled graph to one run: its runtime context, and the doorways through which it is called.

LangGraph takes the context as an argument of `stream` and `invoke`. Alternatives know nothing of it, so a bound graph
carries it.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol

from langchain_core.runnables import RunnableBinding, RunnableWithFallbacks
from langgraph.graph.state import CompiledStateGraph

Compiled = CompiledStateGraph[Any, Any, Any, Any]

# How LangGraph names the nodes that `add_node(error_handler=...)` and `set_node_defaults(error_handler=...)` make.
_HANDLERS = ("__error_handler__", "__default_error_handler__")


def node_names(metadata: Mapping[str, Any] | None) -> list[str]:
    """Return the nodes that a run of callbacks is in, outermost first; [""] outside every node.

    LangGraph puts an error handler inside the node that failed. It is a node beside it, which runs in its place.
    """
    path = str((metadata or {}).get("langgraph_checkpoint_ns", ""))
    names = [part.partition(":")[0] for part in path.split("|")]
    return [name for name, inner in zip(names, [*names[1:], ""], strict=True) if not inner.startswith(_HANDLERS)]


class Doorway(Protocol):
    """Wraps the methods by which a graph streams, as all its runs do: sees each run's inputs and its chunks.

    Both are given the graph's own, the configuration that the graph carries, and the caller's arguments.
    """

    def stream(
        self, inner: Callable[..., Iterator[Any]], config: Any, *arguments: Any, **options: Any
    ) -> Iterator[Any]:
        """Run in place of the graph's `stream`, which is `inner`."""
        ...

    def astream(
        self, inner: Callable[..., AsyncIterator[Any]], config: Any, *arguments: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """Run in place of the graph's `astream`, which is `inner`."""
        ...

    def readable_state(self, state: Any) -> Any:
        """Return a state of the graph in the shape that its caller reads."""
        ...


def bound(
    runnable: Compiled,
    *,
    context: Any = None,
    doorway: Doorway | None = None,
) -> Compiled:
    """Return a copy of the graph that runs with this context and these limits.

    context: given to the run when its caller gives none. doorway: what the graph is reached through; around those that
    it is reached through already.
    """
    earlier: Mapping[str, Any] = getattr(runnable, "binding", {})
    binding = {**earlier, **({} if context is None else {"context": context})}
    if doorway is not None:
        binding["doorways"] = (*earlier.get("doorways", ()), doorway)
    return copy_with(_bound_kind(type(runnable)), runnable, binding=binding)  # type: ignore[no-any-return]


def state_reader(runnable: Compiled) -> Callable[[Any], Any]:
    """Return a function that turns a state of the graph into the shape that its caller reads."""
    doorways: tuple[Doorway, ...] = getattr(runnable, "binding", {}).get("doorways", ())

    def read(state: Any) -> Any:
        for doorway in doorways:
            state = doorway.readable_state(state)
        return state

    return read


def copy_with(kind: type[Any], graph: Any, **changed: Any) -> Any:
    """Return a graph of this class with the attributes of the given graph, except those in `changed`.

    Not by the constructor, which drops what others have set on the graph, as a tracer may. Of the graph's slots it has
    those that the class has.
    """
    result = object.__new__(kind)
    vars(result).update(vars(graph))
    slots = {name for each in kind.__mro__ for name in vars(each).get("__slots__", ()) if hasattr(graph, name)}
    for name, value in ({name: getattr(graph, name) for name in slots} | changed).items():
        setattr(result, name, value)
    return result


@functools.cache
def _bound_kind(kind: type[Any]) -> type[Any]:
    """Return a subclass of the graph's class that has a binding and changes nothing else."""
    if hasattr(kind, "binding"):
        return kind

    class Bound(kind):  # type: ignore[misc]
        # In a slot: LangGraph hands everything in a graph's __dict__ to the constructor of its copy.
        __slots__ = ("binding",)

        def copy(self, update: dict[str, Any] | None = None) -> Any:
            changed = update or {}
            if changed.keys() <= {"config", "checkpointer"}:
                return copy_with(type(self), self, **changed)
            result = super().copy(update)
            result.binding = self.binding
            return result

        def stream(self, *arguments: Any, context: Any = None, **options: Any) -> Iterator[Any]:
            through = self._through("stream", super().stream)
            return through(*arguments, context=self._context(context), **options)  # type: ignore[no-any-return]

        def astream(self, *arguments: Any, context: Any = None, **options: Any) -> AsyncIterator[Any]:
            through = self._through("astream", super().astream)
            return through(*arguments, context=self._context(context), **options)  # type: ignore[no-any-return]

        def _through(self, name: str, inner: Callable[..., Any]) -> Any:
            for doorway in self.binding.get("doorways", ()):
                inner = functools.partial(getattr(doorway, name), inner, self.config)
            return inner

        def _context(self, value: Any) -> Any:
            return self.binding.get("context") if value is None else value

    Bound.__name__ = Bound.__qualname__ = f"Bound{kind.__name__}"
    return Bound


def without_wrappers(node: Any) -> Any:
    """Return what a node runs, without the bindings and fallbacks around it, whose attributes are not its own."""
    while isinstance(node, RunnableWithFallbacks | RunnableBinding):
        node = node.runnable if isinstance(node, RunnableWithFallbacks) else node.bound
    return node
