"""Replies in the protocols that prompts describe in words: ReAct's actions, JSON, SQL, a choice of words, code.

Only what a prompt asks for in so many words is recognised; any other request is answered in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, message_text
from docmind_lab.services.scripted_model.decisions import decide, options_in, options_in_words
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer
from docmind_lab.services.scripted_model.field_texts import sql_of, text_for
from docmind_lab.services.scripted_model.schema_values import value_for
from docmind_lab.services.scripted_model.shown_json import WANTS_JSON, schema_shown

OBSERVATION: Final = "Observation:"
"""Some frameworks put a tool's result into the words of the user, after this word."""

_OFFERED = re.compile(r"(?:one of|following tools?:)\s*\[(?P<names>[^\]\n]+)\]")
_ACTION = re.compile(r"^\s*Action:\s*(?P<name>[^\n]+?)\s*$", re.MULTILINE)
_ASKED = re.compile(r"^\s*Question:\s*(?P<question>[^\n]+)$", re.MULTILINE)
_WANTS_WORD = re.compile(
    r"\b(only|respond|answer|return|output|reply|classify|choose|select|pick|give)\b", re.IGNORECASE
)
# "Return ONLY the SQL", "Output just the SQL query without explanation".
_WRITE = r"(?:return|respond|reply|output|answer|write|generate|provide|give)"
_WANTS_SQL = re.compile(
    rf"\b{_WRITE}\b[^.\n]{{0,40}}\b(only|just|nothing but)\b[^.\n]{{0,40}}\bSQL\b"
    rf"|\b(only|just)\s+{_WRITE}\b[^.\n]{{0,40}}\bSQL\b",
    re.IGNORECASE,
)
# "Return ONLY executable Python code", "Output only the code, no markdown", "Write ONLY the code block".
_WANTS_CODE = re.compile(
    rf"\b{_WRITE}\b[^.\n]{{0,40}}\b(only|just|nothing but)\b[^.\n]{{0,30}}\bcode\b(?! (review|quality|smell|change))"
    rf"|\b(only|just)\s+{_WRITE}\b[^.\n]{{0,30}}\bcode\b(?! (review|quality|smell|change))",
    re.IGNORECASE,
)
_OTHER_LANGUAGE = re.compile(
    r"\b(javascript|typescript|java|html|css|react|rust|golang|bash|shell|c\+\+)(?!\w)", re.IGNORECASE
)
_NO_FENCES = re.compile(r"\b(no|not|without|never|don't)\b[^.\n]{0,40}(markdown|backticks?|fences?|```)", re.IGNORECASE)
_CODE_AGENT = "final_answer("


def reply_in_words(conversation: Conversation) -> Reply | None:
    """Return the reply in the protocol that the prompt describes; None if it describes none."""
    prompt = _prompt(conversation)
    if "Action Input:" in prompt and "Final Answer:" in prompt:
        return Reply(_react(prompt, conversation))
    if _CODE_AGENT in prompt and "<code>" in prompt:
        return Reply(_code(conversation))
    if _schema_in(prompt) is not None or WANTS_JSON.search(prompt):
        return Reply(json.dumps(_value_in_words(prompt, conversation)))
    if _WANTS_SQL.search(prompt):
        return Reply(sql_of(conversation))
    if _WANTS_CODE.search(prompt) and not _OTHER_LANGUAGE.search(prompt):
        code = text_for("code", conversation)
        has_fences = "```" in prompt and not _NO_FENCES.search(prompt)
        return Reply(f"```python\n{code}\n```" if has_fences else code)
    lines = (line for line in prompt.splitlines() if _WANTS_WORD.search(line))
    options = next((found for line in lines if (found := options_in(line))), ()) or options_in_words(prompt)
    return Reply(str(decide(conversation, "word", options))) if options else None


def object_in_words(conversation: Conversation) -> dict[str, Any]:
    """Return the JSON object that the prompt describes: by a schema, an example, or names of its keys."""
    value = _value_in_words(_prompt(conversation), conversation)
    return value if isinstance(value, dict) else {"items": value}


def _value_in_words(prompt: str, conversation: Conversation) -> Any:
    schema = _schema_in(prompt)
    if schema is None:
        return value_for(schema_shown(prompt), conversation)
    # LangChain leaves out that it is of an object.
    return value_for({"type": "object", **schema} if "properties" in schema else schema, conversation)


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
    found: dict[str, Any] | None = None
    end = 0
    for shown in re.finditer(r"schema", prompt, re.IGNORECASE):
        # The word also stands inside schemas.
        start = prompt.find("{", shown.end()) if shown.end() > end else -1
        while 0 <= start < shown.end() + 400:
            try:
                value, after = json.JSONDecoder().raw_decode(prompt, start)
            except (ValueError, RecursionError):
                value, after = None, start
            if isinstance(value, dict) and _is_schema(value):
                # The last one: LangChain explains before what a schema is, by an example.
                found, end = value, after
                break
            start = prompt.find("{", start + 1)
    return found


def _is_schema(value: Mapping[str, Any]) -> bool:
    fields = value.get("properties")
    return "$ref" in value or (isinstance(fields, dict) and all(isinstance(each, dict) for each in fields.values()))
