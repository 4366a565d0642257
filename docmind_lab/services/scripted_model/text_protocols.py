"""Replies in the protocols that prompts describe in words: ReAct's actions, JSON, a choice of words, code.

Only what a prompt asks for in so many words is recognised; any other request is answered in plain text.
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

OBSERVATION: Final = "Observation:"
"""Some frameworks put a tool's result into the words of the user, after this word."""

_OFFERED = re.compile(r"(?:one of|following tools?:)\s*\[(?P<names>[^\]\n]+)\]")
_ACTION = re.compile(r"^\s*Action:\s*(?P<name>[^\n]+?)\s*$", re.MULTILINE)
_ASKED = re.compile(r"^\s*Question:\s*(?P<question>[^\n]+)$", re.MULTILINE)
_WANTS_JSON = re.compile(
    r"\b(return|respond|reply|output|answer|format|produce|provide|write)\b[^.\n]{0,80}\bJSON\b", re.IGNORECASE
)
_KEY = re.compile(r"[\"'`](\w+)[\"'`]")
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
    if _schema_in(prompt) is not None or _WANTS_JSON.search(prompt):
        return Reply(json.dumps(object_in_words(conversation)))
    lines = (line for line in prompt.splitlines() if _WANTS_WORD.search(line))
    options = next((found for line in lines if (found := options_in(line))), ())
    return Reply(str(decide(conversation, "word", options))) if options else None


def object_in_words(conversation: Conversation) -> dict[str, Any]:
    """Return the JSON object that the prompt describes: by a schema, an example, or names of its keys."""
    prompt = _prompt(conversation)
    schema = _schema_in(prompt)
    value = _object_like(prompt, conversation) if schema is None else value_for(schema, conversation)
    return dict(value)


def _prompt(conversation: Conversation) -> str:
    return "\n".join(message_text(m) for m in conversation.messages if m.get("role") != "assistant")


def _react(prompt: str, conversation: Conversation) -> str:
    """Return the next action, each tool once, or the final answer from the last observation."""
    rules, begun, scratchpad = prompt.partition("Begin!")
    after = scratchpad if begun else ""
    offered = _OFFERED.search(rules if begun else prompt)
    names = [name.strip(" '\"") for name in offered["names"].split(",")] if offered else []
    replies = "\n".join(message_text(m) for m in conversation.messages if m.get("role") == "assistant")
    called = {match["name"] for match in _ACTION.finditer(f"{after}\n{replies}")}
    asked = _ASKED.search(after)
    question = asked["question"].strip() if asked else conversation.question
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
    for shown in re.finditer(r"schema", prompt, re.IGNORECASE):
        start = prompt.find("{", shown.end())
        while 0 <= start < shown.end() + 400:
            try:
                value, _ = json.JSONDecoder().raw_decode(prompt, start)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict) and ("properties" in value or "$ref" in value):
                return value
            start = prompt.find("{", start + 1)
    return None


def _object_like(prompt: str, conversation: Conversation) -> dict[str, Any]:
    """Return an object with the keys of the example that a prompt shows, or else with those that it quotes."""
    for start in (match.start() for match in re.finditer(r"\{", prompt)):
        try:
            example, _ = json.JSONDecoder().raw_decode(prompt, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(example, dict) and example:
            return dict(value_for(_schema_of(example), conversation))
    asked = _WANTS_JSON.search(prompt)
    sentence = prompt[asked.start() : asked.end() + 300] if asked else ""
    keys = dict.fromkeys(_KEY.findall(sentence)) or {"answer": None}
    fields = {key: {"type": "string"} for key in keys}
    return dict(value_for({"type": "object", "properties": fields, "required": list(fields)}, conversation))


def _schema_of(example: Any) -> dict[str, Any]:
    if isinstance(example, dict):
        fields = {name: _schema_of(value) for name, value in example.items()}
        return {"type": "object", "properties": fields, "required": list(fields)}
    if isinstance(example, list):
        return {"type": "array", "items": _schema_of(example[0]) if example else {"type": "string"}}
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int | float):
        # The number of an example says how large one is: 0 is the place of the first, 0.9 a share, 8 a score.
        low, high = min(0 if isinstance(example, float) else 1, example), max(0, example)
        is_share = isinstance(example, float) and 0 <= example <= 1
        kind = "integer" if isinstance(example, int) else "number"
        return {"type": kind, "minimum": low, "maximum": 1 if is_share else high}
    options = re.split(r"\s*\|\s*|\s+or\s+", example) if isinstance(example, str) else []
    # "yes or no", not a sentence with an "or" in it.
    is_choice = len(options) > 1 and all(re.fullmatch(r"[\w'\"-]{1,30}", option) for option in options)
    return {"enum": [option.strip("'\"") for option in options]} if is_choice else {"type": "string"}
