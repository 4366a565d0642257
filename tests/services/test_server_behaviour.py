"""What a server does with a call whose client has left, in each phase, as a profile that both doors play."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flat_compare import compare_by
from service_doors import (
    HERE,
    SLOW,
    TOKENS,
    Virtual,
    always,
    ask,
    leave,
)

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, PHASES, STOPS, Phase, PhaseBehaviour, ServerBehaviour, WorkEnds
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile

# Nine tokens: the first after 0.4 s, the answer after 1.3 s.
FIRST_S, DURATION_S = 0.4, 1.3
PROFILE = LatencyProfile("in phases", "Nine tokens in 1.3 s.", "a test", always(FIRST_S), always(0.1), always(0.05))
DELAY_S = 0.15
# Streaming, and when the client leaves, by phase.
PLACES: dict[Phase, tuple[bool, float]] = {
    "prefill": (False, 0.1),
    "generation": (False, 0.75),
    "before_first_token": (True, 0.1),
    "mid_stream": (True, 0.75),
}


def behaviour(phase: Phase, work_ends: WorkEnds, **more: Any) -> ServerBehaviour:
    """A server that does this in one phase, and stops at once in the others."""
    one = {
        phase: PhaseBehaviour(work_ends=work_ends, **({"delay_s": DELAY_S} if work_ends == "at_once" else {}), **more)
    }
    return STOPS.model_copy(update={"name": "made-up", "phases": {**STOPS.phases, **one}})


def end_of(phase: Phase, work_ends: WorkEnds) -> float:
    """Seconds after its receipt at which the work on a call ends."""
    stream, leaves_s = PLACES[phase]
    next_write_s = {"before_first_token": FIRST_S, "mid_stream": 0.8}.get(phase, DURATION_S) if stream else DURATION_S
    return {"at_once": leaves_s + DELAY_S, "at_next_write": next_write_s}.get(work_ends, DURATION_S)


every_case = pytest.mark.parametrize("phase", PLACES)
every_end = pytest.mark.parametrize("work_ends", ["at_once", "at_next_write", "at_its_end", "unknown"])


@every_case
@every_end
def test_in_virtual_time_work_ends_when_the_profile_says(phase: Phase, work_ends: WorkEnds) -> None:
    stream, leaves_s = PLACES[phase]
    leaving = partial(asyncio.run, leave(HERE, leaves_s, stream=stream))
    (row,) = rows_of(leaving, behaviour=behaviour(phase, work_ends))
    assert row.client_gone_at == pytest.approx(leaves_s)
    assert row.ended_at == pytest.approx(end_of(phase, work_ends))
    assert row.outcome == ("ok" if work_ends in ("at_its_end", "unknown") else "client_gone")
    generated = [tokens for begun_at, ended_at, tokens in row.token_spans]
    assert sum(generated) == row.output_tokens == int(max(0.0, end_of(phase, work_ends) - FIRST_S) / 0.1 + 1e-9)


def rows_of(function: Any, *, profile: LatencyProfile = PROFILE, **options: Any) -> list[RequestRow]:
    """The rows of what a function asks, when the services are at rest again."""
    virtual = Virtual.of(profile=profile, **options)
    virtual.run(function, rests_s=2 * DURATION_S)
    return virtual.rows


def test_a_server_that_looks_now_and_then_ends_the_work_at_its_next_look() -> None:
    looks = behaviour("generation", "at_once", checks_every_s=0.5)
    (row,) = rows_of(partial(asyncio.run, leave(HERE, 0.75)), behaviour=looks)
    assert row.ended_at == pytest.approx(1.0)


@pytest.mark.parametrize(("work_ends", "outcome"), [("at_once", "client_gone"), ("at_its_end", "ok")])
def test_a_call_left_in_the_queue_is_dropped_or_worked_on_as_the_profile_says(
    work_ends: WorkEnds, outcome: str
) -> None:
    def crowd() -> None:
        first = threading.Thread(target=ask)
        first.start()
        time.sleep(0.1)
        asyncio.run(leave(HERE, 0.2))
        first.join()

    rows = rows_of(crowd, profile=SLOW, slots=1, behaviour=behaviour("queue", work_ends))
    assert [row.outcome for row in rows] == ["ok", outcome]
    assert rows[1].output_tokens == (TOKENS if outcome == "ok" else 0)


# ---- the profile


def test_a_profile_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = behaviour("queue", "at_its_end", late_tokens=12.0, evidence="counters", trials=3, note="a note")
    (tmp_path / "server.json").write_text(made.to_json(), encoding="utf-8")
    assert ServerBehaviour.named(str(tmp_path / "server.json")) == made
    assert ServiceOptions.from_json(ServiceOptions(behaviour=made).as_json()).behaviour == made


def test_the_extremes_are_those_of_the_switch() -> None:
    assert ServerBehaviour.named("stops") == STOPS
    assert ServerBehaviour.named("goes-on") == GOES_ON
    assert {phase: STOPS.delay_s(phase, 1.0) for phase in (*PHASES, None)} == dict.fromkeys((*PHASES, None), 0.0)
    assert {GOES_ON.delay_s(phase, 1.0) for phase in (*PHASES, None)} == {float("inf")}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": "a", "phases": {"prefill": {"work_ends": "at_once"}}}, "work that ends at_once needs delay_s"),
        ({"name": "a", "phases": {"waiting": {"work_ends": "at_its_end"}}}, "phases.waiting"),
        ({"name": "A b", "phases": {}}, "name"),
        ({"name": "a", "phases": {}, "colour": "red"}, "colour"),
        ({"name": "a", "phases": {"queue": {"work_ends": "at_once", "delay_s": -1}}}, "phases.queue.delay_s"),
    ],
)
def test_a_profile_that_cannot_be_played_is_refused_by_its_field(data: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        ServerBehaviour.read(tmp_path / "server.json")


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"one of stops, goes-on.* or a \.json file"):
        dl.compare(alternatives="A", world=dl.World(server="nginx"), runs=1)


# ---- in a comparison

ALIKE = {"runs": 3, "alternatives": "B,C", "decision_timeout_s": 6.0, "latencies": "typical"}


def test_an_extreme_has_the_id_and_the_rows_of_the_switch_that_it_took_the_place_of() -> None:
    named = compare_by(**ALIKE, server="goes-on")
    switched, _ = resolve(dl.docmind(), 6.0, alternatives="B,C", world=dl.World(latencies="typical"), runs=3)
    assert named.manifest["study_id"] == dataclasses.replace(switched, server_behaviour=GOES_ON).study_id
    assert set(named.runs["server_behaviour"].astype("str")) == {"goes-on"}
    assert not named.runs["stops_on_disconnect"].any()


def test_a_profile_is_in_the_design_the_rows_and_the_title() -> None:
    made = behaviour("generation", "at_its_end")
    study = compare_by(**ALIKE, server=made)
    assert study.manifest["design"]["server_behaviour"]["phases"]["generation"] == {"work_ends": "at_its_end"}
    assert set(study.runs["server_behaviour"].astype("str")) == {"made-up"}
    assert "servers behave as made-up when their client leaves" in str(study)
    # C leaves calls that are being answered, none of which streams.
    left = study.runs[study.runs["alternative"].astype("str") == "async_cancellation"]
    stops = compare_by(**ALIKE).runs
    assert left["tokens_after_deadline"].sum() > 0
    assert stops[stops["alternative"].astype("str") == "async_cancellation"]["tokens_after_deadline"].sum() == 0
