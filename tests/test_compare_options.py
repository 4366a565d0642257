"""What the options of `compare` about budgets, telemetry and documents become, without a run."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from typer.testing import CliRunner

import docmind_lab as dl
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.interfaces.cli.app import app
from docmind_lab.interfaces.telemetry import Telemetry


class NotRun(Exception):
    """The command came as far as the comparison."""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    said: dict[str, Any] = {}

    @functools.wraps(dl.compare)
    def compare(**keywords: Any) -> None:
        said.update(keywords)
        raise NotRun

    monkeypatch.setattr("docmind_lab.experiments.comparison.run.compare", compare)
    return said


def test_budgets_are_off_unless_they_are_given(given: dict[str, Any]) -> None:
    result = CliRunner().invoke(app, ["compare", "--json"])
    assert isinstance(result.exception, NotRun)
    assert (given["budget"], given["telemetry"]) == (None, Telemetry())


def test_each_budget_and_each_way_out_has_an_option(given: dict[str, Any]) -> None:
    words = "--budget-tokens 6000 --budget-calls 12 --budget-cost 0.02 --price 0.15/0.60 --otlp --metrics-file x.prom"
    CliRunner().invoke(app, ["compare", "--json", *words.split()])
    assert given["budget"] == Budget(tokens=6000, calls=12, cost=0.02, price=Price(0.15, 0.60))
    assert given["telemetry"] == Telemetry(spans="otlp", metrics_file="x.prom")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--budget-tokens 0", "budget.tokens must be a whole number from 1 up"),
        ("--budget-cost 0.02", "budget.cost needs a price above 0"),
        ("--price 0.15", "price must be INPUT/OUTPUT"),
    ],
)
def test_a_budget_that_cannot_be_used_is_refused_by_name(given: dict[str, Any], words: str, named: str) -> None:
    result = CliRunner().invoke(app, ["compare", "--json", *words.split()])
    assert isinstance(result.exception, ConfigurationError)
    assert named in str(result.exception)
    assert given == {}


def test_documents_and_questions_of_ones_own_have_an_option_each(given: dict[str, Any]) -> None:
    CliRunner().invoke(app, ["compare", "--json", *["--documents", "papers", "--questions", "questions.jsonl"]])
    assert (given["documents"], given["questions"]) == ("papers", "questions.jsonl")


def test_without_them_the_comparison_chooses_its_own(given: dict[str, Any]) -> None:
    CliRunner().invoke(app, ["compare", "--json"])
    assert {"documents", "questions"}.isdisjoint(given)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--deadline-key until", "--deadline-key is of a graph of your own"),
        ("--json --verbose", "leave one out"),
        ("--clock wall --workers 2", "on the wall clock use --side-by-side"),
        ("--clock virtual --side-by-side 2", "in virtual time use --workers"),
        ("--record-text", "give --record FOLDER too"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused_with_the_remedy(
    given: dict[str, Any], words: str, named: str
) -> None:
    result = CliRunner().invoke(app, ["compare", *words.split()])
    assert isinstance(result.exception, ConfigurationError)
    assert named in str(result.exception)
    assert given == {}
