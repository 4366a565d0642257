from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from langchain_openai import ChatOpenAI

from docmind_lab.systems.base.model_calls import ModelCalls


def client(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", api_key="k", max_retries=2, **options)  # type: ignore[arg-type]


def of_a_role() -> Callable[[Any], Any]:
    """What a role's model calls make of a model; the last copy is used again."""
    return ModelCalls("synthesis")._without_client_retries


def test_without_client_retries_keeps_the_connections_and_the_model():
    model = client(temperature=0.5)
    copy = of_a_role()(model)
    assert (copy.max_retries, copy.root_client.max_retries, copy.root_async_client.max_retries) == (0, 0, 0)
    assert (model.max_retries, model.root_client.max_retries) == (2, 2)
    assert copy.root_client._client is model.root_client._client
    assert copy.root_async_client._client is model.root_async_client._client
    assert copy.client._client is copy.root_client
    assert copy.async_client._client is copy.root_async_client
    assert (copy.model_name, copy.temperature) == ("m", 0.5)


def test_what_is_bound_to_a_model_stays_bound():
    bound = client().bind(stop="x").with_config(tags=["t"])
    copy = of_a_role()(bound)
    assert copy.bound.max_retries == 0
    assert copy.kwargs == {"stop": "x"}
    assert copy.config["tags"] == ["t"]


def test_models_are_not_kept():
    model = client()
    copy, reference = weakref.ref(of_a_role()(model)), weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
    assert copy() is None, "the copy would keep the model's connections"


def test_a_model_that_was_changed_is_copied_again():
    without, model = of_a_role(), client(temperature=0.5)
    before = without(model)
    model.temperature = 1.0
    assert without(model).temperature == 1.0
    assert before.temperature == 0.5


def test_models_in_turn_get_each_their_own_copy():
    without, models = of_a_role(), [ChatOpenAI(model=name, api_key="k") for name in "ab"]  # type: ignore[arg-type]
    assert [without(model).model_name for model in models * 2] == ["a", "b", "a", "b"]
