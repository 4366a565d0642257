"""What a cut run returns: everything that the nodes which had finished wrote, under every alternative that streams."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Overwrite
from manual_clock import ManualClock
from virtual_runs import VirtualRuns

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import STREAM_MODES, RunProgress
from docmind_lab.core.deadlines import Deadline
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.docmind.graphs.supervisor import AgentNode, SupervisorBuildParams

# Of forty repeats at 8 s, those that are cut in the middle of a fan-out of which one branch has finished.
DISCORDANT = (169588488377777, 255242311270067)
STREAMING = ("A", "B:streamed", "C", "D", "E", "F")


@pytest.fixture(scope="module")
def recalls(virtual_runs: VirtualRuns) -> Callable[[str], list[tuple[str, float]]]:
    """Outcome and source recall of an alternative on the discordant seeds."""
    profile = LatencyProfile.named("heavy_tail/3")

    def measured(alternative: str) -> list[tuple[str, float]]:
        comparison = Comparison(
            decision_timeout_s=8.0,
            runs=40,
            alternatives=parse_alternatives(alternative),
            profile=profile,
            documents=Documents("handbook"),
        )
        orders = {order.facts.seed: order for order in comparison.orders()}
        runs = [virtual_runs.system.measure(orders[seed], ServiceOptions(profile)).run for seed in DISCORDANT]
        return [(run.outcome, run.source_recall) for run in runs]

    return measured


@pytest.mark.parametrize("alternative", STREAMING)
def test_a_branch_that_had_finished_when_the_fan_out_was_cut_counts_for_every_alternative(
    recalls: Callable[[str], list[tuple[str, float]]], alternative: str
) -> None:
    assert recalls(alternative) == [("partial", 1.0), ("partial", 1.0)]


def test_a_hard_timeout_around_a_future_has_nothing_to_return(
    recalls: Callable[[str], list[tuple[str, float]]],
) -> None:
    assert recalls("B") == [("timed_out", 0.0), ("timed_out", 0.0)]


def test_a_cut_agent_commits_what_it_found() -> None:
    deadline = Deadline.after(1.0, ManualClock())

    class Agent:
        def stream(self, state: dict[str, Any], *arguments: Any, **options: Any) -> Iterator[dict[str, Any]]:
            yield {**state, "documents": [{"id": "a"}], "messages": [*state["messages"], AIMessage("A draft.", id="d")]}
            raise deadline.exceeded("research", "network")

    node = AgentNode(cast("Any", Agent()), "research_agent", SupervisorBuildParams())
    update = node.invoke({"messages": [HumanMessage("?", id="q")]}).update
    assert update is not None
    assert (update["documents"], update["stop_reason"]) == ([{"id": "a"}], "deadline")
    assert update["messages"]


class State(MessagesState):
    documents: Annotated[list[dict[str, Any]], operator.add]
    newest: str
    hidden: int


def fan_out(*branches: Callable[[State], Any]) -> Any:
    made = StateGraph(State)
    for number, branch in enumerate(branches):
        made.add_node(f"branch{number}", RunnableLambda(branch))
        made.add_edge(START, f"branch{number}")
    return made.compile()


def failing(state: State) -> Any:
    raise RuntimeError("the other branches have finished")


def shown(graph: Any, inputs: dict[str, Any]) -> RunProgress:
    progress = RunProgress.of(graph)

    def work() -> None:
        for chunk in graph.stream(inputs, {"max_concurrency": 1}, stream_mode=STREAM_MODES):
            progress.add(chunk)

    with pytest.raises(RuntimeError, match="other branches"):
        work()
    return progress


def test_writes_go_through_the_reducers_of_the_graph_and_leave_its_state_alone() -> None:
    before = [{"id": "a"}]
    graph = fan_out(lambda state: {"documents": [{"id": "b"}], "newest": "b"}, lambda state: None, failing)
    progress = shown(graph, {"messages": [HumanMessage("?")], "documents": before})
    for _ in range(2):  # reading changes nothing
        assert [document["id"] for document in progress.state["documents"]] == ["a", "b"]
    assert (progress.state["newest"], before) == ("b", [{"id": "a"}])
    stopped = progress.early_outcome("deadline")
    assert (stopped.outcome, len(stopped.documents)) == ("partial", 2)


@pytest.mark.parametrize(
    ("writes", "key", "before", "after"),
    [
        (({"newest": "b"}, {"newest": "c"}), "newest", "a", "a"),
        (({"documents": Overwrite([{"id": "c"}])},), "documents", [{"id": "a"}], [{"id": "c"}]),
    ],
    ids=["two writes without a reducer leave what was there", "an overwrite replaces it"],
)
def test_what_a_reducer_does_not_add_to(writes: tuple[Any, ...], key: str, before: Any, after: Any) -> None:
    graph = fan_out(*(lambda state, write=write: write for write in writes), failing)  # type: ignore[misc]
    assert shown(graph, {"messages": [], key: before}).state[key] == after


def test_a_state_takes_the_place_of_the_updates_that_led_to_it() -> None:
    graph = fan_out(lambda state: {"documents": [{"id": "b"}]})
    progress = RunProgress.of(graph)
    for chunk in graph.stream({"messages": [], "documents": [{"id": "a"}]}, stream_mode=STREAM_MODES):
        progress.add(chunk)
    assert [document["id"] for document in progress.state["documents"]] == ["a", "b"]


def test_streaming_updates_does_not_turn_a_models_calls_into_streaming_ones() -> None:
    streamed: list[str] = []

    class Model(FakeListChatModel):
        def _stream(self, *arguments: Any, **options: Any) -> Any:
            streamed.append("streamed")
            return super()._stream(*arguments, **options)

    model = Model(responses=["yes"])
    graph = fan_out(lambda state: {"messages": [model.invoke("?")]})
    assert list(graph.stream({"messages": []}, stream_mode=STREAM_MODES))
    assert streamed == []
    assert list(graph.stream({"messages": []}, stream_mode="messages"))
    assert streamed
