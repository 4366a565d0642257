"""A model for plain nodes, called as agents' models are: recorded, held to the deadline, retried within it.

model_client = ModelClient(model, ModelCalls("judge", request_timeout_s=180))
message = yield model_client.ask([HumanMessage("…")], state, system="You judge …")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from docmind_lab.core.sync_async import Operation
from docmind_lab.network import LogicalCall, current_call
from docmind_lab.systems.base.model_calls import ModelCalls


def function_tool(name: str, description: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool in OpenAI's format. properties: name of each argument, all of them required → its JSON schema."""
    parameters = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


@dataclass(frozen=True)
class ModelClient:
    """A model, and the middleware, for the role that asks, that its calls go through. tags: for callbacks."""

    model: BaseChatModel
    calls: ModelCalls
    tags: tuple[str, ...] = ()

    def ask(
        self,
        messages: Sequence[AnyMessage],
        state: Mapping[str, Any],
        *,
        system: str = "",
        tools: Sequence[Any] = (),
    ) -> Operation:
        """Return an operation that asks the model and results in its `AIMessage`.

        state: of the graph that asks: its deadline, and its place in the run as `handoff_ordinal` and
        `fan_out_index`. tools: offered to the model, as `bind_tools` takes them. Waited for, it raises what
        `ModelCalls` raises: BudgetRefused, DeadlineExceeded, and what the client raises. A call that is made inside
        another one, such as a router engine's, is recorded as that one's child.
        """
        whole_state: Any = {"messages": [], **state}
        request = ModelRequest(
            model=self.model,
            messages=list(messages),
            system_message=SystemMessage(system) if system else None,
            tools=list(tools),
            state=whole_state,
        )
        parent = current_call()

        def send(limited: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(
                result=[self._runnable(limited, parent).invoke(_messages(limited), **limited.model_settings)]
            )

        async def send_async(limited: ModelRequest[Any]) -> ModelResponse[Any]:
            message = await self._runnable(limited, parent).ainvoke(_messages(limited), **limited.model_settings)
            return ModelResponse(result=[message])

        async def awaited() -> AIMessage:
            return _ai_message(await self.calls.awrap_model_call(request, send_async))

        return Operation(lambda: _ai_message(self.calls.wrap_model_call(request, send)), awaited)

    def _runnable(self, request: ModelRequest[Any], parent: LogicalCall | None) -> Any:
        call = current_call()
        if call is not None and parent is not None and call is not parent:
            call.parent_call_id = parent.call_id
        model: Any = request.model.bind_tools(request.tools) if request.tools else request.model
        return model.with_config(tags=list(self.tags)) if self.tags else model


def _messages(request: ModelRequest[Any]) -> list[Any]:
    system = [] if request.system_message is None else [request.system_message]
    return [*system, *request.messages]


def _ai_message(response: ModelResponse[Any]) -> AIMessage:
    return next(message for message in response.result if isinstance(message, AIMessage))
