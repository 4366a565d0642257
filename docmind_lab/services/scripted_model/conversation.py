"""A chat request, parsed: the question, documents, tools on offer, and what agents have reported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from docmind_lab.core.randomness import DrawKey

TASK_PREFIX = "Task: "
HANDOFF_PREFIX = "transfer_to_"


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model asks for."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """The model's reply. is_guess: whether the shape of its text was guessed from the request's words."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    is_guess: bool = False


@dataclass(frozen=True)
class Document:
    """A document in the model's context."""

    id: str
    content: str


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message whose content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def parse_json(text: str | bytes) -> Any:
    """Return what a text is in JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _output_schema(response_format: Any) -> Mapping[str, Any] | None:
    kind = response_format.get("type") if isinstance(response_format, Mapping) else None
    if kind == "json_object":
        return {}
    schema = (response_format.get("json_schema") or {}).get("schema") if kind == "json_schema" else None
    return schema if isinstance(schema, Mapping) else None


@dataclass(frozen=True)
class Conversation:
    """A parsed chat completion request.

    messages: in their order, in the shape of a chat completion's. tools: name → JSON schema of the parameters, in the
    order given. tool_choice: whether a tool may, must or must not be called. named_tool: the tool that must be called;
    empty if none is named. output_schema: JSON schema of the answer; an empty one for any JSON object, None for free
    text. calls_in_parallel: whether one reply may call several tools. key: of the call: what is drawn for its reply
    depends on it.
    """

    messages: tuple[Mapping[str, Any], ...]
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tool_choice: Literal["auto", "required", "none"] = "auto"
    named_tool: str = ""
    output_schema: Mapping[str, Any] | None = None
    calls_in_parallel: bool = True
    key: DrawKey = DrawKey(0, "assistant", "0")  # noqa: RUF009 - frozen, so that all may share it

    @classmethod
    def from_request(cls, payload: Mapping[str, Any]) -> Conversation:
        """Parse the JSON body of `/v1/chat/completions`."""
        tools = {}
        for tool in payload.get("tools") or ():
            function = tool.get("function", {})
            tools[str(function.get("name", ""))] = function.get("parameters") or {}
        choice = payload.get("tool_choice")
        named = str((choice.get("function") or {}).get("name", "")) if isinstance(choice, Mapping) else ""
        return cls(
            messages=tuple(payload["messages"]),
            tools={} if choice == "none" else tools,
            tool_choice=choice if choice in ("required", "none") else "auto",
            named_tool=named if named in tools else "",
            output_schema=_output_schema(payload.get("response_format")),
            calls_in_parallel=payload.get("parallel_tool_calls") is not False,
        )

    @property
    def system_prompt(self) -> str:
        """Text of the system and developer messages."""
        return "\n".join(message_text(m) for m in self.messages if m.get("role") in ("system", "developer"))

    @property
    def question(self) -> str:
        """The user's current question, not a task that was derived from it."""
        return next((t for t in reversed(self._user_texts()) if not t.startswith(TASK_PREFIX)), "")

    @property
    def task(self) -> str:
        """The task of this agent: its own if it was given one, else the question."""
        texts = self._user_texts()
        return texts[-1].removeprefix(TASK_PREFIX) if texts else ""

    def _user_texts(self) -> list[str]:
        return [message_text(m) for m in self.messages if m.get("role") == "user"]

    def current_turn(self) -> tuple[Mapping[str, Any], ...]:
        """Return the messages after the user's current question."""
        start = 0
        for position, message in enumerate(self.messages):
            if message.get("role") == "user" and not message_text(message).startswith(TASK_PREFIX):
                start = position + 1
        return self.messages[start:]

    def called_tools(self, *, since_question: bool = True) -> Iterator[ToolCall]:
        """Yield the tools that any agent called, oldest first. since_question: leave out those before the question."""
        for message in self.current_turn() if since_question else self.messages:
            for call in message.get("tool_calls") or ():
                function = call.get("function", {})
                arguments = parse_json(function.get("arguments") or "{}")
                yield ToolCall(str(function.get("name", "")), arguments if isinstance(arguments, dict) else {})

    def handoff_rounds(self) -> list[list[str]]:
        """Return the agents handed over to since the question: one list for each message with hand-overs."""
        rounds = []
        for message in self.current_turn():
            names = [str(call.get("function", {}).get("name", "")) for call in message.get("tool_calls") or ()]
            agents = [name.removeprefix(HANDOFF_PREFIX) for name in names if name.startswith(HANDOFF_PREFIX)]
            if agents:
                rounds.append(agents)
        return rounds

    def reports(self) -> list[dict[str, Any]]:
        """Return the JSON objects that tools returned since the question, oldest first."""
        results = [parse_json(message_text(m)) for m in self.current_turn() if m.get("role") == "tool"]
        return [report for report in results if isinstance(report, dict)]

    def latest_report(self, key: str) -> dict[str, Any] | None:
        """Return the newest tool result that has `key`; None without one."""
        return next((report for report in reversed(self.reports()) if key in report), None)

    def agent_text(self, name_part: str) -> str:
        """Return the newest text of an agent whose name contains `name_part`; empty without one."""
        for message in reversed(self.current_turn()):
            said_by = str(message.get("name") or "")
            if message.get("role") == "assistant" and name_part in said_by and message_text(message):
                return message_text(message)
        return ""

    def documents(self) -> list[Document]:
        """Return the documents of tool results, from "documents" or any other text, oldest first, each id once."""
        documents: dict[str, Document] = {}
        for position, message in enumerate(self.messages):
            if message.get("role") != "tool":
                continue
            text, items = message_text(message), None
            payload = parse_json(text)
            if isinstance(payload, dict):
                items = payload.get("documents")
            elif payload is None and HANDOFF_PREFIX not in text and not text.startswith("Successfully"):
                items = [{"id": message.get("name") or message.get("tool_call_id") or position, "content": text}]
            # Another's tool may report how many documents there are under the same name.
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict) and item.get("content"):
                    document = Document(str(item.get("id", position)), str(item["content"]))
                    documents.setdefault(document.id, document)
        return list(documents.values())
