"""A study swept over a recording: the recording settles what it saw, the rest are factors."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import recorded_call, recorded_run, written

import docmind_lab as dl
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess
from docmind_lab.experiments.comparison.replays import replayed_comparison
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.sweeps.estimate import estimate
from docmind_lab.experiments.sweeps.settled import SETTLED_FACTORS
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise

SETTLED_FIELDS = ("seed", "horizon_factor", "side_by_side")
SLOWER = 3.0
"""How many times as long as the profile has it the made-up recording's calls take."""


@pytest.fixture(scope="module")
def live() -> Study:
    """One question under the control and A."""
    return dl.compare(decision_timeout_s=60, alternatives="unguarded,A", world=dl.World(latencies="fast"), runs=1)


def recording_at(folder: Path, live: Study, **design: Any) -> Path:
    """A recording as if the study had been live, at a provider that is slower than its profile."""
    lines = []
    for run in live.runs.to_dict("records"):
        calls = live.calls[(live.calls["run_id"] == run["run_id"]) & (live.calls["seen_from"] == "client")]
        taped = (
            recorded_call(
                str(call["call_id"]),
                SLOWER * call["started_at_s"],
                SLOWER * call["ended_at_s"],
                first_byte_at_s=SLOWER * call["first_byte_at_s"],
                attempt=int(call["attempt"]),
            )
            for call in calls.to_dict("records")
        )
        named = {name: run[name] for name in ("alternative", "alternative_options", "seed", "question_id")}
        lines.append(recorded_run(*taped, **named).to_json() + "\n")
    place = written(folder, *lines)
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    manifest["design"] = live.manifest["design"] | design
    (place / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def folder(live: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording_at(tmp_path_factory.mktemp("recorded") / "monday", live)


def design(folder: Path, **factors: Any) -> StudyDesign:
    return StudyDesign.of({"replay": str(folder), "factors": factors})


@pytest.fixture(scope="module")
def swept(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A, C and the control over the recording, at a decision timeout that cuts and one that does not."""
    made = design(folder, alternative="unguarded,A,C", decision_timeout_s=[2, 60])
    return sweep(made, executor=InThisProcess(), out=tmp_path_factory.mktemp("swept") / "out")


def test_the_calls_of_a_swept_replay_take_as_long_as_they_were_recorded_to(swept: Study, live: Study) -> None:
    ids = swept.runs[(swept.runs["alternative"] == "cooperative") & (swept.runs["decision_timeout_s"] == 60)]["run_id"]
    ours, theirs = (
        study.calls[study.calls["run_id"].isin(chosen) & (study.calls["seen_from"] == "client")].set_index("call_id")
        for study, chosen in (
            (swept, ids),
            (live, live.runs[live.runs["alternative"] == "cooperative"]["run_id"]),
        )
    )
    assert len(ours) == len(theirs) > 3
    assert ours["ended_at_s"].to_dict() == pytest.approx((SLOWER * theirs["ended_at_s"]).to_dict(), rel=1e-6)


def test_alternatives_and_decision_timeouts_are_swept_over_one_recording(swept: Study) -> None:
    met = swept.runs.groupby(["alternative", "decision_timeout_s"], observed=True)["seed"].agg(list)
    assert met.to_dict() == {
        (name, timeout_s): [run_seed(7, 1)]
        for name in ("unguarded", "cooperative", "async_cancellation")
        for timeout_s in (2.0, 60.0)
    }
    assert set(swept.runs["latency_profile"]) == {"recorded"}
    cut = swept.runs[(swept.runs["alternative"] == "cooperative") & (swept.runs["decision_timeout_s"] == 2)]
    assert cut["outcome"].isin(["partial", "timed_out"]).all()


def test_the_manifest_says_where_the_times_of_calls_are_from(swept: Study) -> None:
    said = swept.manifest["replayed_calls"]
    assert said["recorded"] > 0, "of the control and A"
    assert said["of_another_alternative"] > 0, "of C, which was not recorded"
    assert said["not_recorded"] == 0
    assert swept.manifest["design"]["replay"] == "made-up"
    assert any(line.startswith("A replay: ") for line in summarise(swept.runs, swept.manifest).advice)


def test_what_is_left_out_is_as_it_was_recorded(folder: Path, live: Study) -> None:
    made = design(folder)
    assert [combination.alternative.name for combination in made.plan.combinations] == ["unguarded", "cooperative"]
    assert (made.repeats, made.seed, made.library.name) == (1, 7, "handbook")
    assert {c.comparison.decision_timeout_s for c in made.plan.combinations} == {60.0}


def test_a_replay_has_no_endpoint_whatever_the_settings_name(folder: Path) -> None:
    settings = Settings(llm={"base_url": "http://127.0.0.1:8000/v1"})
    (bench,) = benches_of(design(folder, alternative="A"), settings)
    assert bench.settings.llm.base_url is None


@pytest.mark.parametrize("name", [*SETTLED_FACTORS, *SETTLED_FIELDS])
def test_what_a_recording_has_settled_may_not_be_swept(folder: Path, name: str) -> None:
    # Even as it was recorded: to say it is to take it for a choice.
    is_field = name in SETTLED_FIELDS
    values = {name: 7, "factors": {}} if is_field else {"factors": {name: ["fast"]}}
    said = f"{'' if is_field else 'factors.'}{name}: the recording in {folder} has settled it; leave it out"
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        StudyDesign.of({"replay": str(folder)} | values)


def test_a_folder_without_a_recording_and_one_of_a_users_graph_are_refused(live: Study, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no recording"):
        StudyDesign.of({"replay": str(tmp_path / "nothing")})
    with pytest.raises(ConfigurationError, match="replay: must be the folder of a recording, not 3"):
        StudyDesign.of({"replay": 3})
    own = recording_at(tmp_path / "own", live, workload="own:my_app:graph")
    with pytest.raises(ConfigurationError, match="name it and its inputs again"):
        StudyDesign.of({"replay": str(own)})


def test_a_study_is_named_by_its_recording_and_not_by_where_that_lies(
    folder: Path, live: Study, tmp_path: Path
) -> None:
    moved = recording_at(tmp_path / "moved", live)
    assert design(moved).study_id == design(folder).study_id != design(folder, alternative="A").study_id
    assert "latency_profile" not in design(folder).to_dict()["factors"]


@pytest.mark.parametrize("system", [None, dl.research()])
def test_a_recording_of_another_of_the_labs_systems_is_swept_named_or_not(
    live: Study, tmp_path: Path, system: dl.System | None
) -> None:
    place = recording_at(tmp_path / "r", live, workload="research")
    made = StudyDesign.of({"world": dl.Replay(place)} | ({} if system is None else {"system": system}))
    assert {each.comparison.workload for each in made.plan.combinations} == {"research"} == set(made.workloads)
    with pytest.raises(ConfigurationError, match="system: the recording has settled it"):
        StudyDesign.of({"world": dl.Replay(place), "system": dl.hops()})


def test_an_estimate_is_of_replayed_runs(folder: Path) -> None:
    assert estimate(design(folder, alternative="A"), Settings(), workers=1).how == "from a pilot of 1 run"


def test_second_budgets_of_a_replay_are_those_that_were_recorded_unless_others_are_given(
    live: Study, tmp_path: Path
) -> None:
    price = {"input_per_million": 1.0, "output_per_million": 4.0}
    recording = Recording.load(recording_at(tmp_path / "r", live, budget={"calls": 4, "price": price}))
    assert replayed_comparison(recording, dl.docmind(), Settings()).budget == Budget(calls=4, price=Price(1.0, 4.0))
    asked = dl.docmind(budget=Budget(time_s=5.0, tokens=100))
    made = replayed_comparison(recording, asked, Settings())
    assert (made.budget.tokens, made.budget.calls, made.decision_timeout_s) == (100, None, 5.0)


def test_a_study_has_the_second_budgets_that_were_recorded_unless_others_are_given(live: Study, tmp_path: Path) -> None:
    recorded = {"calls": 4, "cost": 0.0125, "price": {"input_per_million": 0.15, "output_per_million": 1e-7}}
    place = recording_at(tmp_path / "r", live, budget=recorded)
    kept = {combination.comparison.budget for combination in design(place).plan.combinations}
    assert kept == {Budget(calls=4, cost=0.0125, price=Price(0.15, 1e-7))}
    others = design(place, alternative="A", budget_tokens=[100, "none"]).plan.combinations
    assert [combination.comparison.budget for combination in others] == [Budget(tokens=100), Budget()]
    none = design(place, alternative="A", budget_calls="none").plan.combinations
    assert [combination.comparison.budget for combination in none] == [Budget()]


def test_second_budgets_are_swept_over_a_recording(folder: Path) -> None:
    made = design(folder, alternative="A", budget_calls=[2, "none"])
    runs = sweep(made, executor=InThisProcess()).runs.astype({"second_budgets": "str"}).set_index("second_budgets")
    assert runs.loc["2 calls", ["stop_reason", "calls_spent"]].tolist() == ["call_budget", 2]
    assert not math.isnan(runs.loc["none", "calls_spent"])
