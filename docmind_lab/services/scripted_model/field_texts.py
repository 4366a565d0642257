"""Texts for the arguments of tools and for fields of answers, chosen by the name of the argument or field.

    text_for("order_id", conversation)     # "A-17", where the user or a tool's result speaks of the order A-17
    text_for("query", conversation)        # the task

A tool of a user's program uses them as they are: as the name of a file, of a colleague, of an order. So a text that
stands for one thing is short, and is one that the conversation shows if it shows one.
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
LONGEST_ADDRESS: Final = 8
"""Words and punctuation marks of whom a message goes to."""

_URL_NAME = re.compile(r"url|uri|link", re.IGNORECASE)
_PATH_NAME = re.compile(r"path|file", re.IGNORECASE)
_FORMULA_NAME = re.compile(r"expression|equation|formula", re.IGNORECASE)
_ADDRESS_NAME = re.compile(r"(\w+_)?e?mail(_address)?|to|cc|bcc", re.IGNORECASE)
# "id", "order_id", "orderId"; not "paid".
_ID_NAME = re.compile(r"(?:(?P<of>\w+)_|(?P<camel>\w*[a-z])(?=[A-Z]))?(?:[Ii]d|ID|[Nn]umber|[Nn]o)s?")
_AGENT_NAME = re.compile(r"agent|coworker|member|recipient|assignee|^owner$|^\w+_name$", re.IGNORECASE)
_WHOLE_TASK = re.compile(r"quer|question|task|input|request|prompt|content|text|message|instruct|descri", re.IGNORECASE)
_FEW_WORDS = re.compile(
    r"name|title|topic|categor|label|subject|keyword|tag|city|location|place|key|intent", re.IGNORECASE
)
_SAFE: Final = (
    (re.compile(r"^(python_?|source_?)?(code|script|program)(_snippet)?$", re.IGNORECASE), "print(2 + 2)"),
    (re.compile(r"^(shell_?|bash_?)?(command|cmd)$", re.IGNORECASE), "echo done"),
    (re.compile(r"sql", re.IGNORECASE), "SELECT 1"),
    (re.compile(r"(^|_)date$", re.IGNORECASE), "2026-01-15"),
    (re.compile(r"^(time_?zone|tz)$", re.IGNORECASE), "UTC"),
)
"""Names of what a program runs or parses, with a text that it can run or parse and that changes nothing."""

_URL = re.compile(r"https?://[^\s\"'<>]*[^\s\"'<>.,;:!?)]")
# A slash or a dot before an ending makes a word a path; the address of a page is none.
_PATH = re.compile(r"(?<![\w/:])(?:[\w.~-]*/)*[\w.~-]+\.[A-Za-z]\w{0,9}\b(?![/:])")
_ARITHMETIC = re.compile(r"[-+*/().\d\s^]*\d\s*[-+*/^]\s*[-+*/().\d\s^]*\d\)?")
_WITH_DIGIT = re.compile(r"(?<![\w.-])[A-Za-z]{0,8}-?\d[\w-]{0,30}")
_ABSOLUTE = re.compile(r"\babsolute\b(?! or)", re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")


def text_for(name: str, conversation: Conversation, *, answer: str = "", draw: float = 0.0, described: str = "") -> str:
    """Return a text of the conversation for an argument or a field of this name.

    Args:
        name: Of the argument or field.
        conversation: The request.
        answer: What the model would answer in words; texts that are no task are taken from it.
        draw: From 0 to 1, which of several sentences it is.
        described: What the schema says of it.
    """
    task = _short_task(conversation)
    shown = _one_thing(name, task, conversation, described)
    if shown:
        return shown
    if _FEW_WORDS.search(name):
        return " ".join(dict.fromkeys(content_words(task)))[:40].strip() or task
    if _WHOLE_TASK.search(name) and not answer:
        return task
    said = sentences(answer) or sentences("\n\n".join(_said(conversation)))
    found = said[int(draw * len(said))] if said else first_tokens(answer or task, LONGEST_RESULT)
    return first_tokens(found, LONGEST_ADDRESS) if _ADDRESS_NAME.fullmatch(name) else found


def _one_thing(name: str, task: str, conversation: Conversation, said: str) -> str:
    """Return the text for a name that stands for one thing, such as a path or an identifier; empty for any other."""
    if _URL_NAME.search(name):
        return _shown(_URL, task) or "https://example.com/"
    if _PATH_NAME.search(name):
        shown = _shown(_PATH, task) or "notes.txt"
        return f"/{shown}" if _ABSOLUTE.search(said) and not shown.startswith(("/", "~")) else shown
    if _FORMULA_NAME.search(name):
        return _shown(_ARITHMETIC, task) or "2 + 2"
    for pattern, text in _SAFE:
        if pattern.search(name):
            return text
    if _ADDRESS_NAME.fullmatch(name) and (address := _shown(_ADDRESS, task)):
        return address
    if re.search(r"mail(_address)?$", name, re.IGNORECASE):
        return "user@example.com"
    if _AGENT_NAME.search(name):
        return SUB_AGENT
    identifier = _ID_NAME.fullmatch(name)
    return _identifier(identifier["of"] or identifier["camel"] or "", task, conversation) if identifier else ""


def _identifier(of: str, task: str, conversation: Conversation) -> str:
    """Return the identifier that the conversation shows, one of this kind if it can; "1" if it shows none."""
    what = re.escape(of).replace("_", "[_ ]")
    of_kind = (
        rf"\b{what}[_ ]?(?:(?:id|number|no)\b\.?)?[\"']?\s?[:=#]?\s?[\"'#]?(?P<id>[\w-]{{0,30}}\d[\w-]{{0,30}})",
        rf"\b{what}_?id[\"']?\s?[:=]\s?[\"']?(?P<id>[\w-]{{1,40}})",
    )
    for pattern in (*(of_kind if of else ()), r"\bid\b[\"']?\s?[:=]\s?[\"']?(?P<id>[\w-]{1,40})"):
        for text in _said(conversation):
            if shown := re.search(pattern, text, re.IGNORECASE):
                return shown["id"]
    return _shown(_WITH_DIGIT, task) or "1"


def shown_in(conversation: Conversation, pattern: str) -> str:
    """Return the newest text of the conversation that an expression matches; empty if it shows none.

    Args:
        conversation: The request.
        pattern: The expression.
    """
    matches = (re.search(pattern, text) for text in _said(conversation))
    return next((match[0] for match in matches if match), "")


def _shown(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[0].strip() if match else ""


def _short_task(conversation: Conversation) -> str:
    """Return the task in a few words: all of it, or the last sentence of a long one that asks something."""
    task = conversation.task or next(
        (text for m in reversed(conversation.messages) if (text := message_text(m))), "What is to be done?"
    )
    if len(task) <= LONGEST_TASK:
        return task
    said = sentences(task)
    return next((each for each in reversed(said) if each.endswith("?")), said[-1] if said else task[:LONGEST_TASK])


def _said(conversation: Conversation) -> Iterator[str]:
    """Yield what the conversation says: results of tools and the user's words, the newest first."""
    return (message_text(m) for m in reversed(conversation.messages) if m.get("role") in ("tool", "user"))
