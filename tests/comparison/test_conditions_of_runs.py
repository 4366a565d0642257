"""What runs of a comparison meet: CPU time that is charged, a model that varies, and what they share on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import pytest
from flat_compare import compare_by

import docmind_lab as dl
from docmind_lab.alternatives import Unguarded
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison, compare, run_comparison
from docmind_lab.experiments.comparison.comparison import SIDE_BY_SIDE
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.findings.agreement import agreement
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import handbook
from docmind_lab.tables.frames import to_frame


def studied(**options: object) -> Study:
    return compare_by(**options, decision_timeout_s=600.0, runs=2, alternatives="A,C", latencies="typical")  # type: ignore[arg-type]


def test_a_given_charge_makes_an_uncut_run_later_by_its_requests_one_after_the_other() -> None:
    free, charged, again = studied(), studied(cpu_charge=0.5), studied(cpu_charge=0.5)
    later_s = charged.runs["returned_at_s"] - free.runs["returned_at_s"]
    requests = free.calls.groupby("run_id").size().to_numpy()
    assert (free.runs["outcome"] == "answered").all()
    # One interpreter computes for one request at a time, also where branches run side by side; what it computes while
    # another branch waits for its server delays nobody.
    assert (later_s > 0.5 * 4).all()
    assert (later_s <= 0.5 * requests + 1e-6).all()
    assert charged.runs.equals(again.runs), "a given charge leaves tables the same every time"
    assert charged.manifest["design"]["cpu_charge"] == 0.5
    assert "cpu_charge" not in free.manifest["design"]
    assert charged.manifest["study_id"] != free.manifest["study_id"]


def test_a_charge_is_for_virtual_time_and_a_number_of_seconds() -> None:
    with pytest.raises(ConfigurationError, match="cpu_charge is for virtual time"):
        studied(cpu_charge=0.1, clock="wall")
    for wrong in (-1.0, float("nan"), True, "measured"):
        with pytest.raises(ConfigurationError, match="cpu_charge must be 0 or more"):
            studied(cpu_charge=wrong)


def test_a_study_charges_each_of_its_combinations_in_virtual_time() -> None:
    factors = {"clock": ["virtual", "wall"], "alternative": "A"}
    design = StudyDesign.of({"cpu_charge": 0.2, "factors": factors, "documents": "handbook"})
    charges = {item.clock: item.cpu_charge for item in design.plan.combinations}
    assert charges == {"virtual": 0.2, "wall": 0.0}
    assert design.to_dict()["cpu_charge"] == 0.2
    assert "cpu_charge" not in StudyDesign.of({}).to_dict()
    with pytest.raises(ConfigurationError, match="cpu_charge"):
        StudyDesign.of({"cpu_charge": -0.2})


QUALITY = ["source_recall", "answer_score", "llm_calls"]
PROFILE = LatencyProfile.named("typical")


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus=handbook())
    yield made
    made.close()


def of_one_question(system: SimulatedSystem, variation: float) -> pd.DataFrame:
    """Ten runs of one question without a limit, each with a seed of its own."""
    comparison = Comparison(
        600.0,
        120,
        alternatives=(Unguarded(),),
        profile=PROFILE,
        documents=Documents("handbook"),
        model_variation=variation,
    )
    options = ServiceOptions(PROFILE, model_variation=variation)
    orders = [order for order in comparison.orders() if order.facts.question_id == "h10"]
    return to_frame("runs", [system.measure(order, options).run for order in orders])


def test_quality_is_a_constant_of_the_question_unless_the_model_varies(system: SimulatedSystem) -> None:
    constant, varied = of_one_question(system, 0.0), of_one_question(system, 0.5)
    assert len(varied) == 10
    assert (constant[QUALITY].nunique() == 1).all()
    assert (varied[QUALITY].nunique() > 1).all(), "path length, recall and answer score vary within a question"


@pytest.mark.full
def test_alternatives_of_one_seed_meet_the_same_decisions() -> None:
    runs = compare(
        decision_timeout_s=600.0,
        alternatives="A,C",
        world=dl.World(latencies="typical", model=dl.ScriptedModel(variation=0.5)),
        runs=4,
    ).runs
    by_arm = [
        group.sort_values("seed")[QUALITY].to_numpy().tolist()
        for _, group in runs.groupby("alternative", observed=True)
    ]
    assert by_arm[0] == by_arm[1]


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
    live = dl.Live(settings=settings)
    assert resolve(dl.docmind(), world=live)[0].side_by_side == 1
    assert resolve(dl.docmind(), world=live, workers=3)[0].side_by_side == 3
    assert resolve(dl.docmind(), world=dl.World(clock="wall"))[0].side_by_side == SIDE_BY_SIDE


def test_a_swept_study_goes_one_at_a_time_at_a_live_endpoint_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert StudyDesign.of({}).side_by_side == SIDE_BY_SIDE
    monkeypatch.setenv("DOCMIND_LLM__BASE_URL", "http://127.0.0.1:9/v1")
    assert StudyDesign.of({}).side_by_side == 1
    assert StudyDesign.of({"side_by_side": 3}).side_by_side == 3


def test_the_manifest_says_what_a_run_cost() -> None:
    study = compare(decision_timeout_s=2.0, alternatives="A", world=dl.World(latencies="typical/10"), runs=2)
    use = study.manifest["machine_use"]
    assert use["cpu_s_per_run"] > 0
    assert use["wall_s"] > 0
    limits = next(line for line in summarise(study.runs, study.manifest).advice if line.startswith("Limits:"))
    assert f"A run took {use['cpu_s_per_run']:.2g} s of it on this machine" in limits
