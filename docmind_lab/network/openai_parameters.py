"""Passes plain parameters of chat completions on as they are, in place of openai's walk through their types.

    with plain_parameters():        # of virtual time only
        ...

The openai client compares each parameter with its annotation, a fifth of a run's CPU, and changes nothing that is
plain: dicts, lists, text and numbers. Whatever else is among them goes through the client's own function.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest.mock import patch

_MODULE: Final = "openai.resources.chat.completions.completions"
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


class _NotPlain(Exception):
    """A value that the client's own function must look at."""


def _plain_copy(value: Any) -> Any:
    """Return a value with new containers. Raises: _NotPlain for anything but dicts, lists, text and numbers."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: _plain_copy(each) for key, each in value.items()}
    if kind is list:
        return [_plain_copy(each) for each in value]
    raise _NotPlain


@contextlib.contextmanager
def plain_parameters() -> Iterator[None]:
    """Pass plain parameters of chat completions on as they are, during a block; does nothing without openai."""
    try:
        completions: Any = importlib.import_module(_MODULE)
    except ModuleNotFoundError:
        yield
        return
    transform, transform_async = completions.maybe_transform, completions.async_maybe_transform
    is_given: Callable[[Any], bool] = importlib.import_module("openai._utils").is_given

    def plain(data: Any) -> Any:
        return {key: _plain_copy(value) for key, value in data.items() if is_given(value)}

    def maybe_transform(data: Any, expected_type: Any) -> Any:
        try:
            return plain(data)
        except (_NotPlain, AttributeError):
            return transform(data, expected_type)

    async def async_maybe_transform(data: Any, expected_type: Any) -> Any:
        try:
            return plain(data)
        except (_NotPlain, AttributeError):
            return await transform_async(data, expected_type)

    with (
        patch.object(completions, "maybe_transform", maybe_transform),
        patch.object(completions, "async_maybe_transform", async_maybe_transform),
    ):
        yield
