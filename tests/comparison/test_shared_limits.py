"""What runs of a comparison share and what they do not, and what the manifest says of the machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docmind_lab.alternatives import Unguarded
from docmind_lab.analysis.agreement import agreement
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.analysis.manifest import MachineUse
from docmind_lab.analysis.summary import summarise
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison, compare, run_comparison
from docmind_lab.experiments.comparison.design import SIDE_BY_SIDE
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.comparison.request import CompareRequest
from docmind_lab.experiments.comparison.run import resolve
from docmind_lab.experiments.sweeps.design import StudyDesign

# One slot of one run: waits of tenths of a second, long beside the CPU time of Python (0.1 s a run) and short enough
# for a test.
ONE_SLOT = replace(LatencyProfile.named("typical/8"), slots=1)


@pytest.mark.full
@pytest.mark.wall
def test_the_clocks_agree_where_runs_side_by_side_have_one_slot_each() -> None:
    asked = Comparison(30.0, 4, alternatives=(Unguarded(),), profile=ONE_SLOT, documents=Documents("handbook"))
    virtual = run_comparison(asked, Settings(), workers=1)
    wall = run_comparison(replace(asked, clock="wall"), Settings())
    found = agreement(virtual, wall)
    assert len(found.pairs) == 4
    assert found.same_outcome == 1.0
    # Runs that shared the slot waited for three others: later by more than the whole run. A busy machine takes half a
    # run's time for its Python at most.
    assert (found.pairs["later_s"] < 0.75 * found.pairs["virtual_returned_at_s"]).all()
    waits = wall.calls.query("kind == 'llm'")["queue_wait_s"]
    assert waits.max() < 2.0 * virtual.calls.query("kind == 'llm'")["queue_wait_s"].max() + 0.25


@pytest.mark.parametrize(
    "section", [{"llm": {"base_url": "http://127.0.0.1:9/v1"}}, {"database": {"qdrant_url": "http://127.0.0.1:9"}}]
)
def test_runs_at_a_live_endpoint_go_one_at_a_time_unless_asked(section: dict[str, dict[str, str]]) -> None:
    settings = Settings(**section)
    assert resolve(CompareRequest(), settings)[0].side_by_side == 1
    assert resolve(CompareRequest(side_by_side=3), settings)[0].side_by_side == 3
    assert resolve(CompareRequest(clock="wall"), Settings())[0].side_by_side == SIDE_BY_SIDE


def test_a_swept_study_goes_one_at_a_time_at_a_live_endpoint_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert StudyDesign.of({}).side_by_side == SIDE_BY_SIDE
    monkeypatch.setenv("DOCMIND_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    assert StudyDesign.of({}).side_by_side == 1
    assert StudyDesign.of({"side_by_side": 3}).side_by_side == 3


def test_the_manifest_says_how_busy_the_machine_was_and_what_a_run_cost() -> None:
    study = compare(2.0, 2, alternatives="A", profile="typical/10", documents="handbook")
    use = study.manifest["machine_use"]
    assert use["cpu_s_per_run"] > 0
    assert use["wall_s"] > 0
    assert len(use["load_per_core"]) == 2
    limits = next(line for line in summarise(study.runs, study.manifest).advice if line.startswith("Limits:"))
    assert f"A run took {use['cpu_s_per_run']:.2g} s of it on this machine" in limits


def test_cpu_time_of_a_run_is_none_without_runs_and_that_of_workers_where_there_are_any() -> None:
    use = MachineUse()
    assert use.to_dict(0)["cpu_s_per_run"] is None
    assert use.to_dict(1)["cpu_s_per_run"] is not None
    use.add_workers(1.0)
    use.add_workers(0.5)
    assert use.to_dict(3)["cpu_s_per_run"] == 0.5
