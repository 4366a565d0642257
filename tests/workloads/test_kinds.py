"""What a workload is to the rest of the lab."""

from __future__ import annotations

import sys
import types

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.docmind.supervisor import KIND
from docmind_lab.systems.kinds import WORKLOADS, systems_said, workload_kind


def test_a_workload_is_found_by_its_name() -> None:
    assert workload_kind("supervisor") is KIND


def test_every_workload_that_comes_with_the_lab_is_one_under_its_own_name() -> None:
    assert [workload_kind(name).name for name in WORKLOADS] == list(WORKLOADS)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_cases_and_a_budget_for_each_clock(name: str) -> None:
    kind = workload_kind(name)
    cases = kind.cases("handbook")
    assert len({case.id for case in cases}) == len(cases) > 0
    assert kind.defaults.keys() == {"virtual", "wall"}
    assert kind.roles


def test_a_fifth_workload_is_one_module_with_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("somebody_elses")
    module.MINE = WorkloadKind("mine", "My system", "tasks", KIND.cases, KIND.build, KIND.defaults)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "somebody_elses", module)
    comparison = Comparison(runs=2, workload="somebody_elses:MINE", documents=Documents("handbook"))
    assert {order.facts.workload for order in comparison.orders()} == {"mine"}
    assert "2 tasks" in repr(comparison)
    design = StudyDesign.of({"repeats": 1, "factors": {"workload": ["supervisor", "somebody_elses:MINE"]}})
    assert {order.facts.workload for made in design.plan.combinations for order in made.orders("s", 0)} == {
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


def test_every_workload_of_the_lab_reads_its_settings_so_that_advice_ends_with_them() -> None:
    assert {name for name, said in systems_said(list(WORKLOADS)).items() if not said["reads_settings"]} == set()
