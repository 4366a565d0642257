"""What a workload is to the rest of the lab."""

from __future__ import annotations

import json
import pickle
import sys
import types

import pytest

import docmind_lab as dl
from docmind_lab.alternatives import Cooperative, HardTimeout
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.systems.base.retries import retries_of_alternative
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.docmind.docmind_system import KIND
from docmind_lab.systems.system_catalogue import system_of_kind
from docmind_lab.systems.workload_by_name import WORKLOADS, systems_said, workload_kind
from docmind_lab.tables.frames import to_frame


def test_every_workload_that_comes_with_the_lab_is_one_under_its_own_name() -> None:
    assert [workload_kind(name).name for name in WORKLOADS] == list(WORKLOADS)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_cases_for_other_processes_a_budget_for_each_clock_and_tables(name: str) -> None:
    kind = workload_kind(name)
    cases = kind.cases("handbook")
    assert len({case.id for case in cases}) == len(cases) > 0
    assert pickle.loads(pickle.dumps(cases)) == cases
    assert kind.defaults.keys() == {"virtual", "wall"}
    assert kind.roles
    assert kind.reads_settings  # advice ends with them
    for table in kind.tables:
        empty = table.derive(*(to_frame(each, []) for each in ("events", "runs", "calls")))
        assert list(empty.columns) == [column.name for column in table.columns]


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_events_say_is_names_and_numbers(name: str) -> None:
    """No question, no document, nothing that a model wrote."""
    study = dl.compare(system_of_kind(name), runs=1, alternatives="A,C")
    details = [value for detail in study.events["detail"] for value in json.loads(detail).values()]
    texts = [str(text) for value in details for text in (value if isinstance(value, list) else [value])]
    assert texts
    assert [text for text in texts if len(text.split()) > 2] == []


def test_a_fifth_workload_is_one_module_with_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("somebody_elses")
    module.MINE = WorkloadKind("mine", "My system", "tasks", KIND.cases, KIND.build, KIND.defaults)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebody_elses", module)
    comparison = Comparison(runs=2, workload="somebody_elses:MINE", documents=Documents("handbook"))
    assert {order.facts.workload for order in comparison.orders()} == {"mine"}
    assert "2 tasks" in repr(comparison)
    design = StudyDesign.of({"repeats": 1, "factors": {"workload": ["supervisor", "somebody_elses:MINE"]}})
    assert {order.facts.workload for made in design.plan.combinations for order in made.orders()} == {
        "supervisor",
        "mine",
    }
    assert systems_said(["somebody_elses:MINE"])["mine"]["title"] == "My system"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reserch", "unknown workload 'reserch'; the workloads are supervisor"),
        ("no_such_module_anywhere:KIND", "no module no_such_module_anywhere can be imported"),
        ("docmind_lab.core.errors:KIND", "module docmind_lab.core.errors has no KIND"),
        ("docmind_lab.core.errors:ConfigurationError", "not a WorkloadKind"),
    ],
)
def test_a_workload_that_cannot_be_found_is_named_with_the_remedy(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        workload_kind(name)
    with pytest.raises(ConfigurationError, match=said):
        Comparison(workload=name)


# ---- who tries again, and second budgets


@pytest.mark.parametrize(
    ("workload", "alone", "propagated"),
    [
        ("supervisor", "sdk:2", "budgeted:1"),
        ("research", "workload:2", "budgeted:1+workload:2"),
        ("staged", "budgeted:1", "budgeted:1"),
    ],
)
def test_each_workload_says_who_retries_under_an_alternative(workload: str, alone: str, propagated: str) -> None:
    retries = workload_kind(workload).retries
    assert (retries(HardTimeout(), None), retries(Cooperative(), None)) == (alone, propagated)


def test_retries_that_were_asked_for_are_those_of_whoever_retries() -> None:
    assert retries_of_alternative(HardTimeout(), 0) == "sdk:0"
    assert workload_kind("research").retries(HardTimeout(), 5) == "workload:5"
    # Under a deadline of its own the client of the ladder makes none, whatever was asked of it.
    assert workload_kind("staged").retries(HardTimeout(), 5) == "budgeted:1"


@pytest.mark.parametrize(("workload", "said"), [("research", "workload:2"), ("staged", "budgeted:1")])
def test_what_the_column_says_is_what_happens_when_calls_fail(workload: str, said: str) -> None:
    world = dl.World(latencies="fast", faults="http_500:*")
    study = dl.compare(system_of_kind(workload), 60, alternatives="unguarded", world=world, runs=1)
    assert set(study.runs["retries"]) == {said}
    retries = study.events[study.events["event"].astype("str") == "retry"]
    who, number = said.split(":")
    # The client's own would be further attempts of a call without an event of ours.
    assert max(json.loads(detail)["attempt"] for detail in retries["detail"]) == int(number)
    attempts = study.calls[(study.calls["seen_from"] == "client") & (study.calls["kind"] == "llm")]["attempt"]
    assert attempts.max() == (1 if who == "workload" else 1 + int(number))


@pytest.mark.parametrize("workload", ["research", "staged"])
def test_a_budget_of_calls_ends_a_run_under_a_and_none_under_b(workload: str) -> None:
    # One call is too few for either; 4 s are too few for research without an end, and enough to see more calls.
    study = dl.compare(system_of_kind(workload, budget=dl.Budget(calls=1)), 4.0, alternatives="A,B", runs=2)
    under = dict(iter(study.runs.groupby("alternative", observed=True)))
    assert set(under["cooperative"]["calls_spent"]) == {1}
    assert set(under["cooperative"]["stop_reason"]) == {"call_budget"}
    assert (under["hard_timeout"]["calls_spent"] > 1).all()
    assert "call_budget" not in set(under["hard_timeout"]["stop_reason"])
