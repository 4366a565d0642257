"""Plain parameters of chat completions go out as openai's own client would send them, byte for byte."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest
from openai import NOT_GIVEN, Omit
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from docmind_lab.network.openai_parameters import plain_parameters

completions: Any = importlib.import_module("openai.resources.chat.completions.completions")

MESSAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

BODIES: list[dict[str, Any]] = [
    {"model": "m", "messages": [{"role": "user", "content": "a"}], "stream": NOT_GIVEN, "seed": 7, "stop": None},
    {"model": "m", "messages": [MESSAGE], "tools": [TOOL], "temperature": 0.5, "user": Omit(), "logprobs": True},
    {"model": "m", "messages": ({"role": "user", "content": "a"},), "metadata": {"a": "b"}},
    {"model": "m", "messages": iter([{"role": "user", "content": "a"}])},
    {"model": "m", "messages": [ChatCompletionMessage(role="assistant", content="a")]},
    {"model": "m", "messages": [{"role": "user", "content": "a", "name": NOT_GIVEN}]},
    {
        "model": "m",
        "messages": [],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
    },
]


def fresh(body: dict[str, Any]) -> dict[str, Any]:
    """The body with an iterator of its own: one can be read only once."""
    messages = body["messages"]
    return {**body, "messages": iter([{"role": "user", "content": "a"}])} if hasattr(messages, "__next__") else body


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_every_kind_of_parameter_is_what_the_client_makes_of_it(body: dict[str, Any]) -> None:
    expected = completions.maybe_transform(fresh(body), CompletionCreateParamsNonStreaming)
    with plain_parameters():
        found = completions.maybe_transform(fresh(body), CompletionCreateParamsNonStreaming)
        later = asyncio.run(completions.async_maybe_transform(fresh(body), CompletionCreateParamsNonStreaming))
    assert found == later == expected
    assert list(found) == list(expected)


def test_the_client_has_its_own_function_again_afterwards() -> None:
    before = completions.maybe_transform
    with plain_parameters():
        assert completions.maybe_transform is not before
    assert completions.maybe_transform is before
