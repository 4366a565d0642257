"""What the crash test found in public agent frameworks is still there, and docs/findings says what the rows say.

A test of a finding passes while the finding is there. It fails when a version comes in which it is gone or has moved.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import itertools
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, StateGraph
from often import often
from script_modules import load_script
from scripted_model import ScriptedModel, scripted

import docmind_lab as dl
from docmind_lab.experiments.crash_test.crash_bench import DURABILITIES
from docmind_lab.testing import assert_survives_cuts, cut_at

ROOT = Path(__file__).parents[2]
QUESTION = "How deep is Fairhaven?"
THREAD: Any = {"configurable": {"thread_id": "1"}}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def reference(case: str) -> str:
    return f"{ROOT}/examples/crash/{case}.py:graph"


def gone(package: str, page: str) -> str:
    found = f"{package} {importlib.metadata.version(package)}"
    return (
        f"docs/findings/{page}.md does not show with {found}: it is mended, or its instant has moved. "
        "Run data/derive_crash_findings.py again and bring the page up to date."
    )


def test_a_thread_without_the_input_in_it_is_given_the_input_again() -> None:
    """Killed before the graph's end under "exit", the thread has a checkpoint that LangGraph cannot resume."""
    seen = cut_at(reference("deep_agent"), QUESTION, "kill", 5.294066436, durability="exit")
    assert seen.resumed is not None
    assert seen.resumed.outcome == "answered"


# ---- the findings, at their instants

REFUSED = "a provider refuses the conversation when the user goes on"
FAILS = "the user's next message fails"
TWICE = "letter (tool send_letter) is done twice"
AGAIN, NEXT, SKIPPED = "tool-called-again", "next-message-refused", "cancelled-call-skipped"
SAVERS = f"{ROOT}/examples/crash/savers.py"
IN_A_FILE, IN_A_FILE_ASYNC = {"checkpointer": f"{SAVERS}:sqlite"}, {"checkpointer": f"{SAVERS}:async_sqlite"}
ON_EXIT = {"durability": "exit"}


OFTEN = [
    ("agent", "langchain", NEXT, "D", 0.001, REFUSED, {}),
    ("agent", "langgraph", AGAIN, "kill", 2.111034738, TWICE, {}),
    ("deep_agent", "langgraph", SKIPPED, "C", 4.275962976, "refuses the conversation when the run is resumed", {}),
]


@pytest.mark.parametrize(
    ("case", "package", "page", "alternative", "at_s", "words", "options"),
    often(
        [
            *OFTEN,
            ("react_agent", "langgraph-prebuilt", NEXT, "D", 0.001, FAILS, {}),
            ("react_agent_v1", "langgraph-prebuilt", NEXT, "D", 0.001, FAILS, {}),
            # D stops after the step under way, so it is cut in that of the model; C cuts the tools at their work.
            ("react_agent", "langgraph-prebuilt", NEXT, "D", 0.001, FAILS, IN_A_FILE),
            ("react_agent", "langgraph-prebuilt", NEXT, "C", 1.9, FAILS, IN_A_FILE_ASYNC),
            ("agent", "langgraph", AGAIN, "kill", 2.111034738, TWICE, IN_A_FILE),
            # At one instant in every process: the hand-over tools of the example are in an order.
            ("supervisor", "langgraph-supervisor", AGAIN, "C", 4.612819657, TWICE, {}),
            # A finished tool, with its siblings.
            ("react_agent_v1", "langgraph-prebuilt", AGAIN, "C", 2.013162292, TWICE, {}),
            # A sub-agent starts over.
            ("swarm", "langgraph", AGAIN, "D", 2.7050624, TWICE, ON_EXIT),
        ],
        *OFTEN,
    ),
)
def test_a_finding_is_there_at_its_instant(
    case: str, package: str, page: str, alternative: str, at_s: float, words: str, options: dict[str, Any]
) -> None:
    said = ""
    try:
        cut_at(reference(case), QUESTION, alternative, at_s, **options)
    except AssertionError as error:
        said = str(error)
    assert words in said, gone(package, page)


# ---- where it was looked for and not found


@pytest.mark.full
@pytest.mark.parametrize("case", ["swarm", "supervisor", "deep_agent"])
def test_no_finding_where_the_run_is_stopped_between_steps(case: str) -> None:
    assert_survives_cuts(dl.graph(reference(case), [QUESTION]), alternatives="D", runs=8, workers=1)


# ---- the same without the lab: an event loop, a scripted model, a checkpointer in memory


@tool
async def quick(text: str) -> str:
    """Return at once."""
    return "done"


@tool
async def endless(text: str) -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


def call(name: str, number: int, **given: str) -> dict[str, Any]:
    return {"name": name, "args": given, "id": f"call-{number}"}


async def cancelled_after(graph: Any, given: Any, node: str, reached: asyncio.Event) -> None:
    """Run a graph, and cancel it when a node has ended once and another has reached its place."""
    ended = asyncio.Event()

    async def run() -> None:
        async for update in graph.astream(given, THREAD, stream_mode="updates"):
            if node in update:
                ended.set()

    task = asyncio.create_task(run())
    await ended.wait()
    await reached.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    for _ in range(100):
        await asyncio.sleep(0)  # what was cancelled writes its end


class State(TypedDict, total=False):
    notes: Annotated[list[str], operator.add]
    result: str


def test_a_cancelled_node_that_had_sent_a_write_is_not_run_again() -> None:
    async def study() -> dict[str, Any]:
        sent = asyncio.Event()

        async def writer(state: State) -> State:
            get_config()["configurable"]["__pregel_send"]([("notes", ["sent"])])
            sent.set()
            await asyncio.Event().wait()
            return {"result": "written"}

        builder = StateGraph(State)
        builder.add_node("writer", writer)
        builder.add_node("reader", lambda state: {"notes": ["read"]})
        builder.add_edge(START, "writer")
        builder.add_edge(START, "reader")
        graph = builder.compile(checkpointer=InMemorySaver())
        await cancelled_after(graph, {"notes": []}, "reader", sent)
        # Were the node run again, it would wait for ever.
        return dict(await asyncio.wait_for(graph.ainvoke(None, THREAD), 60.0))

    try:
        state = asyncio.run(study())
    except TimeoutError:
        pytest.fail(gone("langgraph", "cancelled-call-skipped"))
    assert sorted(state["notes"]) == ["read", "sent"]
    assert "result" not in state


def saved_and_sent(graph: Any, model: ScriptedModel) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Cut a run in which one tool has ended; return what its thread says, and what the next message comes to."""

    async def study() -> list[AnyMessage]:
        reached = asyncio.Event()
        reached.set()
        await cancelled_after(graph, {"messages": [HumanMessage("Go")]}, "tools", reached)
        saved = (await graph.aget_state(THREAD)).values["messages"]
        await graph.ainvoke({"messages": [HumanMessage("And now?")]}, THREAD)
        return list(saved)

    return asyncio.run(study()), model.asked[-1]


def two_calls() -> ScriptedModel:
    calls = [call("quick", 1, text="a"), call("endless", 2, text="b")]
    return scripted(AIMessage("", tool_calls=calls), AIMessage("The end."))


def test_the_result_of_a_finished_tool_is_dropped_by_the_next_message() -> None:
    model = two_calls()
    saved, sent = saved_and_sent(create_agent(model, [quick, endless], checkpointer=InMemorySaver()), model)
    assert [message.content for message in saved if message.type == "tool"] == ["done"]
    assert [message for message in sent if message.type == "tool"] == [], gone("langgraph", "finished-result-dropped")


def test_a_deep_agent_is_told_that_a_finished_tool_did_not_complete() -> None:
    model = two_calls()
    graph = create_deep_agent(model=model, tools=[quick, endless], checkpointer=InMemorySaver())
    saved, sent = saved_and_sent(graph, model)
    assert [message.content for message in saved if message.type == "tool"] == ["done"]
    told = {message.tool_call_id: message.text for message in sent if message.type == "tool"}
    assert "did not complete" in told["call-1"], gone("deepagents", "finished-result-dropped")


# ---- the page and its rows


def test_the_table_says_what_the_rows_say_and_every_run_of_them_is_of_a_graph_that_is_there() -> None:
    made = load_script(ROOT / "data" / "derive_crash_findings.py")
    assert made.table() in (ROOT / "docs/findings/README.md").read_text(encoding="utf-8")
    runs, found = made.read("runs.csv"), made.read("findings.csv")
    graphs = {path.stem for path in (ROOT / "examples/crash").glob("*.py")} - set(made.NO_GRAPHS)
    in_memory = [row for row in runs if row["checkpointer"] == made.IN_MEMORY]
    assert {(row["case"], row["durability"]) for row in in_memory} == set(itertools.product(graphs, DURABILITIES))
    # Each checkpointer there is, with each durability.
    others = {(row["case"], row["checkpointer"], row["durability"]) for row in runs if row not in in_memory}
    checkpointers = set(made.CHECKPOINTERS) - {made.IN_MEMORY}
    assert others == set(itertools.product(["react_agent", "react_agent_v1"], checkpointers, DURABILITIES))
    for row in runs:
        assert int(row["least_tried"]) >= 10, "a kind of cut point was hardly tried"
        assert int(row["findings"]) == sum(made._key_of(each) == made._key_of(row) for each in found)
    for page in {each["page"] for each in found} - {""}:
        assert (ROOT / "docs/findings" / f"{page}.md").exists()
