"""One agent as a node of the supervisor graph: its input, its result, and what happens when its time is over.

What the agent had by then is in the state, and the run ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import BudgetError
from docmind_lab.core.sync_async import Operation, Steps
from docmind_lab.systems.base.steps_node import StepsNode
from docmind_lab.systems.docmind.graphs.build_params import SupervisorBuildParams
from docmind_lab.systems.docmind.graphs.history import whole_messages
from docmind_lab.systems.docmind.graphs.supervisor_state import HANDED_DOWN

_ABSENT = object()


class AgentNode(StepsNode):
    """A node that runs one agent inside the parent graph, and returns its changes to the parent's state."""

    def __init__(
        self, agent: CompiledStateGraph[Any, Any, Any, Any], name: str, options: SupervisorBuildParams
    ) -> None:
        super().__init__(name, self._run)
        self.agent, self.options = agent, options

    def _run(self, handed_down: dict[str, Any], config: RunnableConfig) -> Steps[Command[Any]]:
        """Run the agent and return the command with its changes and the next node."""
        state = _with_deadline_of_run(handed_down, config)
        last: Mapping[str, Any] = state

        # Streamed, so that what the agent had is kept when its budget ends in the middle.
        def run() -> None:
            nonlocal last
            for values in self.agent.stream(state, config, stream_mode="values"):
                last = values

        async def run_async() -> None:
            nonlocal last
            async for values in self.agent.astream(state, config, stream_mode="values"):
                last = values

        try:
            yield Operation(run, run_async)
        except BudgetError as error:
            return Command(goto=END, update={**self._delta(state, last), "stop_reason": error.stop_reason})
        return Command(goto=self.options.supervisor_name, update=self._delta(state, last))

    def _delta(self, state: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, Any]:
        before = {message.id for message in state["messages"]}
        new = [message for message in final["messages"] if message.id not in before]
        delta = {
            key: value for key, value in final.items() if key not in HANDED_DOWN and value != state.get(key, _ABSENT)
        }
        return {**delta, "messages": self._new_messages(new)}

    def _new_messages(self, new: Sequence[AnyMessage]) -> list[AnyMessage]:
        # An agent that was cut may have asked for tools whose results never came.
        messages = whole_messages([_with_name(message, self.name) for message in new if message.type != "human"])
        if self.options.output_mode == "last_message":
            messages = messages[_start_of_last(messages) :]
        return messages


def _with_deadline_of_run(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
    """Return the agent's state with the deadline of the current run, not of the one that a checkpoint is from."""
    of_run = config.get("configurable", {}).get(DEADLINE_KEY)
    return state if of_run is None else {**state, DEADLINE_KEY: of_run}


def _start_of_last(messages: Sequence[AnyMessage]) -> int:
    """Return where the last message begins; a tool's result belongs to the message that called the tool."""
    start = max(0, len(messages) - 1)
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    return start


def _with_name(message: AnyMessage, name: str) -> AnyMessage:
    if isinstance(message, AIMessage) and not message.name:
        return cast("AnyMessage", message.model_copy(update={"name": name}))
    return message
