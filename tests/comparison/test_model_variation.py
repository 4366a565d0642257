"""Quality that varies within a question: off by default, drawn by key, the same for all alternatives of a seed."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from docmind_lab.alternatives import Unguarded
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.system import handbook
from docmind_lab.experiments.comparison import Comparison, compare
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.server import ServiceOptions

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
    runs = compare(600.0, 4, alternatives="A,C", profile="typical", documents="handbook", model_variation=0.5).runs
    by_arm = [
        group.sort_values("seed")[QUALITY].to_numpy().tolist()
        for _, group in runs.groupby("alternative", observed=True)
    ]
    assert by_arm[0] == by_arm[1]


def test_a_service_in_another_process_varies_as_much() -> None:
    options = ServiceOptions(model_variation=0.25, slots_of_run=True)
    assert ServiceOptions.from_json(options.as_json()) == options
    assert options.door().llm.variation == 0.25  # type: ignore[attr-defined]


def test_what_a_workload_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="model_variation: the model of workload staged does not vary"):
        compare(2.0, 1, workload="staged", alternatives="A", model_variation=0.5)
    with pytest.raises(ConfigurationError, match="router_injection: workload staged has no router engine"):
        compare(2.0, 1, workload="staged", alternatives="A", router_injection=True)
