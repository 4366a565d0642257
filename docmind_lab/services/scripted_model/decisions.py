"""Decisions of the scripted model where a schema offers options, made so that every loop comes to its end.

A supervisor that may choose a worker or "FINISH" chooses each worker once, and then finishes. A judge that may send a
draft back does so once at the most. What was chosen before is read off the conversation; where the conversation does
not show it, the step of the call in its run says how far the run is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from docmind_lab.services.scripted_model.conversation import Conversation, message_text, parse_json

_END = re.compile(
    r"^_*(finish(ed)?|end|done|final(_?answer|ize|ise)?|completed?|stop|exit|terminate|none|no_?one)_*$",
    re.IGNORECASE,
)
_GOOD = re.compile(
    r"^(yes|y|true|pass(ed)?|accept(ed)?|approved?|ok(ay)?|good|correct|relevant|useful|grounded|supported|sufficient"
    r"|valid|success(ful)?|satisf\w+|ready|safe|resolved)$",
    re.IGNORECASE,
)
_NEGATIVE: Final = ("not ", "not_", "not-", "un", "in", "ir", "im", "non", "non-", "dis", "no ", "no_")
# What a field decides when it is true: to go on, as most others end what they judge.
_GOES_ON = re.compile(
    r"need|should_(continue|retry|revise|search|re)|continue|retry|revis|rewrit|redo|more|again|missing|has_(error|issue)"
    r"|hallucinat|follow_?up|escalat|clarif|reject|unsafe|harmful|block|unclear|incomplete|insufficient|has_problem"
    r"|off_?topic|irrelevant|out_of_scope|spam|toxic|malicious|injection|jailbreak|abusive|invalid|fail(ed|ure)|fraud",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"['\"`“‘]([A-Za-z_][\w -]{0,40}?)['\"`”’]")
_LISTED = re.compile(r"['\"`][\w -]{1,40}['\"`](?:\s*,\s*(?:or |and )?['\"`][\w -]{1,40}['\"`])+")
_ALTERNATIVES = re.compile(r"\(?\b([A-Za-z_]+(?:\s*[|/]\s*[A-Za-z_]+)+)\b\)?")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
# At the start of a line, as in "**researcher**: …". Bounded, so that no text takes long to read.
_SPEAKER = re.compile(r"^[ \t*#\[<>-]{0,8}([\w][\w -]{0,40})[*\]> \t]{0,8}:", re.MULTILINE)
_STEP = re.compile(r"(\d+)\.([\d-]+)\.(\d+)")
# A run goes round so often for each option at the most, whatever the conversation shows.
_ROUNDS_OF_AN_OPTION = 2
_LATEST_REVISION = 8


def options_in(description: str) -> tuple[str, ...]:
    """Return the options that a description names, such as 'yes' or 'no', or (accept|revise); none for one alone."""
    quoted = tuple(dict.fromkeys(_QUOTED.findall(description)))
    if len(quoted) > 1 and re.search(r"\bor\b|\beither\b|\bone of\b|\||/", description):
        return quoted
    match = _ALTERNATIVES.search(description) if "|" in description else None
    parts = tuple(part.strip() for part in re.split(r"[|/]", match[1])) if match else ()
    return parts if len(parts) > 1 else ()


def listed_in(description: str) -> tuple[str, ...]:
    """Return the quoted values that the description of a field lists, as in "the type: 'bar', 'line'"; else none."""
    listed = _LISTED.search(description)
    return tuple(dict.fromkeys(_QUOTED.findall(listed[0]))) if listed else ()


def decide(conversation: Conversation, name: str, options: Sequence[Any]) -> Any:
    """Return one of the options of a field, so that a loop over this decision ends."""
    if name == "role" and "user" in options:  # of a message that is handed over
        return "user"
    texts = [option for option in options if isinstance(option, str)]
    ends = [option for option in texts if _END.match(option)]
    rest = [option for option in options if option not in ends]
    if ends and rest:
        return _next_of(conversation, rest, ends[0])
    good = _good_of(texts)
    if good is not None and len(options) > 1:
        others = [option for option in options if option != good]
        if _GOES_ON.search(name) and len(options) == 2:  # "needs_revision": yes or no
            good, others = others[0], [good]
        return _drawn(conversation, name, others) if sends_back(conversation) else good
    return _drawn(conversation, name, list(options))


def decide_boolean(conversation: Conversation, name: str) -> bool:
    """Return a boolean of this name so that a loop over it ends: the value that goes on is given once at the most."""
    goes_on = bool(_GOES_ON.search(name))
    return goes_on if sends_back(conversation) else not goes_on


def sends_back(conversation: Conversation) -> bool:
    """Whether a judge at this step of a run sends back what it judges.

    It does so at one step of a run, which is drawn for its role, and in its first call there. A client that does not
    say its step is never sent back, since nobody could tell how often it was.
    """
    step = _STEP.fullmatch(conversation.key.step)
    if step is None or step[3] != "1":
        return False
    key = conversation.key
    return int(type(key)(key.seed, key.role, "").uniform("sends back") * _LATEST_REVISION) + 1 == int(step[1])


def _drawn(conversation: Conversation, name: str, options: Sequence[Any]) -> Any:
    return options[int(conversation.key.uniform(f"decision/{name}") * len(options))]


def _good_of(options: Sequence[str]) -> str | None:
    """Return the option that ends a review: the one that says so, or of which another is the negation."""
    by_name = {option.lower(): option for option in options}
    for lower in by_name:
        for prefix in _NEGATIVE:
            if lower.startswith(prefix) and lower.removeprefix(prefix) in by_name:
                return by_name[lower.removeprefix(prefix)]
    good = [option for option in options if _GOOD.match(option)]
    return good[0] if len(good) == 1 else None


def _next_of(conversation: Conversation, options: Sequence[Any], end: str) -> Any:
    """Return the next option in order that was not chosen yet; the end when all were."""
    # Workers often speak as the user: whatever follows the first message may be theirs.
    later = [m for m in conversation.messages if m.get("role") != "system"][1:]
    step = _STEP.fullmatch(conversation.key.step)
    # A worker takes a step, and whoever chooses it another.
    rounds = (int(step[1]) - 1) // 2 if step else 0
    if max(rounds, len(later) // 2) >= _ROUNDS_OF_AN_OPTION * len(options):
        return end
    names = {_plain(name) for name in _names_in(conversation)}
    visited = [option for option in options if any(_is_same(_plain(str(option)), name) for name in names)]
    if visited:
        return next((option for option in options if option not in visited), end)
    if step:
        return options[rounds] if rounds < len(options) else end
    if later:
        return options[len(later)] if len(later) < len(options) else end
    # One text says everything, and nothing of what was chosen: another text may be another round.
    text = "\n".join(message_text(message) for message in conversation.messages)
    choices = [*options, end]
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return choices[int(conversation.key.uniform(f"next/{digest}") * len(choices))]


def _plain(name: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", name).lower()


def _is_same(option: str, name: str) -> bool:
    """Whether a name is an option's, give or take what stands behind it, such as "agent"."""
    short, long = sorted((option, name), key=len)
    return bool(short) and long.startswith(short) and long[len(short) :] in ("", "agent", "node", "team", "worker", "s")


def _names_in(conversation: Conversation) -> Iterator[str]:
    """Yield who spoke since the question, and what was chosen in earlier decisions."""
    for message in conversation.messages:
        text = message_text(message)
        if isinstance(message.get("name"), str) and message.get("role") != "system":
            yield str(message["name"])
        if message.get("role") in ("assistant", "user"):
            yield from _SPEAKER.findall(text)
        if message.get("role") == "assistant":
            choice = parse_json(text) if text.lstrip().startswith("{") else None
            yield from (each for each in (choice or {}).values() if isinstance(each, str))
    for call in conversation.called_tools():
        yield from (value for value in call.arguments.values() if isinstance(value, str))
