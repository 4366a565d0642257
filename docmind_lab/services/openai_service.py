"""The simulated model server: OpenAI's chat completions as plans, in JSON or as an event stream.

    POST /v1/chat/completions    GET /v1/models

Latency = time to first token + output tokens × time per token, drawn from the profile by the key of the call.
Tokens are counted as words and punctuation marks: the simulated model's own tokenizer. A reply of none is one token,
with which the model says that it has nothing to say.

A completion takes one of the model's slots, and holds it as long as its plan lasts; a hang for ever. What is refused
takes none: requests that are not valid, and those that a fault turns away at the gate (500, 429).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from docmind_lab.analysis.latency.profile import LatencyProfile, LlmLatency
from docmind_lab.core.randomness import DrawKey
from docmind_lab.network.attempts import HEADER_PREFIX
from docmind_lab.services.fault_plans import under_fault
from docmind_lab.services.faults import Fault, first_that_strikes, load_limit_of
from docmind_lab.services.plan import ODD_REQUEST, Chunk, Headers, Limit, Plan, ServiceRequest, Step, Wait, json_steps
from docmind_lab.services.scripted_model import Conversation, Reply, reply_to
from docmind_lab.services.scripted_model.conversation import message_text
from docmind_lab.services.scripted_model.roles import role_of
from docmind_lab.services.scripted_model.variation import vary_reply

MODEL_NAME = "docmind-scripted"
ANY_MODEL = "any-model"
ANY_MODEL_HEADER = HEADER_PREFIX + ANY_MODEL
"""Set by a client whose model has a name of its own: the simulated model answers to it."""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_CREATED = 0  # not the time: the same request gets the same bytes


def count_tokens(text: str) -> int:
    """Count the words and punctuation marks in a text."""
    return len(_TOKEN.findall(text))


# A call that the profile has hang never gets as far as what another fault would do to its reply.
_DRAWN_HANG = Fault("hang", role="*")
_REFUSALS = frozenset({"http_500", "rate_limit"})


def _refusal_plan(fault: Fault) -> Plan:
    """Return the plan that refuses a request before the model: no token is read or generated, no slot is taken."""
    if fault.kind in ("rate_limit", "rate_limit_above"):
        # Load passes within the time of a call: a client that is to come again is told the shortest whole second.
        wait = "1" if fault.seconds is None else f"{fault.seconds:.0f}"
        message, kind = f"Rate limit reached for requests. Please try again in {wait}s.", "requests"
        error = {"message": message, "type": kind, "param": None, "code": "rate_limit_exceeded"}
        return Plan(json_steps(429, {"error": error}, (("retry-after", wait),)), "llm", fault=fault.kind)
    message = "The server had an error while processing your request."
    error = {"message": message, "type": "server_error", "param": None, "code": None}
    return Plan(json_steps(500, {"error": error}), "llm", fault=fault.kind)


class _BadRequest(Exception):
    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


@dataclass(frozen=True)
class OpenAIService:
    """The simulated model server, which turns requests into plans.

    default_seed: for clients that do not say which run they belong to. variation: share of the model's decisions that
    go another way, see `scripted_model/variation.py`. script: the model's reply to a conversation.
    """

    profile: LatencyProfile
    faults: tuple[Fault, ...] = ()
    default_seed: int = 0
    model: str = field(default=MODEL_NAME)
    variation: float = 0.0
    script: Callable[[Conversation], Reply] = reply_to

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request; a request that cannot be served gets an OpenAI-shaped error at once."""
        try:
            if request.path == "/v1/models" and request.method == "GET":
                entry = {"id": self.model, "object": "model", "created": _CREATED, "owned_by": "docmind_lab"}
                return Plan(json_steps(200, {"object": "list", "data": [entry]}), "llm")
            if request.path != "/v1/chat/completions":
                raise _BadRequest(404, f"Unknown request URL: {request.method} {request.path}.", code="unknown_url")
            if request.method != "POST":
                raise _BadRequest(405, f"Method {request.method} is not allowed here; use POST.")
            return self._read(request)
        except _BadRequest as error:
            kind = "invalid_request_error"
            payload = {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}
            return Plan(json_steps(error.status, payload), "llm")

    def _read(self, request: ServiceRequest) -> Plan:
        """Return the plan of a completion. Raises: _BadRequest for a request that cannot be read."""
        try:
            return self._completion(request)
        except ODD_REQUEST as error:
            # The reply follows from the request alone: what a script cannot read was not put as it should be.
            raise _BadRequest(400, f"The conversation cannot be read ({type(error).__name__}).") from error

    def _completion(self, request: ServiceRequest) -> Plan:
        payload = self._validate(request)
        conversation = Conversation.from_request(payload)
        key = request.draw_key(role_of(conversation), str(len(conversation.messages)), self.default_seed)
        # Whether a limit of load refuses is known to the door, which counts what is under way.
        drawn = (fault for fault in self.faults if fault.kind != "rate_limit_above")
        fault = first_that_strikes(drawn, "llm", key, is_named=bool(request.tag("role")))
        if fault is not None and fault.kind in _REFUSALS:
            return _refusal_plan(fault)
        latency = self.profile.draw_llm(key)
        if latency.hangs:
            fault = _DRAWN_HANG
        nothing = fault is not None and fault.kind == "empty"
        reply = Reply() if nothing else self.script(conversation)
        reply = vary_reply(reply, conversation, role_of(conversation), key, self.variation)
        plan = self._reply_plan(request, payload, conversation, reply, key, latency)
        limit = load_limit_of(self.faults, key)
        if limit is not None and limit.calls is not None:
            plan = replace(plan, limit=Limit(limit.calls, _refusal_plan(limit)))
        if fault is None:
            return plan
        return replace(plan, fault=fault.kind) if nothing else under_fault(plan, fault)

    def _reply_plan(
        self,
        request: ServiceRequest,
        payload: Mapping[str, Any],
        conversation: Conversation,
        reply: Reply,
        key: DrawKey,
        latency: LlmLatency,
    ) -> Plan:
        """Return the plan of a good answer."""
        reply, finish_reason = _truncate(reply, payload.get("max_completion_tokens") or payload.get("max_tokens"))
        input_tokens = sum(count_tokens(message_text(message)) for message in conversation.messages)
        output_tokens = max(1, count_tokens(_reply_text(reply)))
        answer = _Answer(
            reply=reply,
            finish_reason=finish_reason,
            model=str(payload["model"]),
            id="chatcmpl-" + hashlib.blake2b(request.body + str(key).encode(), digest_size=12).hexdigest(),
            usage={
                "prompt_tokens": input_tokens,
                "completion_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
            },
        )
        if payload.get("stream"):
            wants_usage = bool((payload.get("stream_options") or {}).get("include_usage"))
            steps = answer.event_stream(latency.first_token_s, latency.inter_token_s, wants_usage)
        else:
            waits = (Wait(latency.first_token_s), Wait(latency.inter_token_s * output_tokens, tokens=output_tokens))
            steps = waits + json_steps(200, answer.completion())
        slowdown = self.profile.slowdown
        return Plan(steps, "llm", input_tokens, output_tokens, takes_slot=True, slowdown=slowdown)

    def _validate(self, request: ServiceRequest) -> Mapping[str, Any]:
        try:
            payload = request.json()
        except ValueError as error:
            raise _BadRequest(400, f"The body is not JSON: {error}.") from error
        if not isinstance(payload, dict):
            raise _BadRequest(400, "The body must be a JSON object.")
        messages = payload.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
            raise _BadRequest(400, "'messages' must be a non-empty array of objects.", param="messages")
        _check_optional_fields(payload)
        named = payload.get("model")
        if named != self.model and not (request.tag(ANY_MODEL) and isinstance(named, str)):
            message = f"The model '{payload.get('model')}' does not exist; this server has '{self.model}'."
            raise _BadRequest(404, message, param="model", code="model_not_found")
        return payload


def _check_optional_fields(payload: Mapping[str, Any]) -> None:
    """Check the types of optional fields. Raises: _BadRequest naming the first field that is wrong."""
    for name in ("max_tokens", "max_completion_tokens"):
        limit = payload.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise _BadRequest(400, f"{name!r} must be a whole number from 1 up, not {limit!r}.", param=name)
    if not isinstance(payload.get("stream_options") or {}, dict):
        raise _BadRequest(400, "'stream_options' must be an object.", param="stream_options")
    if not _holds_functions(payload.get("tools")):
        raise _BadRequest(400, "'tools' must be an array of objects that each hold a function.", param="tools")
    if not all(_holds_functions(message.get("tool_calls")) for message in payload["messages"]):
        raise _BadRequest(400, "'tool_calls' must be an array of objects that each hold a function.", param="messages")


def _holds_functions(entries: Any) -> bool:
    return isinstance(entries or [], list) and all(
        isinstance(entry, dict) and isinstance(entry.get("function"), dict) for entry in entries or ()
    )


def _reply_text(reply: Reply) -> str:
    calls = (f"{call.name}({json.dumps(dict(call.arguments))})" for call in reply.tool_calls)
    return " ".join([reply.text, *calls])


def _truncate(reply: Reply, limit: int | None) -> tuple[Reply, str]:
    """Cut the reply to a number of tokens; return it with its finish reason."""
    if limit is not None and count_tokens(reply.text) > limit:
        ends = [match.end() for match in _TOKEN.finditer(reply.text)]
        return Reply(reply.text[: ends[limit - 1]]), "length"
    return reply, "tool_calls" if reply.tool_calls else "stop"


@dataclass(frozen=True)
class _Answer:
    """A reply in the JSON shapes of OpenAI's API."""

    reply: Reply
    finish_reason: str
    model: str
    id: str
    usage: Mapping[str, int]

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{self.id[-16:]}_{index}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for index, call in enumerate(self.reply.tool_calls)
        ]

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text}
        if self.reply.tool_calls:
            message |= {"content": self.reply.text or None, "tool_calls": self._tool_calls()}
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": _CREATED,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason, "logprobs": None}],
            "usage": dict(self.usage),
        }

    def event_stream(self, first_token_s: float, inter_token_s: float, wants_usage: bool) -> tuple[Step, ...]:
        steps: list[Step] = [
            Wait(first_token_s),
            Headers(200, (("content-type", "text/event-stream"), ("cache-control", "no-cache"))),
            self._event({"role": "assistant", "content": ""}),
        ]
        text, position = self.reply.text, 0
        for match in _TOKEN.finditer(text):
            steps += [Wait(inter_token_s, tokens=1), self._event({"content": text[position : match.end()]})]
            position = match.end()
        if text[position:]:
            steps.append(self._event({"content": text[position:]}))
        if self.reply.tool_calls:
            tokens = count_tokens(_reply_text(Reply(tool_calls=self.reply.tool_calls)))
            steps.append(Wait(inter_token_s * tokens, tokens=tokens))
            calls = [{"index": index, **call} for index, call in enumerate(self._tool_calls())]
            steps.append(self._event({"tool_calls": calls}))
        if not count_tokens(_reply_text(self.reply)):
            steps.append(Wait(inter_token_s, tokens=1))
        steps.append(self._event({}, self.finish_reason))
        if wants_usage:
            steps.append(self._event(None))
        steps.append(Chunk(b"data: [DONE]\n\n"))
        return tuple(steps)

    def _event(self, delta: Mapping[str, Any] | None, finish_reason: str | None = None) -> Chunk:
        payload: dict[str, Any] = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": _CREATED,
            "model": self.model,
            "choices": [],
        }
        if delta is None:
            payload["usage"] = dict(self.usage)
        else:
            payload["choices"] = [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}]
        return Chunk(b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n")
