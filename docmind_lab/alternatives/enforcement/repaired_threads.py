"""`repair`: a thread that was cut is left as a provider takes it, with a result for each tool call.

    repair(graph, {"configurable": {"thread_id": "17"}})      # before the user's next message
    result.repair()                                           # the same, of the call that was cut

A provider refuses a conversation in which a tool call has no result, or a result has no call. A cut between the model's
message and the last result leaves such a conversation (docs/findings/next-message-refused.md).
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import END, START
from langgraph.prebuilt import ToolNode
from langgraph.types import Overwrite, StateSnapshot, StateUpdate

from docmind_lab.alternatives.bound import without_wrappers
from docmind_lab.core.errors import ConfigurationError, GraphError
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish

WAS_CUT: Final = (
    "This call was cut before its result was recorded. It is not known whether it took effect. "
    "It was not called again: check what it did before you call it again."
)
"""What the result of a tool call says that was cut."""


@dataclass(frozen=True, repr=False)
class Repair(ShownAsCode):
    """A thread after its repair.

    Args:
        state: The state of the thread, or of a graph without a checkpointer the mended state, to be given to its next
            run.
        calls_cut: The tools whose calls were given a result that says that they were cut.
        waits: Whether the thread waits for a person, and so was left as it is.
    """

    state: Any
    calls_cut: tuple[str, ...] = ()
    waits: bool = False

    def __repr__(self) -> str:
        # Without the state, which holds what users and documents say.
        if self.waits:
            return "Repair: left as it is, since it waits for a person"
        return f"Repair: {'calls of ' + ', '.join(self.calls_cut) + ' were' if self.calls_cut else 'no call was'} cut"


def mend(
    messages: Sequence[BaseMessage], returned: Sequence[ToolMessage] = ()
) -> tuple[list[BaseMessage], tuple[str, ...]]:
    """Return messages in an order that a provider takes, and the tools whose calls had no result.

    Each call has one result, directly after it, and no result is without its call.

    returned: results that are in no state, of tools that had returned when their node was cut.
    """
    places = {id(message): place for place, message in enumerate(messages)}
    results = [message for message in messages if isinstance(message, ToolMessage)]
    made: list[BaseMessage] = []
    cut: dict[str, None] = {}
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        mine: list[ToolMessage] = []
        for call_id, name in _calls_of(message):
            later = [each for each in results if each.tool_call_id == call_id and places[id(each)] > place]
            result = min(later, key=_rank, default=None)
            if result is not None:
                # Some servers use an id again in a later turn.
                results = [each for each in results if each is not result]
            else:
                result = next((each for each in returned if each.tool_call_id == call_id), None)
            if result is None:
                cut[name] = None
                result = ToolMessage(WAS_CUT, tool_call_id=call_id, name=name, status="error", id=str(uuid.uuid4()))
            mine.append(result)
        made += [message, *sorted(mine, key=lambda each: places.get(id(each), len(messages)))]
    return made, tuple(cut)


def _calls_of(message: BaseMessage) -> Iterable[tuple[str, str]]:
    """Return the id and the tool of each call in a message; clients send those with arguments that are no JSON too."""
    if not isinstance(message, AIMessage):
        return ()
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [(call["id"], str(call["name"] or "tool")) for call in calls if call["id"]]


def _rank(result: ToolMessage) -> tuple[bool, bool]:
    """Order the results of one call: one of the tool before one that says that it was cut."""
    return result.content == WAS_CUT, result.status == "error"


def is_same(one: Sequence[BaseMessage], other: Sequence[BaseMessage]) -> bool:
    """Whether two lists have the same messages in the same order."""
    return [*map(id, one)] == [*map(id, other)]


def is_conversation(value: Any) -> bool:
    """Whether a value of a state is a list of messages that has some."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, BaseMessage) for each in value)


def mended_state(state: Any, returned: Sequence[ToolMessage] = ()) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the conversations of a state that have to be mended, by their key, mended; and the tools that were cut."""
    changed: dict[str, Any] = {}
    cut: dict[str, None] = {}
    for key, value in state.items() if isinstance(state, Mapping) else ():
        if is_conversation(value):
            messages, names = mend(value, returned)
            if not is_same(messages, value):
                changed[key] = messages
                cut |= dict.fromkeys(names)
    return changed, tuple(cut)


def repair(graph: Any, config: RunnableConfig, *, drops_interrupts: bool = False) -> Repair:
    """Mend a thread that was cut, so that a provider takes it, and return what was done.

    Each tool call without a result is given one that says that it was cut (status "error"). Results that were recorded
    are kept, also those of a step that was cut, which the next message would drop. To have the cut tools run again,
    resume the thread instead (`None` as input).

    Args:
        graph: A compiled graph with a checkpointer. Its run must be over: under B it goes on in its thread.
        config: Names the thread.
        drops_interrupts: Whether a thread that waits for a person is mended too. What it waited for is dropped then.

    Raises:
        ConfigurationError: The graph has no checkpointer, or the configuration names no thread.
        GraphError: The graph does not take the mended conversation.
    """
    return finish(repair_steps(graph, config, drops_interrupts=drops_interrupts))


async def arepair(graph: Any, config: RunnableConfig, *, drops_interrupts: bool = False) -> Repair:
    """Mend a thread whose checkpointer is awaited. The parameters are those of `repair`, and so are the errors."""
    return await afinish(repair_steps(graph, config, drops_interrupts=drops_interrupts))


def repair_steps(
    graph: Any, config: RunnableConfig, returned: Sequence[ToolMessage] = (), *, drops_interrupts: bool = False
) -> Steps[Repair]:
    """Return the steps of a repair. returned: results of tools that are not in the thread."""
    if not has_checkpointer(graph):
        raise ConfigurationError("graph has no checkpointer, so it has no thread; compile(checkpointer=...)")
    own = (config or {}).get("configurable", {})
    if not own.get("thread_id"):
        raise ConfigurationError('config names no thread; give {"configurable": {"thread_id": ...}}')
    # The latest checkpoint, wherever the cut run had begun.
    thread: RunnableConfig = {"configurable": {key: own[key] for key in own if key != "checkpoint_id"}}
    before: StateSnapshot = yield _read(graph, thread)
    if before.interrupts and not drops_interrupts:
        return Repair(before.values, waits=True)
    cut = yield from _mend(graph, graph, thread, returned)
    after: StateSnapshot = yield _read(graph, thread)
    return Repair(after.values, tuple(cut))


def _read(graph: Any, thread: RunnableConfig) -> Operation:
    forms = graph.get_state, graph.aget_state
    return Operation(*(functools.partial(form, thread, subgraphs=True) for form in forms))


def _mend(graph: Any, part: Any, thread: RunnableConfig, returned: Sequence[ToolMessage]) -> Steps[dict[str, None]]:
    """Mend a thread, after those of sub-agents that were cut in it, and return the tools that were cut.

    part: whose thread it is, the graph itself or one in it.
    """
    before: StateSnapshot = yield _read(graph, thread)
    cut: dict[str, None] = {}
    inside = dict(part.get_subgraphs()) if before.tasks else {}
    for task in before.tasks:
        if isinstance(task.state, StateSnapshot) and task.name in inside:
            place = {"checkpoint_ns": task.state.config["configurable"]["checkpoint_ns"]}
            of_task: RunnableConfig = {"configurable": {**thread["configurable"], **place}}
            cut |= yield from _mend(graph, inside[task.name], of_task, returned)
    changed, names = mended_state(before.values, returned)
    if not changed:
        return cut
    is_at_its_end = all(is_same(changed[key][: len(before.values[key])], before.values[key]) for key in changed)
    node = _node_of_tools(part, before) if is_at_its_end else START
    values = {key: _as_write(part.channels.get(key), messages) for key, messages in changed.items()}
    updates = [[StateUpdate(values, node)]]
    if not before.tasks:
        # A thread that had ended has nothing to run afterwards either.
        updates.append([StateUpdate(None, END)])
    forms = graph.bulk_update_state, graph.abulk_update_state
    yield Operation(*(functools.partial(form, thread, updates) for form in forms))
    after: StateSnapshot = yield _read(graph, thread)
    if mended_state(after.values)[0]:
        raise GraphError(f"the graph does not take the mended {', '.join(changed)}, written as its node {node}")
    return cut | dict.fromkeys(names)


def has_checkpointer(graph: Any) -> bool:
    """Whether a graph keeps its threads itself."""
    return isinstance(graph.checkpointer, BaseCheckpointSaver)


def _as_write(channel: Any, messages: list[BaseMessage]) -> Any:
    """Return what a node writes to put these messages in place of those that are there."""
    return Overwrite(messages) if isinstance(channel, BinaryOperatorAggregate | DeltaChannel) else messages


def _node_of_tools(graph: Any, snapshot: StateSnapshot) -> str:
    """Return the node as which results are written: what follows it is what a resumed run does."""
    names = [str(task.name) for task in snapshot.tasks if task.name in graph.nodes]
    bound = {name: without_wrappers(getattr(node, "bound", None)) for name, node in graph.nodes.items()}
    tools = [name for name, runs in bound.items() if names and isinstance(runs, ToolNode)]
    return next(iter([*sorted(tools, key=lambda name: name not in names), *names]), str(START))
