from __future__ import annotations

import dataclasses
import importlib

import pytest

import docmind_lab
from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.alternatives.base import Stepped

# What users of them write is in support/public_api_uses.py, for the type checker.
PUBLIC = ("docmind_lab", "docmind_lab.graphs", "docmind_lab.alternatives")


def test_everything_in_all_exists_and_has_a_docstring() -> None:
    for module in PUBLIC:
        imported = importlib.import_module(module)
        assert len(set(imported.__all__)) == len(imported.__all__)
        for name in imported.__all__:
            value = getattr(imported, name)
            documented = getattr(value, "__doc__", None) or not callable(value)
            assert documented, f"{module}.{name}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        docmind_lab.nothing  # noqa: B018


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_an_alternative_is_a_frozen_dataclass_that_runs_graphs_for_callers_with_and_without_a_loop(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    own = {name for name, value in vars(kind).items() if callable(value) and not name.startswith("_")}
    assert own == ({"steps"} if issubclass(kind, Stepped) else {"run", "run_async"})
    assert all(
        field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        for field in dataclasses.fields(kind)
    )
    hash(kind())
