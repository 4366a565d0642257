"""`once`: a tool with an effect runs once for each call of a model in a thread (runway.md 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, interrupt
from often import often
from script_modules import load_script
from scripted_model import calling, scripted

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.repaired_threads import WAS_CUT
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.crash_test import crash_test

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
THREAD: Any = {"configurable": {"thread_id": "captain@harbour.example"}}
CALL = {"name": "letter", "args": {"text": "x"}, "id": "call-letter", "type": "tool_call"}


class Process:
    """A process with a graph of its own over what outlives it: the store and the effects."""

    def __init__(self) -> None:
        self.store, self.sent = InMemoryStore(), list[str]()

    def letter(self, during: Callable[[], object] = lambda: None, *, is_async: bool = False) -> BaseTool:
        """The tool: it sends a letter, and then does what a test wants to happen meanwhile."""

        def run(text: str) -> str:
            self.sent.append(text)
            during()
            return f"sent {text}"

        async def arun(text: str) -> str:
            self.sent.append(text)
            await asyncio.sleep(0)
            during()
            return f"sent {text}"

        made = StructuredTool.from_function(None if is_async else run, arun if is_async else None, "letter", "Send it.")
        return dl.once(made, store=self.store)


def call(made: BaseTool, is_async: bool = False, **changed: Any) -> Any:
    given = {**CALL, **changed}
    return asyncio.run(made.ainvoke(given, THREAD)) if is_async else made.invoke(given, THREAD)


def cut() -> None:
    raise asyncio.CancelledError


def fail() -> None:
    raise ConnectionError("the post office is closed")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_repeated_call_returns_the_result_that_was_kept(is_async: bool) -> None:
    process = Process()
    first = call(process.letter(is_async=is_async), is_async)
    again = call(process.letter(is_async=is_async), is_async)
    assert (first.content, first.status, process.sent) == ("sent x", "success", ["x"])
    assert again == first


def test_results_are_kept_in_a_store_that_is_opened_anew(tmp_path: Path) -> None:
    sent: list[str] = []

    @tool(response_format="content_and_artifact")
    def letter(text: str) -> tuple[str, dict[str, str]]:
        """Send it."""
        sent.append(text)
        return "sent", {"file": "a.png"}

    results = []
    for _ in range(2):
        with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
            store.setup()
            results.append(call(dl.once(letter, store=store)))
    assert (results[1], results[1].artifact, sent) == (results[0], {"file": "a.png"}, ["x"])


@pytest.mark.parametrize("happens", [cut, fail])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_did_not_end_is_never_repeated_and_says_that_it_is_not_known(happens: Any, is_async: bool) -> None:
    process = Process()
    with pytest.raises((asyncio.CancelledError, ConnectionError)):
        call(process.letter(happens, is_async=is_async), is_async)
    for _ in range(2):
        again = call(process.letter(is_async=is_async), is_async)
        assert (again.content, again.status, again.tool_call_id) == (WAS_CUT, "error", "call-letter")
    assert process.sent == ["x"]


def test_another_call_another_thread_and_other_arguments_are_other_calls() -> None:
    process = Process()
    made = process.letter()
    call(made)
    call(made, id="call-2")
    # Some servers count the calls of each turn anew.
    call(made, args={"text": "y"})
    made.invoke(CALL, {"configurable": {"thread_id": "another"}})
    assert process.sent == ["x", "x", "y", "x"]


def test_a_call_that_is_under_way_is_not_begun_again() -> None:
    process = Process()
    meanwhile: list[Any] = []
    first = call(process.letter(lambda: meanwhile.append(call(process.letter()))))
    assert (first.content, meanwhile[0].content, process.sent) == ("sent x", WAS_CUT, ["x"])


def agent(made: Any, store: Any, saver: Any, *replies: AIMessage) -> Any:
    return create_agent(scripted(*replies), [dl.once(made)], checkpointer=saver, store=store)


def test_a_graphs_own_store_keeps_the_results_and_what_the_graph_injects_is_no_argument() -> None:
    seen: list[str] = []

    @tool
    def letter(text: str, runtime: ToolRuntime) -> str:
        """Send it."""
        seen.append(str(runtime.tool_call_id))
        return "sent"

    store = InMemoryStore()
    for question in ("Go", "Go on"):  # another state, the same call
        said = agent(letter, store, InMemorySaver(), calling("letter"), AIMessage("The end."))
        state = said.invoke({"messages": [HumanMessage(question)]}, THREAD)
        assert [each.content for each in state["messages"] if isinstance(each, ToolMessage)] == ["sent"]
    assert seen == ["call-letter"]


def test_a_tool_that_waits_for_a_person_is_run_when_it_has_its_answer() -> None:
    done: list[str] = []

    @tool
    def letter(text: str) -> str:
        """Send it."""
        done.append(interrupt("May I?"))
        return done[-1]

    graph = agent(letter, InMemoryStore(), InMemorySaver(), calling("letter"), AIMessage("The end."))
    graph.invoke({"messages": [HumanMessage("Go")]}, THREAD)
    state = graph.invoke(Command(resume="yes"), THREAD)
    assert [each.content for each in state["messages"] if isinstance(each, ToolMessage)] == ["yes"]
    assert done == ["yes"]


class Opaque:
    """Something that no store takes."""

    def __reduce__(self) -> Any:
        raise TypeError("not to be kept")


def test_a_result_that_cannot_be_kept_is_not_known_the_next_time() -> None:
    artifact = Opaque()

    @tool(response_format="content_and_artifact")
    def letter(text: str) -> tuple[str, Any]:
        """Send it."""
        return "sent", artifact

    made = dl.once(letter, store=InMemoryStore())
    assert call(made).artifact is artifact
    assert call(made).content == WAS_CUT


def test_a_tool_stays_what_it_was_and_a_function_becomes_one() -> None:
    def letter(text: str) -> str:
        """Send it."""
        return "sent"

    plain = tool(letter)
    made = dl.once(plain)
    assert (made.name, made.description, made.args) == (plain.name, plain.description, plain.args)
    assert isinstance(made, StructuredTool)
    assert type(plain) is StructuredTool
    assert dl.once(letter).name == "letter"


def test_what_cannot_be_told_apart_is_refused_with_the_remedy() -> None:
    kept_letter = Process().letter()
    with pytest.raises(ConfigurationError, match="tool is a str, not a tool"):
        dl.once("letter")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="invoke it with the call of a model"):
        kept_letter.invoke({"text": "x"}, THREAD)
    with pytest.raises(ConfigurationError, match="runs once in a thread; give"):
        kept_letter.invoke(CALL)
    with pytest.raises(ConfigurationError, match=r"compile\(store=\.\.\.\), or once\(tool, store=\.\.\.\)"):
        dl.once(tool(lambda text: text, description="Say it.")).invoke({**CALL, "name": "x"}, THREAD)


# ---- the findings of docs/findings


def harbour_agent(version: str, wrap: Callable[[Any], Any]) -> Any:
    tools = load_script(ROOT / "examples/crash/harbour_tools.py")
    mine = [wrap(each) for each in tools.tools]
    if version == "create_agent":
        return create_agent(tools.model, mine)
    return create_react_agent(tools.model, mine, version="v1")


@pytest.mark.parametrize(
    ("version", "alternatives", "durability"),
    often([("create_agent", "kill", "exit"), ("v1", "C,kill", "async")], ("v1", "C,kill", "async")),
)
def test_a_letter_that_was_sent_twice_is_sent_once(version: str, alternatives: str, durability: str) -> None:
    found = []
    for wrap in (lambda each: each, dl.once):
        system = dl.graph(harbour_agent(version, wrap), ["How deep is Fairhaven?"])
        report = crash_test(system, alternatives=alternatives, durability=durability, runs=30, repair=False, workers=1)
        found.append([each for each in report.findings if each.invariant in ("effects", "resume")])
    ((twice,), none) = found
    assert (twice.what, none) == ("letter (tool send_letter) is done twice", [])
    assert twice.remedy == "wrap the tool in dl.once (send_letter), or give the effect an idempotency key"
