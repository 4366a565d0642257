"""A live study over sockets: recorded, capped, interrupted; and what its recording says when it is replayed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from served_here import Here

import docmind_lab as dl
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.recordings.account import account_of
from docmind_lab.experiments.recordings.fidelity import fidelity
from docmind_lab.findings.study import Study
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.cell_store import CellStore

pytestmark = pytest.mark.wall

QUESTIONS = 3
# Its index takes a tenth of the time to build.
SMALL = "handbook"


@pytest.fixture(scope="module")
def live() -> Iterator[ServiceAddresses]:
    """Servers that a study knows nothing of but their addresses."""
    options = ServiceOptions(profile=LatencyProfile.named("typical/40"))
    with contextlib.closing(Here(options.door())) as services:
        yield services.addresses


def settings_for(live: ServiceAddresses) -> Settings:
    return Settings(llm={"base_url": live.openai_base_url})


@dataclass
class Recorded:
    """A live study, its recording, and what was on disk when each run was counted."""

    study: Study
    folder: Path
    cells: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def recorded(live: ServiceAddresses, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    place = tmp_path_factory.mktemp("live")
    found = Recorded(Study(*[None] * 3), place / "recording")  # type: ignore[arg-type]

    def look(done: int, total: int) -> None:
        found.cells.append(len(CellStore(place / "out" / "cells").done()) - done)
        found.lines.append(len(Recording.load(found.folder).runs) - done)

    found.study = dl.compare(
        dl.docmind(documents=SMALL),
        10.0,
        alternatives="A,C",
        world=dl.Live(settings=settings_for(live), record=found.folder, record_text=True),
        runs=QUESTIONS,
        out=place / "out",
        progress=look,
    )
    return found


@pytest.fixture(scope="module")
def replay(recorded: Recorded) -> Study:
    return dl.compare(world=dl.Replay(recorded.folder))


def test_each_finished_run_is_on_disk_before_it_is_counted(recorded: Recorded) -> None:
    assert recorded.cells == recorded.lines == [0] * (2 * QUESTIONS)


def test_a_recording_replays_with_the_same_outcomes_and_the_same_times(recorded: Recorded, replay: Study) -> None:
    found = fidelity(recorded.study, replay)
    assert found.same_outcome == 1.0
    # Every wait and all that Python computed between two of them is in the recording; what is left is how agents that
    # worked side by side shared one interpreter, some milliseconds on a loaded machine.
    assert found.pairs["later_s"].abs().max() < 0.03


def test_a_replay_of_the_same_runs_draws_nothing(recorded: Recorded, replay: Study) -> None:
    account = account_of(replay, Recording.load(recorded.folder))
    assert account.recorded == account.calls > 0
    assert replay.manifest["replayed_calls"] == account.to_dict()
    assert replay.manifest["design"]["replay"] == recorded.study.manifest["study_id"]


def test_a_replay_has_what_a_live_endpoint_cannot_tell(recorded: Recorded, replay: Study) -> None:
    assert recorded.study.runs["calls_after_deadline"].isna().all()
    assert (replay.runs["calls_after_deadline"] == 0).all()


def test_a_replay_says_what_was_recorded(recorded: Recorded, replay: Study) -> None:
    recording = Recording.load(recorded.folder)
    bodies = [call.body for run in recording.runs for call in run.calls if call.kind == "llm"]
    assert bodies
    assert all(json.loads(body or "")["usage"] for body in bodies)
    tokens = [
        study.calls[study.calls["seen_from"] == "client"].groupby("kind", observed=True)["output_tokens"].sum()["llm"]
        for study in (recorded.study, replay)
    ]
    assert tokens[0] == tokens[1] > 0


def model_requests(live: ServiceAddresses, run_ids: list[str]) -> int:
    """What the server itself counts."""
    log = LogClient(live.log_url)
    rows = [row for run_id in run_ids for row in log.rows(run_id)]
    log.close()
    return sum(row.kind == "llm" for row in rows)


@pytest.mark.full
def test_a_cap_ends_a_study_cleanly_and_nothing_is_sent_past_it(live: ServiceAddresses, tmp_path: Path) -> None:
    warm_ups = ["warm-up-cooperative", "warm-up-async_cancellation"]
    before = model_requests(live, warm_ups)
    # The two runs of the warm-up count too: what is left of the cap is enough for some runs, and not for all.
    study = dl.compare(
        dl.docmind(documents=SMALL),
        9.0,
        alternatives="A,B",
        world=dl.Live(settings=settings_for(live), max_requests=60, record=tmp_path / "r"),
        runs=4,
        seed=11,
    )
    study_id = study.manifest["study_id"]
    run_ids = [f"{study_id}-{arm}-{repeat}" for arm in ("0-cooperative", "1-hard_timeout") for repeat in range(1, 5)]
    assert model_requests(live, [*run_ids, *warm_ups]) - before == study.manifest["sent"]["requests"] == 60
    assert study.manifest["complete"] is False
    assert study.manifest["ended_by"] == "max_requests: 60 requests were sent"
    # What the cap cut says nothing of its alternative, so it is in no table.
    assert 0 < len(study.runs) < 8
    assert set(study.runs["outcome"]) == {"answered"}
    assert len(Recording.load(tmp_path / "r").runs) == len(study.runs)


@pytest.mark.full
def test_200_live_runs_replay_with_the_same_outcomes_and_completion_times(tmp_path: Path) -> None:
    # A budget among the run times, so that there are runs that are cut. Divided by more than 20, what Python computes
    # is as long as what it waits for, and what it computes past a deadline is nothing that virtual time has.
    study = dl.compare(
        decision_timeout_s=1.0,
        alternatives="A,B,C,unguarded",
        world=dl.Live(record=tmp_path / "r", latencies="typical/20"),
        runs=50,
    )
    found = fidelity(study, dl.compare(world=dl.Replay(tmp_path / "r")))
    assert len(found.pairs) == 200
    assert found.same_outcome >= 0.98, found
    assert found.distance <= 0.02, found
