"""The decision timeout that each condition of a study asks for."""

from __future__ import annotations

import pytest

import docmind_lab as dl
from docmind_lab.analysis.traces.conditions import timeouts_by
from docmind_lab.core.errors import ConfigurationError


def test_a_slower_provider_and_a_brownout_ask_for_longer_timeouts() -> None:
    factors = {
        "alternative": "unguarded",
        "latency_profile": ["fast", "typical"],
        "fault": ["none", "brownout=3@0-100"],
    }
    study = dl.sweep({"repeats": 5, "documents": "handbook", "factors": factors}, workers=1)
    table = timeouts_by(study, ["latency_profile", "fault"], range(1, 90), target=0.3)
    assert table.loc["typical", "none"] > table.loc["fast", "none"]
    assert table.loc["fast", "brownout=3@0-100:*"] > 2 * table.loc["fast", "none"]
    assert timeouts_by(study, ["latency_profile", "fault"], [1, 90], target=0.99).isna().all(axis=None)
    with pytest.raises(ConfigurationError, match="two or more columns"):
        timeouts_by(study, ["colour", "fault"], [5])
