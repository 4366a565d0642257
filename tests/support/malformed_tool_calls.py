"""Tool calls as models write them into text, by hand, with what they truly ask for: written before the parser.

What is expected of a text that was cut, or whose end is not whole, is every call but the last one that had begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Expected = tuple[tuple[str, dict[str, Any]], ...]

OSLO: tuple[str, dict[str, Any]] = ("create_entity", {"name": "Oslo", "type": "city"})
BERGEN: tuple[str, dict[str, Any]] = ("create_entity", {"name": "Bergen", "type": "city"})
RAIN: tuple[str, dict[str, Any]] = ("add_observation", {"entity": "Bergen", "text": "It rains, often."})
RAILWAY: tuple[str, dict[str, Any]] = (
    "create_relation",
    {"subject": "Oslo", "predicate": "joined by rail to", "object": "Bergen"},
)


@dataclass(frozen=True)
class Case:
    """A text, why it ended, and the calls that are in it."""

    category: str
    text: str
    expected: Expected
    finish_reason: str = "stop"


CASES: tuple[Case, ...] = (
    # ---- whole, in the shapes that models use
    Case("object", '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}', (OSLO,)),
    Case("object", '\n\n  {"arguments": {"type": "city", "name": "Oslo"}, "name": "create_entity"}  \n', (OSLO,)),
    Case("object", '{"name": "create_entity", "args": {"name": "Oslo", "type": "city"}}', (OSLO,)),
    Case("object", '{"name": "create_entity", "input": {"name": "Oslo", "type": "city"}}', (OSLO,)),
    Case("object", '{"tool": "create_entity", "input": {"name": "Oslo", "type": "city"}}', (OSLO,)),
    Case("object", '{"name": "create_entity", "parameters": {"name": "Oslo", "type": "city"}}', (OSLO,)),
    Case("object", '{"name": "refresh", "arguments": {}}', (("refresh", {}),)),
    Case(
        "array",
        '[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}, '
        '{"name": "create_entity", "args": {"name": "Bergen", "type": "city"}}]',
        (OSLO, BERGEN),
    ),
    Case("array", "[]", ()),
    Case(
        "string arguments",
        '{"name": "create_entity", "arguments": "{\\"name\\": \\"Oslo\\", \\"type\\": \\"city\\"}"}',
        (OSLO,),
    ),
    Case(
        "string arguments",
        '{"function": {"name": "create_entity", "arguments": "{\\"name\\": \\"Oslo\\", \\"type\\": \\"city\\",}"}}',
        (OSLO,),
    ),
    Case(
        "wrapper",
        '{"type": "function", "function": {"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}}',
        (OSLO,),
    ),
    Case(
        "wrapper",
        '{"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "create_entity", "arguments": '
        '"{\\"name\\": \\"Oslo\\", \\"type\\": \\"city\\"}"}}, {"name": "create_entity", "arguments": {"name": "Bergen"'
        ', "type": "city"}}]}',
        (OSLO, BERGEN),
    ),
    Case(
        "wrapper",
        '{"thought": "two cities", "tool_calls": [{"name": "create_entity", "input": {"name": "Oslo", '
        '"type": "city"}}]}',
        (OSLO,),
    ),
    Case(
        "fenced",
        "Here you are:\n```json\n"
        '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\n```\nThat is all.',
        (OSLO,),
    ),
    Case(
        "fenced",
        '```\n[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}]\n```',
        (OSLO,),
    ),
    Case(
        "fenced",
        'First:\n```json\n{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\n```\nand then\n'
        '```json\n{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}}\n```',
        (OSLO, BERGEN),
    ),
    Case(
        "in prose",
        'I will call {"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}} first, and after that '
        '{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}}.',
        (OSLO, BERGEN),
    ),
    Case(
        "in prose",
        "The set {a, b} has two members [1]. My call is "
        '{"name": "add_observation", "arguments": {"entity": "Bergen", "text": "It rains, often."}}',
        (RAIN,),
    ),
    Case(
        "in prose",
        '<tool_call>\n{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}}\n</tool_call>',
        (OSLO, BERGEN),
    ),
    Case(
        "lines",
        '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\n'
        '{"name": "add_observation", "arguments": {"entity": "Bergen", "text": "It rains, often."}}\n',
        (OSLO, RAIN),
    ),
    # ---- nothing is asked for
    Case("no call", "", ()),
    Case("no call", "Oslo and Bergen are cities; a railway joins them.", ()),
    Case("no call", "Use {braces} and [brackets] with care: f(x) = {x | x > 0}.", ()),
    Case("no call", '{"name": "Oslo", "type": "city"}', ()),
    Case("no call", '{"entities": [{"name": "Oslo"}, {"name": "Bergen"}]}', ()),
    Case("no call", '{"name": "create_entity", "arguments": [1, 2]}', ()),
    Case("no call", '{"name": 7, "arguments": {"name": "Oslo"}}', ()),
    Case("no call", '{"name": "", "arguments": {"name": "Oslo"}}', ()),
    # ---- damaged, whole at the end
    Case("trailing comma", '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city",},}', (OSLO,)),
    Case(
        "trailing comma",
        '[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}},]',
        (OSLO,),
    ),
    Case("single quotes", "{'name': 'create_entity', 'arguments': {'name': 'Oslo', 'type': 'city'}}", (OSLO,)),
    Case(
        "single quotes",
        "[{'name': 'create_entity', 'arguments': {'name': 'Oslo', 'type': 'city'}}, "
        "{'name': 'add_observation', 'arguments': {'entity': 'Bergen', 'text': 'It rains, often.'}}]",
        (OSLO, RAIN),
    ),
    Case("unquoted keys", '{name: "create_entity", arguments: {name: "Oslo", type: "city"}}', (OSLO,)),
    Case(
        "python literals",
        '{"name": "create_entity", "arguments": {"name": "Oslo", "capital": True, "mayor": None}}',
        (("create_entity", {"name": "Oslo", "capital": True, "mayor": None}),),
    ),
    Case(
        "comments",
        '{\n  // the capital\n  "name": "create_entity",\n  "arguments": {"name": "Oslo", "type": "city"}\n}',
        (OSLO,),
    ),
    Case(
        "raw line ends",
        '{"name": "add_observation", "arguments": {"entity": "Bergen", "text": "It rains,\noften."}}',
        (("add_observation", {"entity": "Bergen", "text": "It rains,\noften."}),),
    ),
    Case("missing comma", '{"name": "create_entity" "arguments": {"name": "Oslo" "type": "city"}}', (OSLO,)),
    Case(
        "missing comma",
        '[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\n'
        '{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}}]',
        (OSLO, BERGEN),
    ),
    Case("smart quotes", "{“name”: “create_entity”, “arguments”: {“name”: “Oslo”, “type”: “city”}}", (OSLO,)),
    Case(
        "inner quotes",
        '{"name": "add_observation", "arguments": {"entity": "Bergen", "text": "They say "it rains" there."}}',
        (("add_observation", {"entity": "Bergen", "text": 'They say "it rains" there.'}),),
    ),
    Case(
        "fenced and damaged",
        "```json\n{'name': 'create_entity', 'arguments': {'name': 'Oslo', 'type': 'city',}}\n```\nDone.",
        (OSLO,),
    ),
    Case(
        "one of several damaged",
        '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}\nand\n'
        "{'name': 'create_entity', 'arguments': {'name': 'Bergen', 'type': 'city'}}\nand\n"
        '{"name": "add_observation", "arguments": {"entity": "Bergen", "text": "It rains, often."}}',
        (OSLO, BERGEN, RAIN),
    ),
    # ---- not whole at the end
    Case("cut, and said so", '{"name": "create_entity", "arguments": {"name": "Os', (), "length"),
    Case("cut, and said so", '{"name": "create_entity", "arguments": {"name": "Oslo"', (), "length"),
    Case(
        "cut, and said so",
        '[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}, {"name": "create_entity", '
        '"arguments": {"name": "Ber',
        (OSLO,),
        "length",
    ),
    Case(
        "cut, and said so",
        '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}',
        (),
        "length",
    ),
    Case(
        "cut, and said so",
        'First {"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}} and then {"name": "crea',
        (OSLO,),
        "length",
    ),
    Case(
        "cut, and said so",
        '{"tool_calls": [{"function": {"name": "create_entity", "arguments": "{\\"name\\": \\"Oslo\\", \\"type\\": '
        '\\"city\\"}"}}, {"function": {"name": "create_entity", "arguments": "{\\"name\\": \\"Berg',
        (OSLO,),
        "length",
    ),
    Case("cut in silence", '{"name": "create_entity", "arguments": {"name": "Os', ()),
    Case("cut in silence", '{"name": "create_entity", "arguments": {"population": 70', ()),
    Case("cut in silence", '{"name": "create_entity", "arguments": "{\\"name\\": \\"Os"}', ()),
    Case(
        "cut in silence",
        '```json\n[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}},\n'
        '{"name": "create_entity", "arguments": {"name": "Berge',
        (OSLO,),
    ),
    Case(
        "cut in silence",
        '```json\n[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}},\n'
        '{"name": "create_entity", "arguments": {"name": "Berge\n```',
        (OSLO,),
    ),
    Case(
        "cut in silence",
        "[{'name': 'create_entity', 'arguments': {'name': 'Oslo', 'type': 'city'}}, {'name': 'create_entity', "
        "'arguments': {'name': 'Berg",
        (OSLO,),
    ),
    Case("closers missing", '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}', ()),
    Case("closers missing", '{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"', ()),
    Case(
        "closers missing",
        '[{"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}}, '
        '{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}',
        (OSLO,),
    ),
    Case(
        "closers missing",
        'I call {"name": "create_entity", "arguments": {"name": "Oslo", "type": "city"}} and '
        '{"name": "create_entity", "arguments": {"name": "Bergen", "type": "city"}, and that is that.',
        (OSLO,),
    ),
)
