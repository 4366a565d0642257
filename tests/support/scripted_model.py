"""A chat model that says what it was given, for agents whose conversation a test looks at."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage


class ScriptedModel(GenericFakeChatModel):
    """A model that says what it was given. asked: the conversations that it was sent."""

    asked: list[list[AnyMessage]]

    def bind_tools(self, *arguments: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> Any:
        self.asked.append(list(messages))
        return super()._generate(messages, *arguments, **options)


def scripted(*replies: AIMessage) -> ScriptedModel:
    return ScriptedModel(messages=iter(replies), asked=[])


def calling(*names: str) -> AIMessage:
    """Return a message that calls these tools; the id of each call has the tool's name."""
    calls = [{"name": name, "args": {"text": "x"}, "id": f"call-{name}"} for name in names]
    return AIMessage("", tool_calls=calls)
