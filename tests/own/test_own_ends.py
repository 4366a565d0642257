"""How a run of a foreign graph is cut, and how its end is read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langgraph.channels import LastValue
from langgraph.types import Command, Interrupt

from docmind_lab.alternatives.base import INTERRUPT, FreeState, RunProgress, run_to_outcome
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.core.sync_async import Steps, afinish, finish, on_a_loop
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.own.doorway import RunDoorway, free_state
from docmind_lab.systems.own.graph_calls import NOWHERE, RunTree
from docmind_lab.systems.own.own_requests import RunObserver


class Frozen:
    """A clock that stands still."""

    def now(self) -> float:
        return 10.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


DEADLINE = Deadline(5.0, 2.0, Frozen())


def raising(error: BaseException) -> Steps[None]:
    yield from ()
    raise error


def test_a_cut_inside_a_task_group_is_found() -> None:
    async def cut() -> None:
        raise RunCut(DEADLINE.exceeded("node", "network"))

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(cut())

    assert asyncio.run(afinish(run_to_outcome(RunProgress(), on_a_loop(work)))).stop_reason == "deadline"


def test_other_groups_are_failures_and_what_is_no_end_of_a_run_goes_on() -> None:
    failed = finish(run_to_outcome(RunProgress(), raising(ExceptionGroup("two", [ValueError()]))))
    assert (failed.outcome, failed.error_type) == ("failed", "ExceptionGroup")
    with pytest.raises(BaseExceptionGroup):
        finish(run_to_outcome(RunProgress(), raising(BaseExceptionGroup("two", [KeyboardInterrupt()]))))


def test_a_foreign_state_without_messages_is_an_answer_and_the_labs_own_is_not() -> None:
    assert RunProgress(FreeState(messages=[])).final_outcome().outcome == "answered"
    assert RunProgress({"messages": []}).final_outcome().outcome == "failed"


def test_keys_of_a_foreign_state_mean_what_they_mean_to_it() -> None:
    state = {
        "messages": [("user", "why?"), {"role": "assistant", "content": "because"}],
        "stop_reason": "end_turn",
        "visits": {},
        "documents": ["a text", Document("b", id="1"), {"id": "2", "content": "c"}],
    }
    outcome = RunProgress(free_state(state)).final_outcome()
    assert (outcome.outcome, outcome.answer, outcome.stop_reason) == ("answered", "because", "")
    assert [document["id"] for document in outcome.documents] == ["1", "2"]
    assert free_state({"messages": "none"})["messages"] == []
    assert free_state({"messages": [object()]})["messages"] == []
    assert free_state({"messages": [AIMessage("x")], "documents": 3})["documents"] == []


def doorway(state_key: str = "") -> RunDoorway:
    recorder = Recorder("run", 7, DEADLINE, Frozen())
    return RunDoorway(RunObserver(recorder, None), state_key)


def test_the_deadline_is_taken_out_of_what_goes_in_and_put_where_it_is_asked_for() -> None:
    def inner(given, *rest, **options):
        yield given

    def went_in(door: RunDoorway, given: object) -> object:
        return next(door.stream(inner, {}, given, stream_mode="updates"))

    assert went_in(doorway(), {"a": 1, DEADLINE_KEY: 5.0}) == {"a": 1}
    assert went_in(doorway("stop_by"), {"a": 1, DEADLINE_KEY: 5.0}) == {"a": 1, "stop_by": 5.0}
    assert went_in(doorway("stop_by"), {"a": 1}) == {"a": 1}
    assert went_in(doorway(), Command(update={DEADLINE_KEY: 5.0})) is None
    assert went_in(doorway("stop_by"), Command(update={DEADLINE_KEY: 5.0})) == Command(update={"stop_by": 5.0})


def test_a_node_in_a_subgraph_belongs_to_the_outermost_one_and_keeps_its_branch() -> None:
    tree = RunTree()
    outer, between, inner = (object() for _ in range(3))

    def begin(run: object, above: object, **metadata: Any) -> None:
        tree.note_start(run, above, ["graph:step:2"], {f"langgraph_{name}": value for name, value in metadata.items()})

    begin(outer, None, node="reading_agent", step=2, path=("__pregel_push", 1))
    tree.note_start(between, outer, None, None)
    begin(inner, between, node="tools", step=9, path=("__pregel_push", 0))
    place = tree.place_of(inner)
    assert (place.role, str(place), place.position) == ("reading", "reading_agent/tools", "2.1-0")
    assert tree.place_of(object()) is NOWHERE


# ---- what a run that stops at an interrupt is


def test_what_other_nodes_of_a_step_wrote_is_kept_when_one_of_them_interrupts() -> None:
    progress = RunProgress(channels={"answer": LastValue(str, "answer")})
    progress.add(("values", {"question": "a"}))
    progress.add(("updates", {"one": {"answer": "written"}}))
    progress.add(("values", {"question": "a", INTERRUPT: (Interrupt("Who?"),)}))
    assert progress.state["answer"] == "written"
