"""The first rung: an agent with tools, in several rounds that share one timeout.

The timeout is an earlier deadline for its model calls: the smaller of the ladder's own and what is left of the run's,
if that is known here, less a reserve for the rungs below. What was written and said until then is kept.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from docmind_lab.core.clock import WALL
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.core.errors import BudgetError
from docmind_lab.core.sync_async import Operation, Steps
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.staged.parsing import parse_message
from docmind_lab.systems.staged.stage_calls import TOOLS
from docmind_lab.systems.staged.staged_events import note_stage_end, note_stage_start
from docmind_lab.systems.staged.staged_ledger import StageLedger
from docmind_lab.systems.staged.staged_state import StagedOptions, desk_of, last_reply

STAGE = "primary"
PROMPT = (
    "You turn a passage of a document into a knowledge graph. Write the entities that it is about, what it says of "
    "them, and how they are related, by calling the tools. Write only what the passage says. When all is written, say "
    "so in one sentence."
)
# Models whose client takes no part in deadlines are cut by the event loop, after those that do have cut themselves.
_BACKSTOP_S = 0.05


@dataclass(frozen=True)
class Primary:
    """The two nodes of the agent: `ask` asks its model, `tools` runs the calls of the reply."""

    options: StagedOptions
    model_client: ModelClient

    def ask(self, state: Mapping[str, Any], config: RunnableConfig) -> Steps[Command[Any]]:
        """Ask the model, as long as there is time and a round is left."""
        under_way = state.get("primary") or self._start(state)
        replies = [message for message in state["messages"] if isinstance(message, AIMessage)]
        if len(replies) >= self.options.max_rounds:
            return self._finish(state, under_way, "rounds")
        until: dict[str, Any] = {**state, DEADLINE_KEY: under_way["until_at"]}
        try:
            operation = self.model_client.ask(state["messages"], until, system=PROMPT, tools=TOOLS)
            message = yield _with_backstop(operation, under_way["until_at"])
        except GraphBubbleUp:
            raise
        except (TimeoutError, BudgetError) as error:
            reason = error.stop_reason if isinstance(error, BudgetError) else "deadline"
            return self._finish(state, under_way, "timeout", stop_reason=reason)
        except Exception as error:  # noqa: BLE001 - the rungs below are there for whatever an agent fails with
            return self._finish(state, under_way, "error", error_type=type(error).__name__)
        if message.tool_calls or message.invalid_tool_calls:
            return Command(goto="tools", update={"messages": [message], "primary": under_way})
        return self._finish({**state, "messages": [*state["messages"], message]}, under_way, "done", [message])

    def tools(self, state: Mapping[str, Any], config: RunnableConfig) -> Command[Any]:
        """Run the calls of the last message."""
        message, desk = last_reply(state["messages"]), desk_of(self.options, state, config)
        if message is None:
            return Command(goto=STAGE)
        parsed = parse_message(message)
        desk.ledger.skipped += parsed.invalid
        results = desk.run(STAGE, "agent", parsed.calls)
        call_ids = [call["id"] or "" for call in (*message.tool_calls, *message.invalid_tool_calls)]
        left_out = {"status": "error", "error_type": "invalid_call"}
        messages = [_tool_message(name, results.get(name, left_out)) for name in call_ids]
        return Command(goto=STAGE, update={"messages": messages, **desk.ledger.update()})

    def _start(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Start the agent's timeout; return when it began and when it ends."""
        options = self.options
        began_at = note_stage_start(STAGE)
        until_at, by_deadline = began_at + options.primary_timeout_s, False
        deadline = Deadline.from_state(state)
        if deadline is not None:
            reserved = deadline.child(options.reserve_s)
            if reserved.at_s < until_at:
                until_at, by_deadline = reserved.at_s, True
        return {"began_at": began_at, "until_at": until_at, "by_deadline": by_deadline}

    def _finish(
        self,
        state: Mapping[str, Any],
        under_way: Mapping[str, Any],
        outcome: str,
        messages: list[AIMessage] | None = None,
        *,
        stop_reason: str = "",
        error_type: str = "",
    ) -> Command[Any]:
        """Finish the agent's stage: go to the end if it has written something, else to the next rung."""
        ledger, began_at = StageLedger.of(state), under_way["began_at"]
        took_s = WALL.now() - began_at
        limit_s = max(0.0, under_way["until_at"] - began_at)
        detail = {**ledger.counts(), "timeout_s": limit_s, "error_type": error_type, "took_s": took_s}
        goto = "finalize" if ledger.confirmed else "suggested"
        note_stage_end(STAGE, outcome, goto, **detail)
        update: dict[str, Any] = {"messages": messages or [], "primary": dict(under_way)}
        if under_way["by_deadline"] and stop_reason:
            update["stop_reason"] = stop_reason
        return Command(goto=goto, update=update)


def _tool_message(call_id: str, result: Mapping[str, Any]) -> ToolMessage:
    failed = result.get("status") != "ok"
    return ToolMessage(json.dumps(result), tool_call_id=call_id, status="error" if failed else "success")


def _with_backstop(operation: Operation, until_at: float) -> Operation:
    """Wrap the operation so that the event loop ends its wait if the model's client does not."""

    async def awaited() -> Any:
        remaining_s = max(0.0, until_at - WALL.now())
        async with asyncio.timeout(remaining_s + _BACKSTOP_S):
            return await operation.awaited()

    return Operation(operation.blocking, awaited)
