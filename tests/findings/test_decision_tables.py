from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import decision_table
from docmind_lab.findings.decision_tables import winner_of


def test_every_total_of_adr_056_follows_from_its_scores() -> None:
    found = decision_table("ADR-056").recomputed()
    assert found["agrees"].all()
    assert found["recomputed"].tolist() == [9.16, 7.35, 6.10, 6.95]
    assert decision_table("ADR-056").sentences() == (
        "All 4 printed totals of ADR-056 follow from their scores and weights.",
    )


def test_three_totals_of_adr_011_do_not_and_it_says_by_how_much() -> None:
    found = decision_table("ADR-011").recomputed().set_index("option")
    assert found["recomputed"].to_dict() == {
        "LangGraph StateGraph": 9.0,
        "Third‑party supervisor": 7.75,
        "LlamaIndex AgentWorkflow": 6.4,
        "Manual orchestration": 4.4,
        "Monolithic agent": 6.35,
    }
    wrong = found[~found["agrees"]]
    assert wrong["difference"].to_dict() == {
        "Third‑party supervisor": 0.15,
        "Manual orchestration": -0.1,
        "Monolithic agent": -0.15,
    }
    assert (found["printed_rank"] == found["recomputed_rank"]).all()
    sentences = decision_table("ADR-011").sentences()
    assert sentences[0].startswith("ADR-011 prints 7.9 for Third‑party supervisor; its scores and weights give 7.75")
    assert sentences[-1] == "The order of its options is the same with the totals recomputed."


def test_a_total_agrees_within_the_rounding_of_its_printed_digits_and_not_beyond() -> None:
    table = decision_table("ADR-011")
    option = table.options[1]
    rounded = [Decimal(text) for text in ("7.75", "7.8", "7.7", "7.76", "7.85")]
    tables = [
        type(table)(**(vars(table) | {"options": (type(option)(**(vars(option) | {"printed_total": total})),)}))
        for total in rounded
    ]
    assert [bool(each.recomputed()["agrees"].iloc[0]) for each in tables] == [True, True, True, False, False]


def test_a_tie_has_no_winner() -> None:
    assert winner_of(np.array([[2.0 + 1e-12, 2.0], [3.0, 2.0]])).tolist() == [-1, 0]


def test_an_unknown_table_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"one of ADR-056, ADR-011, not 'ADR-1'"):
        decision_table("ADR-1")
