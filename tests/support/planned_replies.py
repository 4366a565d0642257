"""What the plan of a simulated service sends."""

from __future__ import annotations

import json
from typing import Any

from docmind_lab.services.plan import Chunk, Headers, Plan

LOOK_UP: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
"""A tool that a request offers."""


def body_of(plan: Plan) -> bytes:
    """All of the body."""
    return b"".join(step.data for step in plan.steps if isinstance(step, Chunk))


def json_of(plan: Plan) -> Any:
    """The body, as the JSON value that it is."""
    return json.loads(body_of(plan))


def head_of(plan: Plan) -> Headers:
    """The status line with the headers: there is one."""
    (head,) = (step for step in plan.steps if isinstance(step, Headers))
    return head


def tagged(**tags: Any) -> dict[str, str]:
    """The headers that say of which call a request is."""
    return {f"x-docmind-{name.replace('_', '-')}": str(value) for name, value in tags.items()}
