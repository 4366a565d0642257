"""From the calls of simulated runs back to the profile that they were drawn from: the whole way, in virtual time."""

import pytest

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.decompose import split_calls
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.analysis.latency.sources import read_calls
from docmind_lab.analysis.study import Study
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.system import named_corpus
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.server import ServiceOptions

TRUTH = LatencyProfile.named("typical")
RUNS = 60


@pytest.fixture(scope="module")
def study():
    system = SimulatedSystem(Settings(), corpus=named_corpus("handbook"))
    orders = Comparison(
        decision_timeout_s=8.0,
        runs=RUNS,
        alternatives=parse_alternatives("A"),
        profile=TRUTH,
        documents=Documents("handbook"),
    ).orders()
    yield Study.of([system.measure(order, ServiceOptions(TRUTH)) for order in orders], {"schema_version": 1})
    system.close()


@pytest.mark.full
def test_every_call_of_simulated_runs_gives_back_what_was_drawn_for_it(study):
    rows = study.calls[(study.calls["seen_from"] == "server") & (study.calls["kind"] == "llm")]
    rows = rows.merge(study.runs[["run_id", "seed"]], on="run_id")
    drawn = [
        TRUTH.draw_llm(DrawKey(int(row.seed), row.role, row.step, int(row.attempt))).first_token_s
        for row in rows.itertuples()
    ]
    found = read_calls(study).of_kind("llm")["first_token_s"].to_numpy()
    begun = found == found
    assert begun.mean() > 0.9
    assert found[begun] == pytest.approx([first_s for first_s, known in zip(drawn, begun, strict=True) if known])


@pytest.mark.full
def test_the_quantiles_of_the_profile_come_back_from_calls_of_which_deadlines_cut_some(study):
    parts = split_calls(read_calls(study))
    assert len(parts.first_token.cut_s) > 5
    found = LatencyProfile.fit(study)
    # Some 500 calls: the standard error of a quantile is 5 % at most, and twice that is allowed.
    for level in (0.25, 0.5, 0.75, 0.9):
        assert found.first_token_s.at(level) == pytest.approx(TRUTH.first_token_s.at(level), rel=0.1)
        assert found.inter_token_s.at(level) == pytest.approx(TRUTH.inter_token_s.at(level), rel=0.1)
