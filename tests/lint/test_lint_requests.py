"""Every request of every node is never answered, answered in pieces, and failed, whichever service it goes to."""

from __future__ import annotations

import functools
from typing import Any

import hung_graphs
import pytest
from langchain_core.messages import HumanMessage

from docmind_lab.experiments.lint import LintReport, lint_graph
from docmind_lab.services.vector_service import VectorService

ASKED: dict[str, Any] = {"question": "Why?"}
CHAT: dict[str, Any] = {"messages": [HumanMessage("Why?")]}


@functools.cache
def linted(name: str, decision_timeout_s: float = 1.0) -> LintReport:
    asked = CHAT if name in ("searching_then_asking", "asking_twice") else ASKED
    return lint_graph(f"hung_graphs:{name}", [asked], decision_timeout_s=decision_timeout_s)


def keeping(report: LintReport) -> dict[str, str]:
    return {verdict.alternative: verdict.keeping for verdict in report.verdicts}


OF_SYNC_CODE_WITH_A_LONG_REQUEST = {
    "A": "keeps",
    "A:per_read": "does not keep",
    "B": "caller only",
    "C": "caller only",
    "D": "does not keep",
    "E": "keeps",
    "F": "caller only",
}


def test_a_request_to_another_service_is_never_answered_and_comes_in_pieces() -> None:
    report = linted("searching")
    assert keeping(report) == OF_SYNC_CODE_WITH_A_LONG_REQUEST
    (node,) = report.nodes
    assert node.worst_case is not None
    assert node.worst_case.took_s == pytest.approx(60.0)
    assert node.trickled is not None
    assert node.retries is not None
    assert report.unprobed == ()


def test_a_request_is_struck_alone_where_an_earlier_one_of_its_node_would_end_the_run() -> None:
    report = linted("searching_then_asking", 5.0)
    assert keeping(report) == OF_SYNC_CODE_WITH_A_LONG_REQUEST
    late = {overrun.trial.fault for overrun in report.overruns if overrun.trial.alternative == "D"}
    assert "hang:only#2" in late
    assert "hang:only" not in late, "the search is given up at once, and the model is never asked"
    (node,) = report.nodes
    assert node.worst_case is not None
    assert 60.0 < node.worst_case.took_s < 61.0, "the search is answered within a second"


def test_a_request_to_a_store_that_is_no_search_is_struck_too() -> None:
    report = linted("writing")
    assert keeping(report) == OF_SYNC_CODE_WITH_A_LONG_REQUEST
    assert report.unprobed == ()


def test_a_node_whose_request_no_fault_strikes_is_named_and_never_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorService, "plan", VectorService._plan)
    report = lint_graph(hung_graphs.writing, [ASKED], decision_timeout_s=1.0, alternatives="A,E")
    assert keeping(report) == {"A": "not known", "E": "not known"}
    assert not report.keeps
    assert set(report.unprobed) == {
        ("only", "PUT http://store.example.org:6333/collections/c/"),
        ("only", "PUT http://store.example.org:6333/collections/c/points"),
    }


def test_requests_side_by_side_have_no_negative_waits() -> None:
    (node,) = linted("asking_twice", 20.0).nodes
    assert str(node.worst_case) == "60.0 s: 2 requests side by side, 60.0 s of timeouts, 0.0 s of waits"
