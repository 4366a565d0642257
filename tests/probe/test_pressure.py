"""What a model does when it is told that little time is left: measured right where its habit is known."""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from served_here import Here
from service_doors import always

import docmind_lab as dl
from benchmarks.tiny_server import MODULES, TinyServer
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.time_policies import share_left
from docmind_lab.experiments.probe import Target
from docmind_lab.experiments.probe.pressure import LEAST_TASKS, Pressure, TaskRun, handbook_tasks
from docmind_lab.experiments.probe.truth import Counters, truth_of
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.scripted_model import Conversation, Reply, ToolCall
from docmind_lab.services.server import ServiceOptions, ServiceProcess
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

QUICK = LatencyProfile("quick", "", "a test", always(0.001), always(0.0), always(0.001))
TASKS = [{"question": f"What is {n}?", "gold": ["one", "two"], "id": f"t{n}"} for n in range(LEAST_TASKS + 3)]
NOTHING: dict[str, Any] = {}


@pytest.fixture
def serving(serve_here: Callable[..., Here]) -> Callable[..., Here]:
    def start(script: Callable[[Conversation], Reply] | None = None, **options: Any) -> Here:
        if script is None:
            return serve_here(profile=QUICK, **options)
        return serve_here(WallDoor(llm=OpenAIService(QUICK, script=script), vectors=VectorService(QUICK)))

    return start


def url_of(here: Here) -> str:
    return here.addresses.openai_base_url


# ---- against endpoints whose habit is known


@pytest.mark.wall
@pytest.mark.parametrize("habit", ["ignores", "hurries:0.25", "panics:0.5"])
def test_the_habit_of_the_labs_own_service_is_what_it_was_told_to_have(
    habit: str, serving: Callable[..., Here]
) -> None:
    here = serving(model_under_pressure=habit)
    measured = dl.pressure(url_of(here), handbook_tasks(seed=3), model="m")
    assert measured.habit == habit
    assert measured.world == dl.World(model=dl.ScriptedModel(under_pressure=habit))
    kind, _, share = habit.partition(":")
    assert {row.share: row.verdict for row in measured.table} == {
        each: kind if each <= float(share or 1) else "ignores" for each in (0.5, 0.25, 0.1)
    }
    # What it cost is what the server counted.
    rows = here.log.rows("pressure", wait_quiet_s=5.0)
    sent = measured.finding().numbers
    assert sent["requests"] == len(rows) == measured.runs["requests"].sum()
    assert sent["tokens_generated"] == sum(row.output_tokens for row in rows)
    assert f"under_pressure='{habit}'" in repr(measured)


REPEATS = 20


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize("habit", ["ignores", "hurries:0.25", "panics:0.25"])
def test_of_fresh_tasks_at_a_service_process_95_of_100_measurements_are_right(habit: str) -> None:
    with ServiceProcess(ServiceOptions(profile=QUICK, model_under_pressure=habit)) as services:
        url = services.addresses.openai_base_url
        results = [dl.pressure(url, handbook_tasks(seed=seed), seed=seed) for seed in range(500, 500 + REPEATS)]
    # What is unclear is not right either.
    right = [all(row.verdict != "unclear" for row in each.table) and each.habit == habit for each in results]
    assert sum(right) >= 0.95 * REPEATS


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in MODULES), reason="no extra live")
def test_a_real_server_is_measured_and_its_own_count_of_tokens_is_that_of_the_measurement() -> None:
    """A model of random weights knows no language, so no habit of it can be expected; it must not be said to panic."""
    questions = [f"Go on with {n}." for n in range(LEAST_TASKS + 3)]
    with TinyServer() as server:
        truth = truth_of(Target(server.base_url, "tiny"))
        assert isinstance(truth, Counters)
        before = truth.look().tokens
        measured = dl.pressure(server.base_url, questions, shares=(0.1,), max_tokens=24)
        generated = truth.look().tokens - before
    assert measured.finding().numbers["tokens_generated"] == generated
    assert measured.finding().numbers["requests"] == 2 * len(questions)
    assert set(measured.runs["quality"]) == {1.0}
    assert measured.at(0.1).verdict in ("ignores", "unclear")


# ---- what follows from the runs


def runs_of(
    told: Callable[[int, random.Random], dict[str, Any]],
    *,
    tasks: int = 24,
    noise: float = 0.0,
    share: float = 0.25,
    seed: int = 1,
    **calm: Any,
) -> list[TaskRun]:
    """Runs without the line, and with it, which differ by what `told` says of a task; lengths vary by `noise`."""
    rng = random.Random(seed)
    rows = []
    for at in range(tasks):
        usual = {"requests": 3, "output_tokens": 100 + 10 * at, "quality": 1.0} | calm
        for share_said, changed in ((math.nan, NOTHING), (share, told(at, rng))):
            values = usual | changed
            factor = changed.get("factor", 1.0) * math.exp(rng.gauss(0, noise))
            values["output_tokens"] = round(values["output_tokens"] * factor)
            values.pop("factor", None)
            rows.append(TaskRun(share_said, f"t{at}", 1, **values))
    return rows


def measured(*runs: list[TaskRun], note: str = "") -> Pressure:
    rows = tuple(run for each in runs for run in each)
    return Pressure("m", rows, note)


INCOMPLETE: dict[str, Any] = {"quality": 0.5}
REFUSED: dict[str, Any] = {"quality": 0.0, "factor": 0.1}


@pytest.mark.parametrize(
    ("told", "options", "verdict", "note"),
    [
        (lambda at, rng: NOTHING, {}, "ignores", ""),
        (lambda at, rng: {"factor": 0.95}, {}, "ignores", ""),
        (lambda at, rng: {"factor": 0.6}, {}, "hurries", ""),
        (lambda at, rng: {"requests": 2}, {}, "hurries", ""),
        # A fall of quality counts, however short the answers are.
        (lambda at, rng: {"factor": 0.6} | INCOMPLETE, {}, "panics", ""),
        (lambda at, rng: REFUSED if at % 2 else NOTHING, {}, "panics", ""),
        # What is longer neither hurries nor ignores it.
        (lambda at, rng: {"factor": 1.8}, {}, "unclear", "24 tasks do not show whether it does with less"),
        (lambda at, rng: {"factor": 0.6}, {"tasks": LEAST_TASKS - 1}, "unclear", "16 tasks cannot show it; give it 17"),
        (lambda at, rng: NOTHING, {"tasks": LEAST_TASKS}, "ignores", ""),
        (lambda at, rng: {"factor": 0.6} | (INCOMPLETE if at < 3 else NOTHING), {}, "unclear", "stay as good"),
    ],
)
def test_a_verdict_needs_intervals_that_allow_no_other(told: Any, options: Any, verdict: str, note: str) -> None:
    row = measured(runs_of(told, **options)).at(0.25)
    assert row.verdict == verdict, row
    assert note in row.note
    assert bool(row.note) == (verdict == "unclear")


@pytest.mark.full
@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ("ignores", lambda at, rng: NOTHING),
        ("hurries", lambda at, rng: {"factor": 0.55}),
        ("panics", lambda at, rng: INCOMPLETE if rng.random() < 0.7 else NOTHING),
    ],
)
def test_a_model_whose_answers_vary_is_hardly_ever_judged_wrong(verdict: str, told: Any) -> None:
    """Lengths vary by a quarter and more from call to call, and a tenth of the answers lacks something in any case."""

    def lacking(at: int, rng: random.Random) -> dict[str, Any]:
        return told(at, rng) or (INCOMPLETE if rng.random() < 0.1 else NOTHING)

    verdicts = [measured(runs_of(lacking, tasks=40, noise=0.15, seed=seed)).at(0.25).verdict for seed in range(100)]
    wrong = [each for each in verdicts if each not in (verdict, "unclear")]
    assert len(wrong) <= 5
    assert verdicts.count(verdict) >= 90


def test_the_simulated_model_has_the_worst_habit_from_the_largest_share_on() -> None:
    hurries = runs_of(lambda at, rng: {"factor": 0.5}, share=0.5)
    panics = runs_of(lambda at, rng: INCOMPLETE, share=0.1)
    both = measured(hurries, runs_of(lambda at, rng: {"factor": 0.4}, share=0.25))
    assert both.habit == "hurries:0.5"
    # Runs without the line are of the same tasks, each once: those of one part are enough.
    worse = measured(hurries, [run for run in panics if run.share == 0.1])
    assert [row.verdict for row in worse.table] == ["hurries", "panics"]
    assert worse.habit == "panics:0.1"
    assert "It also hurries at some share" in worse.text()


def test_words_and_table_are_true_of_the_rows() -> None:
    runs = runs_of(lambda at, rng: REFUSED if at < 12 else NOTHING)
    # Neither half of a pair that failed in one way is of the measurement.
    runs.append(TaskRun(0.25, "t20", 2, requests=1, failure="HTTP 500"))
    runs.append(TaskRun(math.nan, "t20", 2, requests=1, output_tokens=9_000, quality=1.0))
    result = measured(runs, note="It ended early")
    row = result.at(0.25)
    assert row.changes["quality"].estimate == pytest.approx(-0.5)
    assert row.changes["output_tokens"].estimate == pytest.approx(-0.45, abs=0.01)
    text = result.text()
    assert "-50% [" in text
    assert "The endpoint failed in 1 run, left out here." in text
    assert "It ended early." in text
    assert f"Sent: {result.runs['requests'].sum()} requests" in text
    assert result.finding().as_json()["shares"][0]["the model"] == "panics"


def test_a_habit_that_is_not_shown_makes_no_world() -> None:
    result = measured(runs_of(lambda at, rng: NOTHING, tasks=3))
    with pytest.raises(ConfigurationError, match=r"m does at 0\.25 of the time is unclear: 3 tasks cannot show it"):
        _ = result.world
    assert "no simulated model can do the same" in repr(result)
    with pytest.raises(ConfigurationError, match=r"share 0\.7: no task was done"):
        result.at(0.7)


# ---- what is sent, and how an answer is judged


@pytest.mark.wall
def test_requests_with_and_without_the_line_differ_in_it_alone(serving: Callable[..., Here]) -> None:
    asked: list[list[Any]] = []

    def note(conversation: Conversation) -> Reply:
        asked.append([dict(message) for message in conversation.messages])
        return Reply(text="one and two")

    dl.pressure(url_of(serving(note)), TASKS[:1], shares=(0.25,))
    told, calm = sorted(asked, key=lambda messages: share_left(messages[0]["content"]) is None)
    assert told[0]["content"].removesuffix("\n\nTime left: 5.0 s of 20 s.") == calm[0]["content"]
    assert told[1:] == calm[1:] == [{"role": "user", "content": "What is 0?"}]


@pytest.mark.wall
@pytest.mark.parametrize(
    ("text", "task", "quality"),
    [
        ("One, and then TWO.", {}, 1.0),
        ("Only one.", {}, 0.5),
        ("", {"gold": []}, 0.0),
        ("Anything.", {"gold": []}, 1.0),
    ],
)
def test_an_answer_is_as_good_as_the_share_of_its_gold(
    text: str, task: dict[str, Any], quality: float, serving: Callable[..., Here]
) -> None:
    here = serving(lambda conversation: Reply(text=text))
    result = dl.pressure(url_of(here), [TASKS[0] | task], shares=(0.5,))
    assert set(result.runs["quality"]) == {quality}


@pytest.mark.wall
def test_a_model_that_calls_tools_without_end_has_no_answer(serving: Callable[..., Here]) -> None:
    task = TASKS[0] | {"tools": {"look_up": "one and two"}}
    here = serving(lambda conversation: Reply(tool_calls=(ToolCall("look_up", {}),)))
    result = dl.pressure(url_of(here), [task], shares=(0.5,))
    assert set(zip(result.runs["quality"], result.runs["requests"], strict=True)) == {(0.0, 3)}


# ---- limits, and what fails


@pytest.mark.wall
def test_requests_that_fail_are_no_habit_of_the_model_and_three_in_a_row_end_it(serving: Callable[..., Here]) -> None:
    url = url_of(serving(lambda conversation: Reply(text=conversation.messages[7]["content"])))
    with pytest.raises(ServiceError, match="did not answer the first request: the server answered HTTP 400"):
        dl.pressure(url, TASKS)
    asked: list[int] = []

    def at_first(conversation: Conversation) -> Reply:
        asked.append(len(asked))
        return Reply(text="one and two" if len(asked) <= 9 else conversation.messages[7]["content"])

    result = dl.pressure(url_of(serving(at_first)), TASKS)
    assert (result.runs["failure"] != "").sum() == 3
    assert "It ended when 3 in a row had failed: the server answered HTTP 400" in result.text()
    assert result.at(0.5).tasks < len(TASKS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": (0.5, 1.0)}, "shares must be numbers above 0 and below 1"),
        ({"shares": ()}, "shares must be numbers"),
        ({"repeats": 0}, "repeats and max_tokens must be 1 or more"),
        ({"tasks": [{"question": "x", "tools": ["look_up"]}]}, "task 001: tools must be names with the text"),
        ({"tasks": [{"question": "x", "tools": {"look up": "y"}}]}, "task 001: tools must be names with the text"),
        ({"tasks": [{"question": "x", "system": "y"}]}, "takes no argument 'system'"),
        ({"endpoint": "http://models.example/v1"}, "endpoint: models.example is not on this machine"),
        ({"max_requests": 159}, "up to 160 requests may be needed, but max_requests is 159"),
        ({"budget": 3}, "dl.pressure has no argument 'budget'"),
    ],
)
def test_mistakes_are_named_before_anything_is_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        dl.pressure(**({"endpoint": "http://127.0.0.1:9/v1", "tasks": TASKS, "model": "m"} | options))
    assert message in str(refused.value)
