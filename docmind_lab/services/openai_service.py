"""The simulated model server: answers each dialect's requests with plans, in JSON or as a stream.

`services/dialects` says which paths there are and what the bytes look like. Everything else is the same in all of them.

Latency = time to first token + output tokens × time per token, drawn from the profile by the key of the call.
Tokens are counted as words and punctuation marks: the simulated model's own tokenizer. A reply of none is one token,
with which the model says that it has nothing to say. Any name of a model is answered.

A completion takes one of the model's slots, and holds it as long as its plan lasts; a hang for ever. What is refused
takes none: requests that are not valid, and those that a fault turns away at the gate (500, 429).

Embeddings are rows of kind "retrieval": they take as long as a search of the profile, and a hundredth of it more for
each text after the first. They take no slot. The faults of searches strike them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from docmind_lab.services.conversation_rules import refusal_of
from docmind_lab.services.dialects import Answer, Dialect, Dialects, Refusal, Route
from docmind_lab.services.dialects.dialect_exchange import FinishReason, Rendering
from docmind_lab.services.dialects.vectors import size_of, vector_of
from docmind_lab.services.fault_effects import REFUSALS, of_any_request, under_fault
from docmind_lab.services.faults import Fault, brownouts_of, first_that_strikes
from docmind_lab.services.plan import (
    ODD_REQUEST,
    Chunk,
    Headers,
    Pace,
    Plan,
    ServiceRequest,
    Step,
    Wait,
    json_steps,
)
from docmind_lab.services.scripted_model import Conversation, Reply, reply_to
from docmind_lab.services.scripted_model.conversation import message_text
from docmind_lab.services.scripted_model.scripted_roles import role_of
from docmind_lab.services.scripted_model.tokens import count_tokens, first_tokens, pieces_of
from docmind_lab.services.scripted_model.variation import UnderPressure, vary_reply
from docmind_lab.statistics.latency.profile import LatencyProfile, LlmLatency

MODEL_NAME = "docmind-scripted"
EMBEDDING_ROLE: Final = "embedding"
"""Who asks for embeddings, of a client that does not say its role."""
_SHARE_OF_A_FURTHER_TEXT = 0.01


# A call that the profile has hang never gets as far as what another fault would do to its reply.
_DRAWN_HANG = Fault("hang", role="*")


def _refusal_plan(fault: Fault, dialect: Dialect) -> Plan:
    """Return the plan that refuses a request before the model: no token is read or generated, no slot is taken."""
    if fault.kind == "rate_limit":
        wait = f"{fault.seconds:.0f}"
        message = f"Rate limit reached for requests. Please try again in {wait}s."
        refusal = Refusal(429, message, "rate_limit", code="rate_limit_exceeded", retry_after=wait)
    elif fault.kind == "retrieval_503":
        refusal = Refusal(503, "The service is unavailable, try again later.", "unavailable")
    else:
        refusal = Refusal(500, "The server had an error while processing your request.", "server")
    return replace(_error_plan(refusal, dialect), fault=fault.kind)


_CHAT: Final = "/chat/completions"
# Some kilobytes each; the runs of one seed have some twenty.
_MAX_KNOWN: Final = 1_000


def _error_plan(refusal: Refusal, dialect: Dialect) -> Plan:
    headers = (("retry-after", refusal.retry_after),) if refusal.retry_after else ()
    return Plan(json_steps(refusal.status, dialect.error(refusal), headers), "llm")


@dataclass(frozen=True)
class OpenAIService:
    """The simulated model server, which turns requests into plans.

    default_seed: for clients that do not say which run they belong to. model: the name in its list of models, and of a
    request that names none. variation: share of the model's decisions that go another way, see
    `scripted_model/variation.py`. under_pressure: what the model does when its prompt says that little time is left,
    see `scripted_model/variation.py`. script: the model's reply to a conversation. dialects: in which it is asked;
    services that share them know each other's earlier responses. known: plans of chat completions, by request and key:
    they depend on nothing else, and runs of one seed under several alternatives ask the same. checks_conversation:
    whether a conversation that breaks the provider's rules is refused (`conversation_rules.py`).
    """

    profile: LatencyProfile
    faults: tuple[Fault, ...] = ()
    default_seed: int = 0
    model: str = field(default=MODEL_NAME)
    variation: float = 0.0
    under_pressure: UnderPressure = UnderPressure()  # noqa: RUF009 - frozen, so that all may share it
    script: Callable[[Conversation], Reply] = reply_to
    dialects: Dialects = field(default_factory=Dialects, repr=False, compare=False)
    known: dict[tuple[object, ...], Plan] = field(default_factory=dict, repr=False, compare=False)
    checks_conversation: bool = False

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request; one that cannot be served gets an error in its dialect at once."""
        # Other dialects remember responses, and have another answer to the same request later.
        if not request.path.endswith(_CHAT):
            return of_any_request(self._plan(request), request, self.faults, self.default_seed)
        tags = (request.tag(name) for name in ("seed", "role", "step", "attempt", "request"))
        # By the digest of the body: a long conversation is not kept for the sake of its answer.
        digest = hashlib.blake2b(request.body, digest_size=16).digest()
        key = (request.method, request.path, request.query, digest, *tags)
        plan = self.known.get(key)
        if plan is None:
            if len(self.known) >= _MAX_KNOWN:
                self.known.clear()
            plan = of_any_request(self._plan(request), request, self.faults, self.default_seed)
            self.known[key] = plan
        return plan

    def _plan(self, request: ServiceRequest) -> Plan:
        dialect, route = self.dialects.find(request)
        try:
            self.dialects.check(request, route)
            if route.method == "GET":
                return self._information(dialect, route, 0)
            return self._read(request, dialect, route)
        except Refusal as refusal:
            return _error_plan(refusal, dialect)

    def _information(self, dialect: Dialect, route: Route, tokens: int) -> Plan:
        return Plan(json_steps(200, dialect.information(route, self.model, tokens)), "llm")

    def _read(self, request: ServiceRequest, dialect: Dialect, route: Route) -> Plan:
        """Return the plan of a request with a body. Raises: Refusal for one that cannot be read."""
        try:
            body = _body_of(request)
            if route.operation == "describe":
                return self._information(dialect, route, 0)
            if route.operation == "embed":
                return self._embeddings(request, dialect, route, body)
            chat = dialect.chat(route, body)
            _check_limits(chat)
            if self.checks_conversation and (broken := refusal_of(chat, type(dialect).__module__.rpartition(".")[2])):
                raise broken
            conversation = Conversation.from_request(chat)
            if route.operation == "count":
                return self._information(dialect, route, _tokens_of(conversation))
            return self._completion(request, dialect, route, body, chat, conversation)
        except ODD_REQUEST as error:
            # The reply follows from the request alone: what a script cannot read was not put as it should be.
            raise Refusal(400, f"The conversation cannot be read ({type(error).__name__}: {error}).") from error

    def _completion(
        self,
        request: ServiceRequest,
        dialect: Dialect,
        route: Route,
        body: Mapping[str, Any],
        chat: Mapping[str, Any],
        conversation: Conversation,
    ) -> Plan:
        role = role_of(conversation)
        key = request.draw_key(role, str(len(conversation.messages)), self.default_seed)
        # What the model says does not depend on how often it was asked.
        conversation = replace(conversation, key=replace(key, attempt=1))
        # Only the door knows what time it is, for a brownout.
        drawn = (fault for fault in self.faults if fault.kind != "brownout")
        is_named = bool(request.tag("role"))
        fault = first_that_strikes(drawn, "llm", key, is_named=is_named, request=request.node_request)
        if fault is not None and fault.kind in REFUSALS:
            return _refusal_plan(fault, dialect)
        latency = self.profile.draw_llm(key)
        if latency.hangs:
            fault = _DRAWN_HANG
        nothing = fault is not None and fault.kind == "empty"
        reply = Reply() if nothing else self.script(conversation)
        made_up = f"shape {key.role}" if reply.is_guess else ""
        reply = vary_reply(reply, conversation, role, key, self.variation)
        reply = reply if nothing else self.under_pressure.reply(reply, conversation, role)
        reply, finish = _truncate(reply, chat.get("max_completion_tokens") or chat.get("max_tokens"))
        answer = Answer(
            reply=reply,
            finish=finish,
            model=str(chat.get("model") or route.model or self.model),
            digest=hashlib.blake2b(request.body + str(key).encode(), digest_size=12).hexdigest(),
            input_tokens=_tokens_of(conversation),
            output_tokens=max(1, count_tokens(_reply_text(reply))),
            latency=latency,
            route=route,
            payload=body,
        )
        plan = self._answer_plan(answer, dialect, streams=bool(chat.get("stream")))
        plan = replace(plan, slowdown=self.profile.of_role(key.role).slowdown, made_up=made_up)
        browned = brownouts_of(self.faults, key, is_named=is_named)
        paces = tuple(Pace(each.factor, *each.window_s) for each in browned if each.factor and each.window_s)
        plan = replace(plan, paces=paces)
        if fault is None:
            return plan
        return replace(plan, fault=fault.kind) if nothing else under_fault(plan, fault, dialect.sign_of_life)

    def _answer_plan(self, answer: Answer, dialect: Dialect, *, streams: bool) -> Plan:
        """Return the plan of a good answer."""
        rendering, latency, tokens = dialect.rendering(answer), answer.latency, answer.output_tokens
        steps: tuple[Step, ...]
        if streams:
            steps = _stream(rendering, answer.reply, latency)
        else:
            waits = (Wait(latency.first_token_s), Wait(latency.inter_token_s * tokens, tokens=tokens))
            steps = waits + json_steps(200, rendering.whole())
        return Plan(steps, "llm", answer.input_tokens, tokens, takes_slot=True)

    def _embeddings(self, request: ServiceRequest, dialect: Dialect, route: Route, body: Mapping[str, Any]) -> Plan:
        wish = dialect.embedding_request(route, body)
        key = request.draw_key(EMBEDDING_ROLE, str(len(wish.texts)), self.default_seed)
        fault = first_that_strikes(self.faults, "retrieval", key, request=request.node_request)
        if fault is not None and fault.kind == "retrieval_503":
            return replace(_refusal_plan(fault, dialect), kind="retrieval")
        size = wish.size or size_of(wish.model)
        vectors = [vector_of(text, size) for text in wish.texts]
        tokens = sum(count_tokens(text) for text in wish.texts)
        share = 1 + _SHARE_OF_A_FURTHER_TEXT * (len(wish.texts) - 1)
        reply = json_steps(200, dialect.embeddings(route, body, vectors, tokens))
        plan = Plan((Wait(self.profile.draw_retrieval(key) * share), *reply), "retrieval", input_tokens=tokens)
        return plan if fault is None else under_fault(plan, fault)


def _body_of(request: ServiceRequest) -> dict[str, Any]:
    try:
        payload = request.json()
    except ValueError as error:
        raise Refusal(400, f"The body is not JSON: {error}.") from error
    if not isinstance(payload, dict):
        raise Refusal(400, "The body must be a JSON object.")
    return payload


def _check_limits(chat: Mapping[str, Any]) -> None:
    """Check the limits of a chat completion. Raises: Refusal naming the field that is wrong."""
    for name in ("max_tokens", "max_completion_tokens"):
        limit = chat.get(name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise Refusal(400, f"{name!r} must be a whole number from 1 up, not {limit!r}.", param=name)


def _tokens_of(conversation: Conversation) -> int:
    return sum(count_tokens(message_text(message)) for message in conversation.messages)


def _reply_text(reply: Reply) -> str:
    calls = (f"{call.name}({json.dumps(dict(call.arguments))})" for call in reply.tool_calls)
    return " ".join([reply.text, *calls])


def _truncate(reply: Reply, limit: int | None) -> tuple[Reply, FinishReason]:
    """Cut the reply to a number of tokens; return it with its finish reason."""
    if limit is not None and count_tokens(reply.text) > limit:
        return Reply(first_tokens(reply.text, limit)), "length"
    return reply, "tool_calls" if reply.tool_calls else "stop"


def _stream(rendering: Rendering, reply: Reply, latency: LlmLatency) -> tuple[Step, ...]:
    """Return the steps of a stream: each token of the text when it is there, and tool calls in their parts, evenly."""
    headers = Headers(200, (("content-type", rendering.content_type), ("cache-control", "no-cache")))
    steps: list[Step] = [Wait(latency.first_token_s), headers, *map(Chunk, rendering.opening())]
    sent = 0
    for piece in pieces_of(reply.text):
        steps += [Wait(latency.inter_token_s, tokens=1), Chunk(rendering.text(piece))]
        sent += len(piece)
    if reply.text[sent:]:
        steps.append(Chunk(rendering.text(reply.text[sent:])))
    if reply.tool_calls:
        tokens, parts = count_tokens(_reply_text(Reply(tool_calls=reply.tool_calls))), rendering.calls()
        for number, part in enumerate(parts):
            of_part = tokens * (number + 1) // len(parts) - tokens * number // len(parts)
            steps += [Wait(latency.inter_token_s * of_part, tokens=of_part), Chunk(part)]
    if not count_tokens(_reply_text(reply)):
        steps.append(Wait(latency.inter_token_s, tokens=1))
    return (*steps, *map(Chunk, rendering.closing()))
