"""A design says which runs there are: levels of factors, their combinations, each once, under common random numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_studies import small_cells

import docmind_lab as dl
from docmind_lab.alternatives import Cooperative, HardTimeout
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.sweeps import study_design as design_module
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.statistics.latency.profile import LatencyProfile


def design(repeats: int = 2, **factors: Any) -> StudyDesign:
    return StudyDesign.of({"documents": "handbook", "repeats": repeats, "factors": factors})


def facts(made: StudyDesign) -> list[Any]:
    """Of every run, as cells hold them."""
    return [order.facts for bench in benches_of(made, Settings()) for cell in bench.cells for order in cell.orders]


# ---- levels


ONE = {"alternative": "A", "decision_timeout_s": 5, "fault": "none", "retries": 1, "latency_profile": "typical"}
NAMED = {"alternative": "A,B", "latency_profile": "typical"}
MADE = {"alternative": [Cooperative(), HardTimeout()], "latency_profile": LatencyProfile.named("typical")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ONE, {name: [level] for name, level in ONE.items()}),
        (NAMED, NAMED | {"alternative": ["cooperative", "B"]}),
        (NAMED, MADE),
    ],
    ids=["lists of one", "letters and levels", "instances"],
)
def test_levels_that_are_written_otherwise_are_the_same_study(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert design(**one).to_dict() == design(**other).to_dict()
    assert design(**one).study_id == design(**other).study_id


def test_every_combination_of_levels_is_there() -> None:
    made = design(alternative="A,B,C", decision_timeout_s=[5, 10], fault=["none", "hang:planner"])
    assert made.total_runs == 3 * 2 * 2 * 2
    assert {(f.alternative, f.decision_timeout_s, f.fault) for f in facts(made)} == {
        (alternative, timeout_s, fault)
        for alternative in ("cooperative", "hard_timeout", "async_cancellation")
        for timeout_s in (5.0, 10.0)
        for fault in ("none", "hang:planner")
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"seeds": 1}, "seeds: there is no such field; there are factors, horizon_factor, name, repeats"),
        ({"price": "1/4"}, "price: there is no such field"),
        (
            {"factors": {"budget_calls": 3}},
            "factors.budget_calls: there is no such field; there are adoption, alternative, clock",
        ),
        ({"factors": {"policies": "aware"}}, "factors.policies: there is no such field"),
        ({"repeats": 0}, "repeats: Input should be greater than or equal to 1, not 0"),
        ({"horizon_factor": 1}, "horizon_factor: "),
        ({"documents": "novels"}, "documents must be handbook, not 'novels'"),
        ({"factors": 3}, "factors: "),
        ({"factors": {"alternative": 3}}, "factors.alternative: 3 is neither a name nor an alternative"),
        ({"factors": {"decision_timeout_s": ["soon"]}}, "factors.decision_timeout_s: "),
        ({"factors": {"decision_timeout_s": True}}, "factors.decision_timeout_s: a truth value is no number"),
        ({"factors": {"fault": []}}, "factors.fault: "),
        ({"factors": {"deadline_propagation": "maybe"}}, "factors.deadline_propagation: "),
        ({"factors": {"node_mode": "red"}}, "factors.node_mode: "),
        ({"factors": {"latency_profile": 4}}, "factors.latency_profile: 4 is no profile, no name of one"),
        ({"factors": {"workload": "chess"}}, "factors.workload: "),
        ({"factors": {"clock": "sun"}}, "factors.clock: "),
        ({"factors": {"fault": "lightning"}}, "factors.fault: unknown fault 'lightning'; the faults are none, hang"),
        ({"factors": {"decision_timeout_s": -1.0}}, "factors.decision_timeout_s: "),
        ({"factors": {"latency_profile": "light"}}, "factors.latency_profile: no latency profile is named 'light'"),
        ({"factors": {"alternative": "Z"}}, "factors.alternative: unknown alternative 'Z'"),
        ({"factors": {"server_behaviour": "vllm"}}, "factors.server_behaviour: "),
        (
            {"factors": {"alternative": "A", "node_mode": "async"}},
            "factors: no combination can be run: cooperative with node_mode=async",
        ),
    ],
)
def test_a_field_that_cannot_be_used_is_named_in_python_and_in_toml(
    values: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as in_python:
        StudyDesign.of(values)
    assert str(in_python.value).startswith(said)
    assert "side_by_side: " not in str(in_python.value), "a field that nobody gave"
    file = tmp_path / "study.toml"
    file.write_text(toml(values))
    with pytest.raises(ConfigurationError) as in_toml:
        StudyDesign.read(file)
    assert str(in_toml.value) == f"study file {file}: {in_python.value}"


def toml(values: dict[str, Any]) -> str:
    tables = "".join(f"[{name}]\n{toml(value)}" for name, value in values.items() if isinstance(value, dict))
    plain = {name: value for name, value in values.items() if not isinstance(value, dict)}
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in plain.items()) + tables


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"study file .*absent\.toml cannot be read \(No such file"):
        StudyDesign.read(tmp_path / "absent.toml")
    for text in (b"seed = ", b"\xff\xfe"):
        (tmp_path / "broken.toml").write_bytes(text)
        with pytest.raises(ConfigurationError, match=r"study file .*broken\.toml is not TOML"):
            StudyDesign.read(tmp_path / "broken.toml")


# ---- combinations


def test_a_combination_that_cannot_be_is_left_out_with_its_reason() -> None:
    made = design(alternative="A,D,unguarded", deadline_propagation=[True, False], node_mode=["own", "async"])
    assert made.plan.left_out
    for reason in (
        "cooperative with node_mode=async: it runs sync nodes",
        "unguarded with deadline_propagation=true: it has no such option",
    ):
        assert reason in made.plan.left_out
    assert len(set(made.plan.left_out)) == len(made.plan.left_out), "each reason once"


@pytest.mark.parametrize(
    ("alternative", "factor", "levels"),
    [
        ("A", "deadline_propagation", ["own", True]),
        ("unguarded", "deadline_propagation", ["own", False]),
        ("A", "node_mode", ["own", "sync"]),
        ("C", "node_mode", ["own", "async"]),
        ("A", "decision_timeout_s", [5, 5.0]),
        ("A", "fault", ["none", "none"]),
    ],
)
def test_what_an_alternative_does_by_itself_and_the_level_that_says_so_are_one_combination(
    alternative: str, factor: str, levels: list[Any]
) -> None:
    assert len(design(alternative=alternative, **{factor: levels}).plan.combinations) == 1


def test_propagation_taken_from_an_alternative_is_another_combination() -> None:
    made = design(alternative="A", deadline_propagation=["own", False], decision_timeout_s=5)
    assert {f.deadline_propagation for f in facts(made)} == {True, False}


def test_ids_of_runs_and_cells_are_unique_over_the_whole_study() -> None:
    made = design(
        1,
        alternative="A,A:per_read,B",
        decision_timeout_s=[5, 5.5],
        fault=["none", "hang:planner"],
        deadline_propagation=["own", False],
        router_injection=[False, True],
    )
    ids = [f.run_id for f in facts(made)]
    assert len(set(ids)) == len(ids) == made.total_runs
    assert {f.study_id for f in facts(made)} == {made.study_id}
    with small_cells(1):
        cells = [cell.id for bench in benches_of(made, Settings()) for cell in bench.cells]
    assert len(set(cells)) == made.total_runs


def test_a_study_of_too_many_runs_is_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_module, "MOST_RUNS", 7)
    with pytest.raises(ConfigurationError, match="repeats: the study would have up to 8 runs, above 7"):
        design(repeats=4, alternative="A,B")
    assert design(repeats=3, alternative="A,B").total_runs == 6


# ---- identity

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"
BASE: dict[str, Any] = {"alternative": "A", "decision_timeout_s": 5}


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 8},
        {"repeats": 3},
        {"name": "other"},
        pytest.param({"documents": str(HARBOUR), "questions": f"{HARBOUR}-questions.jsonl"}, id="documents"),
        {"horizon_factor": 3},
        {"side_by_side": 2},
        *(
            {"factors": {**BASE, **factor}}
            for factor in (
                {"alternative": "B"},
                {"alternative": "A:per_read"},
                {"decision_timeout_s": 6},
                {"deadline_propagation": False},
                {"router_injection": True},
                {"latency_profile": "typical"},
                {"fault": "hang:planner"},
                {"stops_on_disconnect": False},
                {"retries": 1},
                {"clock": "wall"},
            )
        ),
    ],
    ids=str,
)
def test_studies_that_differ_in_anything_have_different_ids(changed: dict[str, Any]) -> None:
    base = {"documents": "handbook", "repeats": 2, "factors": BASE}
    assert StudyDesign.of({**base, **changed}).study_id != StudyDesign.of(base).study_id


# ---- common random numbers


def test_runs_of_one_seed_ask_the_same_question_in_every_arm_and_condition() -> None:
    made = design(repeats=5, alternative="unguarded,A,C", decision_timeout_s=[5, 10], fault=["none", "hang:planner"])
    questions: dict[int, set[str]] = {}
    for f in facts(made):
        questions.setdefault(f.seed, set()).add(f.question_id)
    assert len(questions) == 5
    assert all(len(of_seed) == 1 for of_seed in questions.values())
    assert len(set.union(*questions.values())) == 5


def test_each_run_has_the_second_budget_of_the_system_and_the_design_says_so() -> None:
    system = dl.docmind(budget=Budget(time_s=60, calls=3, price=Price(1.0, 4.0)))
    study = dl.sweep(system, {"alternatives": "unguarded,A"}, runs=1, workers=1)
    runs = study.runs.astype({"second_budgets": "str", "alternative": "str"}).set_index("alternative")
    assert set(runs["second_budgets"]) == {"3 calls"}
    assert set(runs["decision_timeout_s"]) == {60.0}
    assert runs.loc["cooperative", ["stop_reason", "calls_spent"]].tolist() == ["call_budget", 3]
    assert runs.loc["unguarded", "calls_overspent"] > 0
    assert (runs["cost_spent"] > 0).all()
    price = {"input_per_million": 1.0, "output_per_million": 4.0}
    assert study.manifest["design"]["budget"] == {"calls": 3, "price": price}
    plain = StudyDesign.of({"repeats": 1})
    assert "budget" not in plain.to_dict()
    assert StudyDesign.of({"repeats": 1, "system": system}).study_id != plain.study_id


def test_runs_of_one_seed_meet_the_same_latencies_in_every_arm_and_budget() -> None:
    factors = {"alternative": "unguarded,A,C", "decision_timeout_s": [5, 30], "latency_profile": "typical"}
    study = sweep({"documents": "handbook", "repeats": 2, "factors": factors}, workers=1)
    server = study.calls[study.calls["seen_from"] == "server"]
    # The first call of each run: the supervisor's choice of an agent, which no budget here cuts.
    first = server.sort_values(["run_id", "started_at_s"]).groupby("run_id").head(1)
    runs = first.merge(study.runs[["run_id", "seed"]], on="run_id")
    latencies = runs.groupby("seed")["latency_s"].agg(["count", "nunique", "first"])
    assert latencies["count"].tolist() == [6, 6]
    assert latencies["nunique"].tolist() == [1, 1], "equal to the last bit"
    assert latencies["first"].nunique() == 2, "and another in every repeat"


def test_a_profile_of_a_server_is_a_level_beside_the_two_extremes() -> None:
    factors = {"stops_on_disconnect": [True, False], "server_behaviour": ["own", "llama-cpp-2026.10"]}
    design = StudyDesign.of({"repeats": 1, "factors": {"alternative": "A"} | factors})
    benches = benches_of(design, Settings())
    assert len(benches) == 3, "each behaviour has services of its own"
    assert [order.facts.server_behaviour for bench in benches for order in bench.cells[0].orders] == [
        "stops",
        "goes-on",
        "llama-cpp-2026.10",
    ]
