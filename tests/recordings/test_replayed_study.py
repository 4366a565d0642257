"""A replay of a recording: the recording settles what it saw, and the rest is as the call says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import recorded_call, recorded_run, written

import docmind_lab as dl
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.experiments.comparison.replays import replayed_comparison
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.systems.system_catalogue import system_of

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


def replayed(folder: Path, decision_timeout_s: float, alternatives: str, **options: Any) -> Study:
    world = dl.Replay(folder)
    return dl.compare(None, decision_timeout_s, alternatives=alternatives, world=world, workers=1, **options)


@pytest.fixture(scope="module")
def ample(folder: Path) -> Study:
    """A, C and the control over the recording, at a decision timeout that cuts nothing."""
    return replayed(folder, 60, "unguarded,A,C")


def test_the_calls_of_a_replay_take_as_long_as_they_were_recorded_to(ample: Study, live: Study) -> None:
    ours, theirs = (
        study.calls[
            study.calls["run_id"].isin(study.runs.loc[study.runs["alternative"] == "cooperative", "run_id"])
            & (study.calls["seen_from"] == "client")
        ].set_index("call_id")
        for study in (ample, live)
    )
    assert len(ours) == len(theirs) > 3
    assert ours["ended_at_s"].to_dict() == pytest.approx((SLOWER * theirs["ended_at_s"]).to_dict(), rel=1e-6)


def test_one_recording_is_replayed_under_other_alternatives_and_decision_timeouts(ample: Study, folder: Path) -> None:
    seeds = ample.runs.groupby("alternative", observed=True)["seed"].agg(list)
    assert seeds.to_dict() == {name: [run_seed(7, 1)] for name in ("unguarded", "cooperative", "async_cancellation")}
    assert set(ample.runs["latency_profile"]) == {"recorded"}
    assert replayed(folder, 2, "A").runs["outcome"].isin(["partial", "timed_out"]).all()


def test_the_manifest_says_where_the_times_of_calls_are_from(ample: Study) -> None:
    origins = ample.manifest["replayed_calls"]
    assert origins["recorded"] > 0, "of the control and A"
    assert origins["of_another_alternative"] > 0, "of C, which was not recorded"
    assert origins["not_recorded"] == 0
    assert ample.manifest["design"]["replay"] == "made-up"
    assert any(line.startswith("A replay: ") for line in summarise(ample.runs, ample.manifest).advice)


def test_what_is_left_out_is_as_it_was_recorded_and_no_endpoint_is_asked(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DOCMIND_LLM__BASE_URL", "http://127.0.0.1:8000/v1")
        made, settings = resolve(dl.docmind(), world=dl.Replay(folder))
    assert [alternative.name for alternative in made.alternatives] == ["unguarded", "cooperative"]
    assert (made.runs, made.seed, made.documents.name, made.decision_timeout_s) == (1, 7, "handbook", 60.0)
    assert settings.llm.base_url is None


def test_a_replay_of_no_folder_and_one_of_a_users_graph_are_refused(live: Study, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="replay: must be the folder of a recording, not 3"):
        dl.Replay(3)  # type: ignore[arg-type]
    own = recording_at(tmp_path / "own", live, workload="own:my_app:graph")
    with pytest.raises(ConfigurationError, match="name it and its inputs again"):
        dl.compare(world=dl.Replay(own))


@pytest.mark.parametrize("system", [None, dl.research()])
def test_a_recording_of_another_of_the_labs_systems_is_replayed_named_or_not(
    live: Study, tmp_path: Path, system: dl.System | None
) -> None:
    world = dl.Replay(recording_at(tmp_path / "r", live, workload="research"))
    assert resolve(system_of(system), world=world)[0].workload == "research"
    with pytest.raises(ConfigurationError, match="system: the recording has settled it"):
        resolve(dl.hops(), world=world)


@pytest.mark.parametrize("values", [{"replay": "monday"}, {"world": dl.Replay("monday")}])
def test_a_study_is_not_swept_over_a_recording(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="replay: a study is not swept over a recording; compare replays it"):
        StudyDesign.of(values)


def test_second_budgets_of_a_replay_are_those_that_were_recorded_unless_others_are_given(
    live: Study, tmp_path: Path
) -> None:
    price = {"input_per_million": 1.0, "output_per_million": 4.0}
    recording = Recording.load(recording_at(tmp_path / "r", live, budget={"calls": 4, "price": price}))
    assert replayed_comparison(recording, dl.docmind(), Settings()).budget == Budget(calls=4, price=Price(1.0, 4.0))
    asked = dl.docmind(budget=Budget(time_s=5.0, tokens=100))
    made = replayed_comparison(recording, asked, Settings())
    assert (made.budget.tokens, made.budget.calls, made.decision_timeout_s) == (100, None, 5.0)


def test_a_replay_is_held_to_second_budgets(folder: Path) -> None:
    (run,) = dl.compare(
        dl.docmind(budget=Budget(calls=2)), alternatives="A", world=dl.Replay(folder), workers=1
    ).runs.to_dict("records")
    assert (run["stop_reason"], run["calls_spent"]) == ("call_budget", 2)


@pytest.mark.parametrize("name", ["stops", "goes-on", "llama-cpp-2026.10"])
def test_the_servers_of_a_replay_do_what_those_of_the_recording_did(name: str, live: Study, tmp_path: Path) -> None:
    design = resolve(dl.docmind(), world=dl.World(server=name))[0].design()
    said = {each: design[each] for each in ("stops_on_disconnect", "server_behaviour") if each in design}
    made, _ = resolve(dl.docmind(), world=dl.Replay(recording_at(tmp_path / "r", live, **said)))
    assert made.server_behaviour == ServerBehaviour.named(name)
