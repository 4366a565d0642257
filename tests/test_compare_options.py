"""What the options of `compare` about budgets, telemetry and documents become, without a run."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from typer.testing import CliRunner

import docmind_lab as dl
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.views.cli.app import app
from docmind_lab.views.telemetry import Telemetry


class NotRun(Exception):
    """The command came as far as the comparison."""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    said: dict[str, Any] = {}

    @functools.wraps(dl.compare)
    def compare(**keywords: Any) -> None:
        said.update(keywords)
        raise NotRun

    monkeypatch.setattr("docmind_lab.experiments.comparison.comparison_run.compare", compare)
    return said


def test_budgets_are_off_unless_they_are_given(given: dict[str, Any]) -> None:
    result = CliRunner().invoke(app, ["compare", "--json"])
    assert isinstance(result.exception, NotRun)
    assert (given["system"], given["world"], given["telemetry"]) == (dl.docmind(), dl.World(), Telemetry())


def test_each_budget_each_way_out_and_documents_of_ones_own_have_an_option(given: dict[str, Any]) -> None:
    words = "--budget-tokens 6000 --budget-calls 12 --budget-cost 0.02 --price 0.15/0.60 --otlp --metrics-file x.prom "
    words += "--documents papers --questions questions.jsonl"
    CliRunner().invoke(app, ["compare", "--json", *words.split()])
    budget = Budget(tokens=6000, calls=12, cost=0.02, price=Price(0.15, 0.60))
    assert given["system"] == dl.docmind("papers", "questions.jsonl", budget=budget)
    assert given["telemetry"] == Telemetry(spans="otlp", metrics_file="x.prom")
