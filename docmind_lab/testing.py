"""Assertions for tests of graphs, under their public names."""

from docmind_lab.experiments.assertions import (
    assert_keeps_deadline,
    assert_survives_cuts,
    cut_at,
)

__all__ = ["assert_keeps_deadline", "assert_survives_cuts", "cut_at"]
