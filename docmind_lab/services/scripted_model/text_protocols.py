"""Replies in the protocols that prompts describe in words: ReAct's actions, JSON, a choice of words.

Only what a prompt asks for in so many words is recognised, and a reply says if its shape is a guess all the same. Any
other request is answered in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, message_text
from docmind_lab.services.scripted_model.decisions import decide, options_in
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer
from docmind_lab.services.scripted_model.schema_values import value_for
from docmind_lab.services.scripted_model.shown_json import WANTS_JSON, example_shown, guessed_schema

OBSERVATION: Final = "Observation:"
"""Some frameworks put a tool's result into the words of the user, after this word."""

_OFFERED = re.compile(r"(?:one of|following tools?:)\s*\[(?P<names>[^\]\n]+)\]")
_ACTION = re.compile(r"^\s*Action:\s*(?P<name>[^\n]+?)\s*$", re.MULTILINE)
_ASKED = re.compile(r"^\s*Question:\s*(?P<question>[^\n]+)$", re.MULTILINE)
_WANTS_WORD = re.compile(
    r"\b(only|respond|answer|return|output|reply|classify|choose|select|pick|give)\b", re.IGNORECASE
)
_CODE_AGENT = "final_answer("


def reply_in_words(conversation: Conversation) -> Reply | None:
    """Return the reply in the protocol that the prompt describes; None if it describes none."""
    prompt = _prompt(conversation)
    if "Action Input:" in prompt and "Final Answer:" in prompt:
        return Reply(_react(prompt, conversation))
    if _CODE_AGENT in prompt and "<code>" in prompt:
        return Reply(_code(conversation))
    if _schema_in(prompt) is not None or WANTS_JSON.search(prompt):
        return json_in_words(conversation)
    lines = (line for line in prompt.splitlines() if _WANTS_WORD.search(line))
    options = next((choices for line in lines if (choices := options_in(line))), ())
    return Reply(str(decide(conversation, "word", options))) if options else None


def json_in_words(conversation: Conversation, *, is_object: bool = False) -> Reply:
    """Return the JSON that the prompt asks for, by schema, example or guess. is_object: a list is put into one."""
    prompt = _prompt(conversation)
    schema = _schema_in(prompt)
    if schema is not None and "properties" in schema:
        schema = {"type": "object", **schema}  # LangChain leaves it out
    schema = schema or example_shown(prompt)
    value = value_for(schema or guessed_schema(prompt), conversation)
    value = {"items": value} if is_object and not isinstance(value, dict) else value
    return Reply(json.dumps(value), is_guess=schema is None)


def _prompt(conversation: Conversation) -> str:
    return "\n".join(message_text(m) for m in conversation.messages if m.get("role") != "assistant")


def _react(prompt: str, conversation: Conversation) -> str:
    """Return the next action, each tool once, or the final answer from the last observation."""
    rules, marker, scratchpad = prompt.partition("Begin!")
    after = scratchpad if marker else ""
    offered = _OFFERED.search(rules if marker else prompt)
    names = [name.strip(" '\"") for name in offered["names"].split(",")] if offered else []
    replies = "\n".join(message_text(m) for m in conversation.messages if m.get("role") == "assistant")
    called = {match["name"] for match in _ACTION.finditer(f"{after}\n{replies}")}
    request = _ASKED.search(after)
    question = request["question"].strip() if request else conversation.question
    upcoming = next((name for name in names if name not in called), None)
    if upcoming is not None:
        return f"I should use {upcoming}.\nAction: {upcoming}\nAction Input: {question}"
    observed = prompt.rpartition(OBSERVATION)[2].partition("\nThought:")[0].strip() if called else ""
    return f"I now know the final answer\nFinal Answer: {observed or NOT_FOUND}"


def _code(conversation: Conversation) -> str:
    texts = [message_text(m) for m in conversation.messages if m.get("role") in ("user", "tool")]
    observed = next((text for text in reversed(texts) if text.startswith(OBSERVATION)), "")
    answer = observed or extract_answer(conversation.question, conversation.documents())
    return f"Thoughts: I know the answer.\n<code>\nfinal_answer({answer!r})\n</code>"


def _schema_in(prompt: str) -> Mapping[str, Any] | None:
    """Return the JSON schema that a prompt shows, as LangChain's and LlamaIndex's output parsers write it."""
    schema: dict[str, Any] | None = None
    end = 0
    for word in re.finditer(r"schema", prompt, re.IGNORECASE):
        # The word also stands inside schemas.
        start = prompt.find("{", word.end()) if word.end() > end else -1
        while 0 <= start < word.end() + 400:
            try:
                value, after = json.JSONDecoder().raw_decode(prompt, start)
            except (ValueError, RecursionError):
                value, after = None, start
            if isinstance(value, dict) and _is_schema(value):
                # The last one: LangChain explains before what a schema is, by an example.
                schema, end = value, after
                break
            start = prompt.find("{", start + 1)
    return schema


def _is_schema(value: Mapping[str, Any]) -> bool:
    fields = value.get("properties")
    return "$ref" in value or (isinstance(fields, dict) and all(isinstance(each, dict) for each in fields.values()))
