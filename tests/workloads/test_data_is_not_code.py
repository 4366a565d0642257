"""A study or a recording that names a module does not have it imported; the person who reads it may."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from sample_runs import MANIFEST, sample_run

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.comparison.replays import replayed_comparison
from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.traces.importers.recordings import Recording
from docmind_lab.views.reports.build import build_report

NAME = "made_up_elsewhere:KIND"
MODULE = """
from docmind_lab.systems.workload_by_name import ExtraTable
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.docmind.docmind_system import KIND as SUPERVISOR

TABLE = ExtraTable("mine", "Its runs.", (), lambda events, runs, calls: runs[["run_id"]])
KIND = WorkloadKind("mine", "Mine", "tasks", SUPERVISOR.cases, SUPERVISOR.build, SUPERVISOR.defaults, tables=(TABLE,))
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module is importable, and not imported."""
    (tmp_path / "made_up_elsewhere.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_up_elsewhere", raising=False)
    return NAME


def saved(folder: Path) -> Path:
    runs = to_frame("runs", [sample_run("cooperative", repeat, workload="mine") for repeat in range(3)])
    systems = {"mine": {"kind": NAME, "title": "Mine", "asked": "tasks", "roles": []}}
    study = Study(
        runs, to_frame("calls", []), to_frame("events", []), {**MANIFEST, "complete": True, "systems": systems}
    )
    return study.save(folder)


def recording(workload: str) -> Recording:
    design = json.loads(json.dumps(Comparison(runs=2, documents=Documents("handbook")).design())) | {
        "workload": workload
    }
    return Recording((), {"study_id": "made-up", "recording_format": 1, "complete": True, "design": design})


def test_a_study_whose_manifest_names_a_module_opens_without_importing_it_and_says_so(
    tmp_path: Path, elsewhere: str
) -> None:
    study = Study.load(saved(tmp_path / "study"))
    assert f"kinds=['{elsewhere}']" in repr(study)
    build_report(study)
    with pytest.raises(ConfigurationError, match=r"was not imported.*kinds=\['made_up_elsewhere:KIND'\]"):
        study.table("mine")
    assert "made_up_elsewhere" not in sys.modules


def test_the_person_who_loads_a_study_may_name_the_module(tmp_path: Path, elsewhere: str) -> None:
    study = Study.load(saved(tmp_path / "study"), kinds=[elsewhere])
    assert "not imported" not in repr(study)
    assert len(study.table("mine")) == 3
    assert "made_up_elsewhere" in sys.modules


@pytest.mark.parametrize("workload", [NAME, "own:made_up_elsewhere:graph"])
def test_a_recording_that_names_a_module_is_not_replayed_unless_the_person_names_it(
    workload: str, elsewhere: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"made_up_elsewhere.*(--system|--graph)"):
        replayed_comparison(recording(workload), dl.docmind(), Settings())
    assert "made_up_elsewhere" not in sys.modules


def test_a_recording_of_another_packages_workload_is_replayed_by_its_name(elsewhere: str) -> None:
    comparison = replayed_comparison(recording(elsewhere), dl.workload(kind=elsewhere), Settings())
    assert comparison.workload == elsewhere
    assert "made_up_elsewhere" in sys.modules
