"""A live study over sockets: recorded, capped, interrupted; and what its recording says when it is replayed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import docmind_lab as dl
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.recordings.fidelity import fidelity
from docmind_lab.experiments.recordings.replay import replayed_calls
from docmind_lab.findings.study import Study
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.tables.cell_store import CellStore

pytestmark = pytest.mark.wall

QUESTIONS = 2
# Its index takes a tenth of the time to build.
SMALL = "handbook"


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


def test_a_replay_draws_nothing_and_has_what_a_live_endpoint_cannot_tell(recorded: Recorded, replay: Study) -> None:
    recording = Recording.load(recorded.folder)
    calls = replayed_calls(replay, recording)
    assert calls == replay.manifest["replayed_calls"]
    assert calls["recorded"] > 0
    assert calls["of_another_alternative"] == calls["not_recorded"] == 0
    assert replay.manifest["design"]["replay"] == recorded.study.manifest["study_id"]
    assert recorded.study.runs["calls_after_deadline"].isna().all()
    assert (replay.runs["calls_after_deadline"] == 0).all()
    bodies = [call.body for run in recording.runs for call in run.calls if call.kind == "llm"]
    assert bodies
    assert all(json.loads(body or "")["usage"] for body in bodies)
    tokens = [
        study.calls[study.calls["seen_from"] == "client"].groupby("kind", observed=True)["output_tokens"].sum()["llm"]
        for study in (recorded.study, replay)
    ]
    assert tokens[0] == tokens[1] > 0
