"""One conversation asked through the official client of each dialect: what came back, in one shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

QUESTION = "When does the quoll hunt in the forest?"
RESULT = "A quoll is a spotted marsupial. The quoll hunts at night in the eucalyptus forest."
SYSTEM = "Be brief."
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SHAPE = {
    "type": "object",
    "properties": {"animal": {"type": "string"}, "legs": {"type": "integer", "minimum": 1, "maximum": 8}},
    "required": ["animal", "legs"],
    "additionalProperties": False,
}
TOOL = "look_up"
# Another name than the service's own: every one is answered.
MODEL = "some-model"
TIMEOUT_S = 30


@dataclass
class Said:
    """What a model said. calls: name and arguments of each tool call. tokens: of the input, and of the output."""

    text: str = ""
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    tokens: tuple[int, int] = (0, 0)


@dataclass
class Asked:
    """What is asked. has_result: the tool was called before, and this is the request after it."""

    has_tool: bool = False
    has_result: bool = False
    shape: Mapping[str, Any] | None = None
    stream: bool = False


# ---- OpenAI


def _chat(asked: Asked) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    if asked.has_result:
        call = {"id": "c1", "type": "function", "function": {"name": TOOL, "arguments": '{"query": "quoll"}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "c1", "content": RESULT})
    made: dict[str, Any] = {"model": MODEL, "messages": messages, "stream": asked.stream}
    if asked.stream:
        made["stream_options"] = {"include_usage": True}
    if asked.has_tool:
        made["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": PARAMETERS}}]
    if asked.shape:
        made["response_format"] = {"type": "json_schema", "json_schema": {"name": "shape", "schema": asked.shape}}
    return made


def _said_in_chat(reply: Any, stream: bool) -> Said:
    said, arguments = Said(), dict[str, str]()
    for part in reply if stream else [reply]:
        for choice in part.choices:
            message = choice.delta if stream else choice.message
            said.text += message.content or ""
            for call in message.tool_calls or ():
                # Of a stream, only the first part of a call has its name.
                name = call.function.name or list(arguments)[-1]
                arguments[name] = arguments.get(name, "") + call.function.arguments
        if part.usage:
            said.tokens = (part.usage.prompt_tokens, part.usage.completion_tokens)
    said.calls = [(name, json.loads(text)) for name, text in arguments.items()]
    return said


def _responses(asked: Asked) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    if asked.has_result:
        items.append({"type": "function_call", "call_id": "c1", "name": TOOL, "arguments": '{"query": "quoll"}'})
        items.append({"type": "function_call_output", "call_id": "c1", "output": RESULT})
    made: dict[str, Any] = {"model": MODEL, "input": items, "instructions": SYSTEM, "stream": asked.stream}
    if asked.has_tool:
        made["tools"] = [{"type": "function", "name": TOOL, "parameters": PARAMETERS, "strict": False}]
    if asked.shape:
        made["text"] = {"format": {"type": "json_schema", "name": "shape", "schema": asked.shape}}
    return made


def _said_in_response(reply: Any, stream: bool) -> Said:
    said = Said()
    if stream:
        events = list(reply)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        said.text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        reply = events[-1].response
        assert reply.output_text == said.text
    said.text = reply.output_text
    said.calls = [(item.name, json.loads(item.arguments)) for item in reply.output if item.type == "function_call"]
    said.tokens = (reply.usage.input_tokens, reply.usage.output_tokens)
    return said


# ---- Anthropic


def _messages(asked: Asked) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    if asked.has_result:
        use = {"type": "tool_use", "id": "c1", "name": TOOL, "input": {"query": "quoll"}}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": RESULT}]})
    made: dict[str, Any] = {"model": MODEL, "max_tokens": 1000, "system": SYSTEM, "messages": messages}
    if asked.stream:
        made["stream"] = True
    if asked.has_tool:
        made["tools"] = [{"name": TOOL, "input_schema": PARAMETERS}]
    if asked.shape:
        made["output_config"] = {"format": {"type": "json_schema", "schema": asked.shape}}
    return made


def _said_in_message(reply: Any, stream: bool) -> Said:
    if not stream:
        text = "".join(block.text for block in reply.content if block.type == "text")
        calls = [(block.name, block.input) for block in reply.content if block.type == "tool_use"]
        return Said(text, calls, (reply.usage.input_tokens, reply.usage.output_tokens))
    said, arguments, given = Said(), list[tuple[str, str]](), 0
    for event in reply:
        if event.type == "message_start":
            given = event.message.usage.input_tokens
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            arguments.append((event.content_block.name, ""))
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            said.text += event.delta.text
        elif event.type == "content_block_delta":
            name, begun = arguments[-1]
            arguments[-1] = (name, begun + event.delta.partial_json)
        elif event.type == "message_delta":
            said.tokens = (given, event.usage.output_tokens)
    said.calls = [(name, json.loads(text)) for name, text in arguments]
    return said


# ---- Gemini


def _contents(asked: Asked) -> dict[str, Any]:
    contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    if asked.has_result:
        call = types.FunctionCall(id="c1", name=TOOL, args={"query": "quoll"})
        contents.append(types.Content(role="model", parts=[types.Part(function_call=call)]))
        response = types.FunctionResponse(id="c1", name=TOOL, response={"result": RESULT})
        contents.append(types.Content(role="user", parts=[types.Part(function_response=response)]))
    config = types.GenerateContentConfig(system_instruction=SYSTEM)
    if asked.has_tool:
        declared = types.FunctionDeclaration(name=TOOL, parameters_json_schema=PARAMETERS)
        config.tools = [types.Tool(function_declarations=[declared])]
    if asked.shape:
        config.response_mime_type, config.response_json_schema = "application/json", dict(asked.shape)
    return {"model": MODEL, "contents": contents, "config": config}


def _said_in_contents(reply: Any, stream: bool) -> Said:
    said = Said()
    for response in reply if stream else [reply]:
        for part in response.candidates[0].content.parts or ():
            said.text += part.text or ""
            if part.function_call:
                said.calls.append((part.function_call.name, part.function_call.args))
        if response.usage_metadata:
            usage = response.usage_metadata
            said.tokens = (usage.prompt_token_count, usage.candidates_token_count)
    return said


# ---- Ollama


def _ollama(asked: Asked) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    if asked.has_result:
        call = {"function": {"name": TOOL, "arguments": {"query": "quoll"}}}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_name": "c1", "content": RESULT})
    made: dict[str, Any] = {"model": MODEL, "messages": messages, "stream": asked.stream}
    if asked.has_tool:
        made["tools"] = [{"type": "function", "function": {"name": TOOL, "parameters": PARAMETERS}}]
    if asked.shape:
        made["format"] = asked.shape
    return made


def _said_by_ollama(reply: Any, stream: bool) -> Said:
    said = Said()
    for part in reply if stream else [reply]:
        said.text += part.message.content or ""
        said.calls += [(c.function.name, c.function.arguments) for c in part.message.tool_calls or ()]
        if part.done:
            said.tokens = (part.prompt_eval_count, part.eval_count)
    return said


@dataclass(frozen=True)
class Client:
    """An official client.

    payload: what it sends for a question. said: what came back, of a reply and whether it was streamed. open: the
    client at an address. ask: what sends the payload. errors: its own, by status.
    """

    payload: Callable[[Asked], dict[str, Any]]
    said: Callable[[Any, bool], Said]
    open: Callable[[str], Any]
    ask: Callable[[Any, Asked], Callable[..., Any]]
    errors: Mapping[int, type[Exception]]

    def sync(self, root: str, asked: Asked) -> Said:
        """What is said to the client. root: the address of the services."""
        with self.open(root) as client:
            reply = self.ask(client, asked)(**self.payload(asked))
            return self.said(list(reply) if asked.stream else reply, asked.stream)


def _at(kind: Callable[..., Any], path: str = "") -> Callable[[str], Any]:
    """Open a client that takes its address, key, retries and timeout by these names."""
    return lambda root: kind(base_url=f"{root}{path}", api_key="unused", max_retries=0, timeout=TIMEOUT_S)


def gemini(root: str) -> genai.Client:
    """Google's client at an address."""
    return genai.Client(api_key="unused", http_options={"base_url": root, "timeout": 1000 * TIMEOUT_S})


def _ask_gemini(client: Any, asked: Asked) -> Callable[..., Any]:
    return client.models.generate_content_stream if asked.stream else client.models.generate_content


OPENAI = _at(openai.OpenAI, "/v1")
OPENAI_ERRORS = {429: openai.RateLimitError, 500: openai.InternalServerError}
CLIENTS: dict[str, Client] = {
    "chat": Client(_chat, _said_in_chat, OPENAI, lambda client, asked: client.chat.completions.create, OPENAI_ERRORS),
    "responses": Client(
        _responses, _said_in_response, OPENAI, lambda client, asked: client.responses.create, OPENAI_ERRORS
    ),
    "anthropic": Client(
        _messages,
        _said_in_message,
        _at(anthropic.Anthropic),
        lambda client, asked: client.messages.create,
        {429: anthropic.RateLimitError, 500: anthropic.InternalServerError},
    ),
    "gemini": Client(
        _contents,
        _said_in_contents,
        gemini,
        _ask_gemini,
        {429: genai.errors.ClientError, 500: genai.errors.ServerError},
    ),
    "ollama": Client(
        _ollama,
        _said_by_ollama,
        lambda root: ollama.Client(root, timeout=TIMEOUT_S),
        lambda client, asked: client.chat,
        {429: ollama.ResponseError, 500: ollama.ResponseError},
    ),
}
