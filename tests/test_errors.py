"""Errors of the package: one between processes is the one that was raised."""

from __future__ import annotations

import pickle

import pytest

from docmind_lab.alternatives.enforcement.result import CallCut, Result
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, DocmindLabError, TokensSpent


@pytest.mark.parametrize(
    "error",
    [
        ConfigurationError("runs must be 1 or more, not 0"),
        Deadline(10.0, 2.0).exceeded("router", "network"),
        TokensSpent("spent", role="router", limit=10, spent=12, source="graph"),
        CallCut(Result("partial", {"log": ["plan"]}, cut_at=("ask",), limit_s=2.0, elapsed_s=2.1)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_was_sent_to_another_process_is_the_same(error: DocmindLabError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert vars(received) == vars(error)
