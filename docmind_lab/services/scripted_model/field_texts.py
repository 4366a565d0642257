"""Texts for the arguments of tools and for fields of answers, chosen by the name of the argument or field.

    text_for("url", conversation)          # the address that the task names, or https://example.com/
    text_for("query", conversation)        # the task

A tool of a user's program uses them as they are: as the name of a file, or of a colleague. So a text that stands for
one thing is short. What it must look like, a `pattern`, a `format` or an `enum` of the schema says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from docmind_lab.services.scripted_model.conversation import Conversation, message_text
from docmind_lab.services.scripted_model.extraction import content_words, sentences
from docmind_lab.services.scripted_model.tokens import first_tokens

SUB_AGENT: Final = "researcher"
"""What a sub-agent must be called: a hand-over tool that asks for an agent's name is given this one."""
LONGEST_TASK: Final = 300
"""Characters of a task that is given as a whole."""
LONGEST_RESULT: Final = 50
"""Words and punctuation marks of a text that is taken from an answer and is no sentence."""

_WHOLE_TASK = re.compile(r"quer|question|task|input|request|prompt|content|text|message|instruct|descri", re.IGNORECASE)
_FEW_WORDS = re.compile(
    r"name|title|topic|categor|label|subject|keyword|tag|city|location|place|key|intent", re.IGNORECASE
)

_URL = re.compile(r"https?://[^\s\"'<>]*[^\s\"'<>.,;:!?)]")
# A slash or a dot before an ending makes a word a path; the address of a page is none.
_PATH = re.compile(r"(?<![\w/:])(?:[\w.~-]*/)*[\w.~-]+\.[A-Za-z]\w{0,9}\b(?![/:])")
_WITH_DIGIT = re.compile(r"(?<![\w.-])[A-Za-z]{0,8}-?\d[\w-]{0,30}")
_NOTHING = re.compile(r"(?!)")
_ONE_THING: Final = [
    (re.compile(of_name, re.IGNORECASE), in_task, otherwise)
    for of_name, in_task, otherwise in (
        (r"url|uri|link", _URL, "https://example.com/"),
        (r"path|file", _PATH, "notes.txt"),
        (r"(^|_)date$", _NOTHING, "2026-01-15"),
        (r"mail(_address)?$", _NOTHING, "user@example.com"),
        (r"agent|coworker|member|recipient|assignee|^owner$|^\w+_name$", _NOTHING, SUB_AGENT),
        # "id", "order_id", "orderId"; not "paid".
        (r"^(\w+_)?(id|number|no)s?$|^\w*[a-z]I[dD]s?$", _WITH_DIGIT, "1"),
    )
]
"""Names that stand for one thing: what it looks like in a task, and what it is where the task has none."""


def text_for(name: str, conversation: Conversation, *, answer: str = "", draw: float = 0.0) -> str:
    """Return a text for an argument or a field of this name. answer: the model's in words. draw: which, from 0 to 1."""
    task = _short_task(conversation)
    if text := _one_thing(name, task):
        return text
    if _FEW_WORDS.search(name):
        return " ".join(dict.fromkeys(content_words(task)))[:40].strip() or task
    if _WHOLE_TASK.search(name) and not answer:
        return task
    texts = sentences(answer) or sentences("\n\n".join(_said(conversation)))
    return texts[int(draw * len(texts))] if texts else first_tokens(answer or task, LONGEST_RESULT)


def _one_thing(name: str, task: str) -> str:
    """Return the text for a name that stands for one thing, such as a path or an identifier; empty for any other."""
    for of_name, in_task, otherwise in _ONE_THING:
        if of_name.search(name):
            match = in_task.search(task)
            return (match[0].strip() if match else "") or otherwise
    return ""


def _short_task(conversation: Conversation) -> str:
    """Return the task in a few words: all of it, or the last sentence of a long one that asks something."""
    task = conversation.task or next(
        (text for m in reversed(conversation.messages) if (text := message_text(m))), "What is to be done?"
    )
    if len(task) <= LONGEST_TASK:
        return task
    parts = sentences(task)
    return next((each for each in reversed(parts) if each.endswith("?")), parts[-1] if parts else task[:LONGEST_TASK])


def _said(conversation: Conversation) -> Iterator[str]:
    """Yield what the conversation says: results of tools and the user's words, the newest first."""
    return (message_text(m) for m in reversed(conversation.messages) if m.get("role") in ("tool", "user"))
