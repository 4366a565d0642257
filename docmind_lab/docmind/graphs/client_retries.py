"""Models whose client does not retry: under a deadline retries are ours, within the budget."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableBinding
from langchain_openai import ChatOpenAI


def without_client_retries(model: Any) -> Any:
    """A ChatOpenAI like `model`, over the same connections, whose client does not retry; any other model as it is.

    What is bound to the model stays bound. No connection pool is made.
    """
    if isinstance(model, RunnableBinding):
        return model.model_copy(update={"bound": without_client_retries(model.bound)})
    if not isinstance(model, ChatOpenAI):
        return model
    copy = model.model_copy()
    copy.max_retries = 0
    copy.root_client = model.root_client.with_options(max_retries=0)
    copy.client = copy.root_client.chat.completions
    copy.root_async_client = model.root_async_client.with_options(max_retries=0)
    copy.async_client = copy.root_async_client.chat.completions
    return copy


@dataclass(frozen=True)
class _Made:
    """A copy, what it was made of, and the fields that had then."""

    of: weakref.ref[ChatOpenAI]
    fields: dict[str, Any]
    copy: ChatOpenAI


class RetriesOff:
    """`without_client_retries`, with the last copy remembered as long as its model lives and is not changed.

    Making the copy costs 0.3 ms of CPU. Using a fresh one costs twice that again: what LangChain works out once for
    each model, it would work out for each call. Any thread may ask.
    """

    def __init__(self) -> None:
        self._made: _Made | None = None

    def __call__(self, model: Any) -> Any:
        """The copy of this model; a binding is copied around the remembered copy of what it binds."""
        if isinstance(model, RunnableBinding):
            return model.model_copy(update={"bound": self(model.bound)})
        if not isinstance(model, ChatOpenAI):
            return model
        # In one read and one write: another thread may put another model's copy in between.
        made = self._made
        if made is not None and made.of() is model and made.fields == vars(model):
            return made.copy
        made = _Made(weakref.ref(model, self._forget), dict(vars(model)), without_client_retries(model))
        self._made = made
        return made.copy

    def _forget(self, gone: weakref.ref[ChatOpenAI]) -> None:
        """Let go of the copy of a model that is no more, and with it of the model's connections."""
        made = self._made
        if made is not None and made.of is gone:
            self._made = None
