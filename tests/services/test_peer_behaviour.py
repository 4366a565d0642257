"""What peers do is drawn by key; what they answer follows from what they are sent."""

from __future__ import annotations

import json
import math

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.hosted_behaviour import DEFAULT_HABITS, PeerBehaviour, PeerHabits
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.peers.executor import answer_task

PROFILE = LatencyProfile.named("typical")
KEYS = [DrawKey(seed, "reader_1", "0.0.1") for seed in range(400)]


def test_the_same_key_draws_the_same_course_and_another_role_another() -> None:
    behaviour = PeerBehaviour(PROFILE)
    key = DrawKey(7, "reader_1", "0.0.1")
    assert behaviour.course(key) == behaviour.course(key)
    assert behaviour.course(key).steps_s != behaviour.course(DrawKey(7, "reader_2", "0.0.1")).steps_s


def test_habits_do_not_change_how_long_the_work_itself_takes() -> None:
    plain, odd = PeerBehaviour(PROFILE, PeerHabits()), PeerBehaviour(PROFILE, PeerHabits(ignores_cancel=1, twice=1))
    assert [plain.course(key).work_s for key in KEYS] == [odd.course(key).work_s for key in KEYS]


def test_each_share_is_the_share_of_tasks_that_it_names() -> None:
    courses = [PeerBehaviour(PROFILE, PeerHabits(ignores_cancel=0.3, lost=0.1)).course(key) for key in KEYS]
    # 400 draws: within four standard deviations of a share.
    assert sum(course.ignores_cancel for course in courses) / 400 == pytest.approx(0.3, abs=0.092)
    assert sum(math.isinf(course.work_s) for course in courses) / 400 == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(("name", "value"), [("lost", 1.5), ("twice", -0.1), ("heartbeat_s", 0.0), ("late", True)])
def test_a_habit_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=name):
        PeerHabits(**{name: value})


def test_the_options_of_a_service_carry_the_habits_of_its_peers() -> None:
    options = ServiceOptions(PROFILE, peers=PeerHabits(lost=0.25, clock_skew_s=-60.0))
    assert ServiceOptions.from_json(options.as_json()) == options
    assert ServiceOptions(PROFILE).peer_behaviour().habits == DEFAULT_HABITS


def test_a_peer_states_what_its_passages_say_and_cites_them() -> None:
    passages = [
        {"id": "quoll#1", "content": "The quoll is a marsupial. The quoll will hunt at night in the forest."},
        {"id": "numbat#1", "content": "The numbat eats termites, and nothing but termites, all day long."},
    ]
    found = answer_task({"question": "When does the quoll hunt?", "passages": passages})
    assert found["ids"] == ["quoll#1"]
    assert "hunt at night" in found["statement"]


@pytest.mark.parametrize("task", [{}, {"question": "Why?"}, {"passages": "text"}, {"passages": [{"id": "a"}, 7]}])
def test_a_peer_that_is_sent_nothing_useful_finds_nothing(task: dict[str, object]) -> None:
    assert answer_task(task) == {"statement": "", "ids": []}


def test_options_that_say_nothing_of_peers_have_those_that_are_assumed() -> None:
    said = json.loads(ServiceOptions(PROFILE).as_json())
    del said["peers"]
    assert ServiceOptions.from_json(json.dumps(said)) == ServiceOptions(PROFILE)
