"""Assertions for tests of graphs, under their public names."""

from docmind_lab.experiments.crash_test.testing import (
    assert_survives_cuts,
    cut_at,
)
from docmind_lab.experiments.testing import (
    assert_keeps_deadline,
)

__all__ = ["assert_keeps_deadline", "assert_survives_cuts", "cut_at"]
