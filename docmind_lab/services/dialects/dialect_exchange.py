"""What every dialect is translated to and from: one request, one answer, one refusal.

A request of any dialect becomes the payload of an OpenAI chat completion, so that one conversation has one reply, one
number of tokens and one latency, whatever it is written in.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol

from docmind_lab.services.plan import SIGN_OF_LIFE, ServiceRequest
from docmind_lab.services.scripted_model.conversation import Reply
from docmind_lab.statistics.latency.profile import LlmLatency

CREATED: Final = 0
"""When every answer was made: not the time, so that the same request gets the same bytes."""

EVENT_STREAM: Final = "text/event-stream"
JSON_LINES: Final = "application/x-ndjson"

Message = dict[str, Any]
"""A message of a chat completion."""

Operation = Literal["generate", "embed", "count", "models", "model", "describe", "unknown"]
FinishReason = Literal["stop", "length", "tool_calls"]
ErrorKind = Literal["invalid", "not_found", "method", "rate_limit", "server", "unavailable"]


class Refusal(Exception):
    """A request that is not served, as a dialect's error says it. retry_after: seconds, as the header has them."""

    def __init__(
        self,
        status: int,
        message: str,
        kind: ErrorKind = "invalid",
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.param, self.code, self.retry_after = status, kind, param, code, retry_after


@dataclass(frozen=True)
class Route:
    """What a path asks for. model: empty where the body names it. variant: which of a dialect's ways to ask it is."""

    operation: Operation
    method: str = "POST"
    model: str = ""
    variant: str = ""


@dataclass(frozen=True)
class EmbeddingRequest:
    """Texts whose vectors are asked for. size: numbers of each vector; None for the model's own."""

    texts: tuple[str, ...]
    model: str
    size: int | None = None


@dataclass(frozen=True)
class Answer:
    """The model's answer before it is written in a dialect. digest: of request and key, for ids that stay the same."""

    reply: Reply
    finish: FinishReason
    model: str
    digest: str
    input_tokens: int
    output_tokens: int
    latency: LlmLatency
    route: Route
    payload: Mapping[str, Any] = field(default_factory=dict)

    def calls(self, prefix: str = "call_") -> list[tuple[str, str, dict[str, Any]]]:
        """Return id, name and arguments of each tool call."""
        end = self.digest[-16:]
        return [
            (f"{prefix}{end}_{index}", call.name, dict(call.arguments))
            for index, call in enumerate(self.reply.tool_calls)
        ]


@dataclass(frozen=True)
class Rendering(abc.ABC):
    """An answer in a dialect: as one JSON value, and as the parts of a stream."""

    answer: Answer
    content_type: ClassVar[str] = EVENT_STREAM
    """Of the stream."""

    @abc.abstractmethod
    def whole(self) -> Any:
        """Return the answer as one JSON value."""

    def opening(self) -> Sequence[bytes]:
        """Return what goes out with the headers."""
        return ()

    @abc.abstractmethod
    def text(self, piece: str) -> bytes:
        """Return the part that adds a piece of text."""

    @abc.abstractmethod
    def calls(self) -> Sequence[bytes]:
        """Return the parts that carry the tool calls."""

    @abc.abstractmethod
    def closing(self) -> Sequence[bytes]:
        """Return what ends the stream."""


class Dialect(Protocol):
    """One provider's way to ask a model and to answer."""

    sign_of_life: ClassVar[bytes] = SIGN_OF_LIFE
    """What its client skips between two events of a stream."""

    renders: ClassVar[type[Rendering]]
    """What writes its answers."""

    def route(self, request: ServiceRequest) -> Route | None:
        """Return what the path asks for; None for a path of another dialect."""
        ...

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request as the payload of an OpenAI chat completion. Raises: Refusal, naming the field."""
        ...

    def rendering(self, answer: Answer) -> Rendering:
        """Return the answer in this dialect."""
        return self.renders(answer)

    def embedding_request(self, route: Route, payload: Mapping[str, Any]) -> EmbeddingRequest:
        """Return the texts whose vectors are asked for. Raises: Refusal, naming the field."""
        raise Refusal(404, "This provider has no embeddings.", "not_found")

    def embeddings(
        self, route: Route, payload: Mapping[str, Any], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Any:
        """Return the vectors as the JSON value of this dialect. tokens: of all texts."""
        raise Refusal(404, "This provider has no embeddings.", "not_found")

    def information(self, route: Route, model: str, tokens: int) -> Any:
        """Return what is asked about models, without a model's work. model: the service's own. tokens: counted."""
        raise Refusal(404, "This provider lists no models here.", "not_found")

    def error(self, refusal: Refusal) -> Any:
        """Return the JSON value of an error, of which the provider's client makes its own exception."""
        ...


def messages_of_one(role: Any, text: str, calls: list[Message], results: list[Message]) -> list[Message]:
    """Return one message of a dialect as messages of a chat, where each result of a tool is a message of its own."""
    if results and not text and not calls:
        return results
    message: Message = {"role": role, "content": text or None}
    return [*results, message | {"tool_calls": calls} if calls else message]


def called(call_id: Any, name: Any, arguments: Any) -> Message:
    """Return a call of a tool as a message of a chat has it. arguments: an object, or one as JSON already."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"id": call_id, "function": {"name": name, "arguments": text}}


def format_of(schema: Any, *, is_json: bool = False) -> dict[str, Any] | None:
    """Return the format that a chat asks of an answer: JSON under a schema, any JSON object, or none."""
    if schema:
        return {"type": "json_schema", "json_schema": {"schema": schema}}
    return {"type": "json_object"} if is_json else None


def compact(value: Any) -> str:
    """Return a value as JSON without white space."""
    return json.dumps(value, separators=(",", ":"))


def event(payload: Any, name: str = "") -> bytes:
    """Return one event of an event stream."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {compact(payload)}\n\n".encode()


def objects_in(value: Any, field_name: str, *, needed: bool = False) -> list[dict[str, Any]]:
    """Return a list of objects. Raises: Refusal naming the field, if it is none, or empty where one is needed."""
    entries = [] if value is None else value
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries) or (needed and not entries):
        nonempty = "a non-empty" if needed else "an"
        raise Refusal(400, f"'{field_name}' must be {nonempty} array of objects.", param=field_name)
    return entries


def texts_in(value: Any, field_name: str) -> tuple[str, ...]:
    """Return the texts of an input, also of lists of token ids, one word for each. Raises: Refusal."""
    entries = value if isinstance(value, list) and not _is_token_ids(value) else [value]
    if not entries or not all(isinstance(each, str) or _is_token_ids(each) for each in entries):
        message = f"'{field_name}' must be a text, an array of texts, or arrays of token ids."
        raise Refusal(400, message, param=field_name)
    return tuple(each if isinstance(each, str) else " ".join(f"token{number}" for number in each) for each in entries)


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(each) is int for each in value)


def size_in(value: Any, field_name: str) -> int | None:
    """Return the size asked for a vector, None if it is left out. Raises: Refusal for one that no vector can have."""
    if value is None:
        return None
    if type(value) is not int or not 1 <= value <= LARGEST_VECTOR:
        raise Refusal(400, f"'{field_name}' must be a whole number from 1 to {LARGEST_VECTOR}.", param=field_name)
    return value


LARGEST_VECTOR: Final = 16_384
"""Numbers of a vector at the most; more than any model of today has."""
