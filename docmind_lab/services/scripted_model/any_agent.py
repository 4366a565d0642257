"""The replies of an agent of any framework, or of a user's own: call tools, then answer from what they returned.

The tools on offer decide, not the prompt. `reply_of_assistant` calls each of them once, with arguments that are valid
under its schema. A tool that only takes the final answer is called with it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from docmind_lab.services.scripted_model.conversation import HANDOFF_PREFIX, Conversation, Reply, ToolCall, message_text
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer, sentences
from docmind_lab.services.scripted_model.schema_values import value_for
from docmind_lab.services.scripted_model.text_protocols import OBSERVATION, json_in_words, reply_in_words
from docmind_lab.services.scripted_model.tokens import first_tokens

ANSWER_TOKENS: Final = 50
"""Words and punctuation marks of an answer at the most; a result of so many words makes an answer of just so many."""
SCRIPTED_REPLY: Final = "Scripted reply: "
"""How a reply begins to a request that came with no documents; the words of the request follow."""
MOST_CALLS_OF_A_TOOL: Final = 3
"""Calls of one tool in a conversation, in which it is called once after each message that is not the agent's own."""
REQUEST_TOKENS: Final = 6
"""Words and punctuation marks of the request in such a reply at the most."""

# A schema that the answer is to have is offered as a tool under the name of its class.
_SCHEMA_TOOL = re.compile(r"[A-Z][a-z0-9]+([A-Z]|$)|final_(answer|result)")
_LAST_TOOL = re.compile(r"final|finish|done|complete|submit|^respon|answer|result$", re.IGNORECASE)
_HAND_OVER = re.compile(r"^(transfer|hand_?off|handover|delegate|assign|escalate|route|switch)_", re.IGNORECASE)
_OF_SUPERVISOR = "forward_message"


def reply_of_assistant(conversation: Conversation) -> Reply:
    """Return the reply of a user's own agent; the same request with the same key gets the same reply."""
    if conversation.named_tool:
        return Reply(tool_calls=(call_of(conversation, conversation.named_tool),))
    # Where a tool must be called, none but the last tool ends a loop, in which nodes may speak as the user.
    is_forced = conversation.tool_choice == "required"
    called = {call.name for call in conversation.called_tools(since_question=not is_forced)} | _worn_out(conversation)
    offered = list(conversation.tools) if not observations_in(conversation) else []
    by_schema = [name for name in offered if _SCHEMA_TOOL.match(name)]
    ordinary = [name for name in offered if name not in by_schema and name not in called]
    hand_overs = [name for name in ordinary if _HAND_OVER.match(name)]
    pending = [name for name in ordinary if name not in hand_overs] or hand_overs[:1]
    if pending:
        allowed = pending if conversation.calls_in_parallel else pending[:1]
        return Reply(tool_calls=tuple(call_of(conversation, name) for name in allowed))
    in_turn = _schemas_in_turn(conversation, by_schema)
    upcoming = next((name for name in in_turn if name not in called), None)
    if upcoming is None and conversation.tool_choice == "required" and conversation.tools:
        upcoming = in_turn[-1] if in_turn else list(conversation.tools)[-1]
    if upcoming is not None:
        return Reply(tool_calls=(call_of(conversation, upcoming, _answer_in_words(conversation)),))
    schema = conversation.output_schema
    if schema:
        return Reply(json.dumps(value_for(schema, conversation, answer=_answer_in_words(conversation))))
    if schema is not None:
        return json_in_words(conversation, is_object=True)
    return reply_in_words(conversation) or Reply(_answer_in_words(conversation) or _without_answer(conversation))


def reply_without_further_tools(conversation: Conversation) -> Reply:
    """Return the reply of such an agent that calls no further tool to learn more; the tools of its answer stay."""
    answering = {name: schema for name, schema in conversation.tools.items() if _SCHEMA_TOOL.match(name)}
    return reply_of_assistant(replace(conversation, tools=answering))


def _worn_out(conversation: Conversation) -> set[str]:
    """Return the tools that were called so often that agents who write to each other would never come to an end."""
    counts = Counter(call.name for call in conversation.called_tools(since_question=False))
    return {name for name, count in counts.items() if count >= MOST_CALLS_OF_A_TOOL}


def calls_of_own_tools(conversation: Conversation) -> tuple[ToolCall, ...]:
    """Return the calls with which an agent that can hand over does its own work before: each tool of its own once."""
    called = {call.name for call in conversation.called_tools()}
    own = [
        name
        for name in conversation.tools
        if not name.startswith(HANDOFF_PREFIX) and name not in called and name != _OF_SUPERVISOR
    ]
    return tuple(call_of(conversation, name) for name in (own if conversation.calls_in_parallel else own[:1]))


def _schemas_in_turn(conversation: Conversation, names: list[str]) -> list[str]:
    """Return the tools that stand for schemas, in the order in which they are called, one in each reply.

    Where a tool must be called, and none of them is an end by its name, one of them is the whole answer.
    """
    last = [name for name in names if _LAST_TOOL.search(name)]
    others = [name for name in names if name not in last]
    if conversation.tool_choice == "required" and not last and others:
        return [others[int(conversation.key.uniform("schema") * len(others))]]
    return [*others, *last[:1]]


def _answer_in_words(conversation: Conversation) -> str:
    """Return an answer from the results of tools; empty if they say nothing."""
    answer = extract_answer(conversation.question, conversation.documents())
    if answer != NOT_FOUND:
        return answer
    # Too short to be a sentence, such as a number, or no text at all: they are passed on as they are.
    results = [message_text(m) for m in conversation.current_turn() if m.get("role") == "tool"]
    plain = [text for text in results if text and not sentences(text) and '"documents"' not in text]
    return first_tokens("; ".join(plain), ANSWER_TOKENS)


def _without_answer(conversation: Conversation) -> str:
    """Return what is said where nothing answers: about the documents if there may be any, else about the request."""
    request = " ".join(conversation.task.split())
    if not request or any(message.get("role") == "tool" for message in conversation.messages):
        return NOT_FOUND
    return SCRIPTED_REPLY + first_tokens(request.removeprefix(SCRIPTED_REPLY), REQUEST_TOKENS)


def call_of(conversation: Conversation, name: str, answer: str = "") -> ToolCall:
    """Return a call of a tool with arguments that its schema allows. answer: the model's in words, to be passed on."""
    schema = conversation.tools[name]
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    names = [each for each in properties if each in required or not _has_default(properties[each])]
    if required and conversation.named_tool != name and not _SCHEMA_TOOL.match(name):
        # What a tool says need not be given is left out. A schema of an answer has it, where there is something to say.
        names = [each for each in properties if each in required]
    chosen_properties = {each: properties[each] for each in names}
    values = value_for({**schema, "type": "object", "properties": chosen_properties}, conversation, answer=answer)
    return ToolCall(name, values)


def _has_default(schema: object) -> bool:
    # A schema may be just true.
    return isinstance(schema, Mapping) and bool(schema.get("default"))


def observations_in(conversation: Conversation) -> list[str]:
    """Return the results of tools that a framework puts into the words of the user."""
    texts = (message_text(m) for m in conversation.messages if m.get("role") == "user")
    return [text for text in texts if text.startswith(OBSERVATION)]
