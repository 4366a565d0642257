"""Which cases of a table `make test` runs; the others are run with the full counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def often(cases: Iterable[Any], *ordinary: Any) -> list[Any]:
    """`cases` for `parametrize`, in their order, all but those in `ordinary` marked `full`.

    A case is a tuple where there are several arguments.
    """
    cases = list(cases)
    assert all(case in cases for case in ordinary), "each is one of the cases"
    return [case if case in ordinary else _rarely(case) for case in cases]


def _rarely(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
