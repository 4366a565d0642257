"""One agent as a node of the supervisor graph: its input, its result, and what happens when its time is over.

An agent may have a part of the budget to itself (an allocation, or all but a reserve). When that part is over and the
run's own deadline is not, the agent is cut and the supervisor goes on without it; it is told so by a breadcrumb, which
is nothing that the agent says. The end of the run's own deadline ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, current_policy, deadline_of_role
from docmind_lab.core.errors import BudgetError, DeadlineError
from docmind_lab.core.sync_async import Operation, Steps
from docmind_lab.network.recorder import current_recorder
from docmind_lab.systems.base.bounded_calls import is_spent
from docmind_lab.systems.base.steps_node import StepsNode
from docmind_lab.systems.docmind.graphs.build_params import SupervisorBuildParams
from docmind_lab.systems.docmind.graphs.handoff import HANDBACK_PREFIX, TASK_PREFIX, normalised_name
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
        part = self._part(state)
        arguments = _with_deadline_of_part(part, state, config)
        last: Mapping[str, Any] = state

        # Streamed, so that what the agent had is kept when its budget ends in the middle.
        def run() -> None:
            nonlocal last
            for values in self.agent.stream(*arguments, stream_mode="values"):
                last = values

        async def run_async() -> None:
            nonlocal last
            async for values in self.agent.astream(*arguments, stream_mode="values"):
                last = values

        try:
            yield Operation(run, run_async)
        except BudgetError as error:
            return self._cut(state, last, error, part)
        return self._return(state, last, part)

    @property
    def role(self) -> str:
        """The role that the agent's calls are recorded under."""
        return self.name.removesuffix("_agent")

    def _part(self, state: Mapping[str, Any]) -> Deadline | None:
        """Return the deadline of the agent's part of the budget; None if it has all that is left."""
        deadline = Deadline.from_state(state)
        part = None if deadline is None else deadline_of_role(deadline, self.role)
        return None if part is deadline else part

    def _return(self, state: Mapping[str, Any], final: Mapping[str, Any], part: Deadline | None) -> Command[Any]:
        # A tool that is cut says so to its model and does not raise.
        if is_spent(part) and not is_spent(Deadline.from_state(state)):
            self._note_spent(part)
        return Command(goto=self.options.supervisor_name, update=self._delta(state, final))

    def _cut(
        self, state: Mapping[str, Any], last: Mapping[str, Any], error: BudgetError, part: Deadline | None
    ) -> Command[Any]:
        """Keep what the agent had so far and end the run, or return to the supervisor if only its part is over."""
        delta = self._delta(state, last)
        deadline = Deadline.from_state(state)
        # Parts are of time only: what refuses for another budget refuses everybody.
        has_part = isinstance(error, DeadlineError) and (part is not None or current_policy().reserve_s > 0)
        if deadline is None or not has_part or is_spent(deadline):
            return Command(goto=END, update={**delta, "stop_reason": error.stop_reason})
        self._note_spent(part)
        if self.name == self.options.answering_agent and not _has_spoken(self.name, state["messages"]):
            return Command(goto=END, update={**delta, "stop_reason": error.stop_reason})
        note = {"agent": self.name, "note": f"{self.name} had no time left for this; go on with what there is."}
        messages = [*delta["messages"], *self._handback_messages(json.dumps(note))]
        return Command(goto=self.options.supervisor_name, update={**delta, "messages": messages})

    def _note_spent(self, part: Deadline | None) -> None:
        recorder = current_recorder()
        if part is not None and recorder is not None:
            recorder.event("allotment_spent", self.role, allotted_s=max(0.0, part.limit_s))

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

    def _handback_messages(self, text: str) -> list[AnyMessage]:
        """Return the breadcrumb of a return: a call without text, so that it is not taken for the agent's words."""
        supervisor = self.options.supervisor_name
        call = ToolCall(name=HANDBACK_PREFIX + normalised_name(supervisor), args={}, id=f"back-{uuid4().hex}")
        return [
            AIMessage("", name=self.name, tool_calls=[call]),
            ToolMessage(text, tool_call_id=call["id"], name=call["name"]),
        ]


def _with_deadline_of_run(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
    """Return the agent's state with the deadline of the current run, not of the one that a checkpoint is from."""
    of_run = config.get("configurable", {}).get(DEADLINE_KEY)
    return state if of_run is None else {**state, DEADLINE_KEY: of_run}


def _with_deadline_of_part(
    part: Deadline | None, state: dict[str, Any], config: RunnableConfig
) -> tuple[dict[str, Any], RunnableConfig]:
    """Return state and configuration with the deadline of the agent's part, for the agent and everything inside it."""
    if part is None:
        return state, config
    return {**state, DEADLINE_KEY: part.at_s}, patch_config(config, configurable={DEADLINE_KEY: part.at_s})


def _has_spoken(name: str, messages: Sequence[AnyMessage]) -> bool:
    """Return whether the agent has said anything since the question; a task does not count as a question."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and not message.text.startswith(TASK_PREFIX):
            return False
        if isinstance(message, AIMessage) and message.name == name and message.text:
            return True
    return False


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
