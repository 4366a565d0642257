"""Random damage to tool calls whose true content is known: written before the parser, and never looked at to tune it.

calls = random_calls(random)
text, finish_reason, expected = OPERATORS["trailing commas"](random, calls)
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]

_NAMES = (
    "Oslo",
    "Bergen",
    "Retry-After",
    "ChatOpenAI",
    "São Paulo",
    "deadline_ts",
    "O'Neill",
    "C++",
    "東京",
    "U.S. 101",
)
_TEXTS = (
    "It rains, often.",
    "A key: and a value; then {braces} and [brackets].",
    "0.3 seconds, at 12:30",
    "back\\slash and / slash",
    "ends with a comma,",
    "naïve – with a dash",
    "He didn't say.",
    "50 % of 2 × 3",
)
_PREDICATES = ("part of", "joined by rail to", "is a", "ends_before")


@dataclass(frozen=True)
class Damaged:
    """A text, why it ended, and which calls a reader may take from it; exact calls, or none at all."""

    text: str
    finish_reason: str
    expected: tuple[Call, ...]


def random_calls(draw: random.Random, least: int = 1, most: int = 4) -> list[Call]:
    """Some true calls."""
    return [_random_call(draw) for _ in range(draw.randint(least, most))]


def _random_call(draw: random.Random) -> Call:
    kind = draw.randrange(4)
    if kind == 0:
        return "create_entity", {"name": draw.choice(_NAMES), "type": draw.choice(("city", "Term", "class"))}
    if kind == 1:
        return "add_observation", {"entity": draw.choice(_NAMES), "text": draw.choice(_TEXTS)}
    if kind == 2:
        subject, target = draw.sample(_NAMES, 2)
        return "create_relation", {"subject": subject, "predicate": draw.choice(_PREDICATES), "object": target}
    extra = draw.choice(([1, 2.5], {"nested": "yes"}, True, None, 12))
    return "create_entity", {"name": draw.choice(_NAMES), "type": "Thing", "extra": extra}


def _object(call: Call, indent: int | None = None) -> str:
    return json.dumps({"name": call[0], "arguments": call[1]}, ensure_ascii=False, indent=indent)


def _whole(text: str, calls: Sequence[Call]) -> Damaged:
    return Damaged(text, "stop", tuple(calls))


# ---- whole, in many shapes


def plain(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    indent = draw.choice((None, 2))
    objects = [_object(call, indent) for call in calls]
    return _whole(objects[0] if len(objects) == 1 else "[" + ", ".join(objects) + "]", calls)


def other_keys(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    entries = [{"name": name, draw.choice(("args", "input")): arguments} for name, arguments in calls]
    return _whole(json.dumps(entries), calls)


def string_arguments(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    entries = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
    return _whole(json.dumps(entries), calls)


def wrapped(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    entries = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return _whole(json.dumps({"tool_calls": entries}, indent=draw.choice((None, 1))), calls)


def fenced(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    blocks = [f"Step {n}:\n```{draw.choice(('json', ''))}\n{_object(call, 2)}\n```" for n, call in enumerate(calls)]
    return _whole("\n".join(blocks) + "\nThat is all.", calls)


def in_prose(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    joint = draw.choice((" and then ", ";\n", " — next: "))
    return _whole("I would call " + joint.join(map(_object, calls)) + ". Nothing else is to be done.", calls)


def in_tags(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole("\n".join(f"<tool_call>\n{_object(call)}\n</tool_call>" for call in calls), calls)


# ---- damaged, whole at the end


def trailing_commas(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole("[" + ", ".join(_object(call)[:-2] + ",},}" for call in calls) + ",]", calls)


def python_repr(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole(repr([{"name": name, "arguments": arguments} for name, arguments in calls]), calls)


def unquoted_keys(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole("[" + ", ".join(re.sub(r'"(\w+)": ', r"\1: ", _object(call)) for call in calls) + "]", calls)


def comments(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    objects = [
        _object(call, 2).replace('  "arguments"', '  // what it is called with\n  "arguments"', 1) for call in calls
    ]
    return _whole("[\n" + ",\n".join(objects) + "\n]", calls)


def raw_line_ends(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    made: list[Call] = [*calls, ("add_observation", {"entity": "Oslo", "text": "one line\nand another"})]
    return _whole("[" + ", ".join(_object(call).replace("\\n", "\n") for call in made) + "]", made)


def smart_quotes(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    objects = [re.sub(r'(?<!\\)"((?:[^"\\]|\\.)*)"', "“\\1”", _object(call)) for call in calls]
    return _whole("\n".join(objects), calls)


def missing_commas(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole(
        "[" + "\n".join(_object(call, 2).replace(',\n  "arguments"', '\n  "arguments"') for call in calls) + "]", calls
    )


def inner_quotes(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    said: Call = ("add_observation", {"entity": "Oslo", "text": 'They call it "the capital" there.'})
    made = [*calls, said]
    return _whole("[" + ", ".join(_object(call).replace('\\"', '"') for call in made) + "]", made)


# ---- not whole at the end


def _cut(draw: random.Random, calls: Sequence[Call], style: int) -> tuple[str, tuple[Call, ...]]:
    """A text cut strictly inside the object of one call, and the calls before it."""
    position = draw.randrange(len(calls))
    shown = [repr({"name": n, "arguments": a}) if style == 2 else _object((n, a)) for n, a in calls]
    last = shown[position][: draw.randrange(2, len(shown[position]) - 1)]
    opening, joint = {0: ("[", ", "), 1: ("Now ", " and "), 2: ("[", ",\n"), 3: ('{"tool_calls": [', ", ")}[style]
    return opening + joint.join([*shown[:position], last]), tuple(calls[:position])


def cut_and_said(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    text, expected = _cut(draw, calls, draw.randrange(4))
    return Damaged(text, "length", expected)


def cut_in_silence(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    text, expected = _cut(draw, calls, draw.randrange(4))
    return Damaged(text, "stop", expected)


def cut_inside_a_fence(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    text, expected = _cut(draw, calls, draw.choice((0, 2, 3)))
    return Damaged(f"```json\n{text}\n```", "stop", expected)


def closers_missing(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    text = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    closers = re.search(r"[}\]]+$", text)
    assert closers is not None
    lost = draw.randint(2, len(closers.group()))
    return Damaged(text[:-lost], "stop", tuple(calls[:-1]))


# ---- nothing is asked for


def prose_only(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    return _whole(" ".join(f"{name} {{{', '.join(map(str, arguments.values()))}}}." for name, arguments in calls), ())


def noise(draw: random.Random, calls: Sequence[Call]) -> Damaged:
    alphabet = "{}[]\"':, \n\\abc019`"
    return _whole("".join(draw.choice(alphabet) for _ in range(draw.randrange(60))), ())


Operator = Callable[[random.Random, Sequence[Call]], Damaged]
OPERATORS: Mapping[str, Operator] = {
    operator.__name__.replace("_", " "): operator
    for operator in (
        plain,
        other_keys,
        string_arguments,
        wrapped,
        fenced,
        in_prose,
        in_tags,
        trailing_commas,
        python_repr,
        unquoted_keys,
        comments,
        raw_line_ends,
        smart_quotes,
        missing_commas,
        inner_quotes,
        cut_and_said,
        cut_in_silence,
        cut_inside_a_fence,
        closers_missing,
        prose_only,
        noise,
    )
}


def damaged_texts(count: int, seed: int) -> list[tuple[str, Damaged]]:
    """So many texts, the operators in turn: (operator, what it made)."""
    names = list(OPERATORS)
    made = []
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        name = names[number % len(names)]
        made.append((name, OPERATORS[name](draw, random_calls(draw))))
    return made


_CONTROL = "".join(map(chr, (0, 1, 7, 0x200B, 0xFEFF)))


def damaged_chunk(draw: random.Random, text: str) -> str:
    """A chunk as a bad reader of files would give it: cut, shuffled, blank, in one case, with odd characters."""
    words = text.split()
    ways: tuple[Callable[[], str], ...] = (
        lambda: text,
        lambda: text[: draw.randrange(len(text))],
        lambda: text.lower(),
        lambda: text.upper(),
        lambda: " ".join(draw.sample(words, len(words))),
        lambda: " ".join(words[:2]) + draw.choice(_CONTROL) + " ".join(words[2:]),
        lambda: draw.choice(("", " ", "\n\t ", "\u00a0")),
        lambda: "0 1 2 3 !!! ...",
        lambda: "".join(draw.choice("{}[]\"'\\<>&%\n a0é東") for _ in range(40)),
    )
    return draw.choice(ways)()
