"""What a user's graph is run with besides its input: context, configuration, store, answers (agents.md 0 and 2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import pickle
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NotRequired

import pandas as pd
import pytest
from flat_compare import compare_by
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Send, interrupt
from own_runs import ASKED, EVERY, State, graph_of, simulated
from typing_extensions import TypedDict
from virtual_runs import details

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.summary import summarise
from docmind_lab.systems.own import load_graph, own_graph, read_inputs
from docmind_lab.systems.own.run_settings import RunSettings
from docmind_lab.systems.workload_by_name import workload_kind


@dataclass
class Context:
    user: str
    visits: int = 1


def outcomes(graph: Any, alternatives: str = EVERY, **options: Any) -> set[str]:
    """How runs of a graph ended, one under each alternative."""
    return {run.run.outcome for run in simulated(graph, alternatives=alternatives, **options)}


def compared(graph: Any, alternatives: str = "unguarded,A", runs: int = 1, **options: Any) -> dl.Study:
    return compare_by(**({"inputs": [ASKED]} | options), graph=graph, runs=runs, alternatives=alternatives)


def greet(state: State, runtime: Runtime[Context]) -> State:
    return {"answer": f"{runtime.context.user} {runtime.context.visits}"}


def ask_twice(state: State) -> State:
    first = interrupt("Who?")
    return {"answer": f"{first} {interrupt('Why?')}"}


def finish(state: State) -> State:
    return {"answer": f"{state['answer']}."}


GREETS = graph_of(greet, context=Context)
ASKS = graph_of(ask_twice, finish)


# ---- context and configuration


def test_every_alternative_gives_context_and_configuration_to_the_graph() -> None:
    seen: list[Any] = []

    def note(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
        seen.append((runtime.context.user, runtime.context.visits, config["configurable"]["berth"]))
        assert config["recursion_limit"] == 7
        return {}

    config = {"configurable": {"berth": "b"}, "recursion_limit": 7}
    simulated(graph_of(note, context=Context), alternatives=EVERY, context={"user": "ada"}, config=config)
    assert seen == [("ada", 1, "b")] * 7


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "the graph's context needs user: give it, such as --context"),
        ({"context": {"user": 3}}, "context.user: Input should be a valid string"),
        ({"config": ["a"]}, "config must be an object"),
        ({"config": {"checkpoint_id": "1"}}, "config must not set checkpoint_id: each run begins a thread of its own"),
        ({"resume": "yes"}, "resume must be a list of answers"),
    ],
)
def test_settings_that_do_not_fit_are_told_with_their_field(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        own_graph(GREETS, [ASKED], **settings)
    with pytest.raises(ConfigurationError, match="has no context_schema"):
        own_graph(ASKS, [ASKED], context={"user": "ada"})
    with pytest.raises(ConfigurationError, match="each run needs a store of its own"):
        workload_kind(own_graph(ASKS, [ASKED], store=InMemoryStore()).workload)  # type: ignore[arg-type]


def test_an_input_of_a_graph_with_a_context_goes_to_a_process_that_has_not_imported_the_users_module(
    tmp_path: Path,
) -> None:
    file = tmp_path / "context_of_a_file.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom typing import TypedDict\n"
        "from langgraph.graph import START, StateGraph\n"
        "@dataclass\nclass Context:\n    user: str\n"
        "class State(TypedDict, total=False):\n    question: str\n"
        "graph = StateGraph(State, context_schema=Context).add_node('only', lambda state: {})"
        ".add_edge(START, 'only').compile()\n"
    )
    graph = load_graph(f"{file}:graph")
    (asked,) = read_inputs(graph, [{"question": "a"}], RunSettings.of({"user": "ada"}))
    assert asked.settings.context_for(graph).user == "ada"
    assert b"context_of_a_file" not in pickle.dumps(asked)


def test_a_context_that_no_other_process_can_be_sent_is_used_in_this_one(tmp_path: Path) -> None:
    file = tmp_path / "locked_context.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom typing import Any\n"
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "@dataclass\nclass Context:\n    lock: Any\n"
        "def answer(state, runtime):\n    with runtime.context.lock:\n        return {}\n"
        "graph = StateGraph(MessagesState, context_schema=Context).add_node('only', answer).add_edge(START, 'only')\n",
        encoding="utf-8",
    )
    context = SimpleNamespace(lock=threading.Lock())
    study = compared(f"{file}:graph", "A", 3, inputs=["hi"], context=context, workers=2)
    assert (study.runs["outcome"] == "answered").all()


def test_an_input_brings_settings_of_its_own_over_the_general_ones() -> None:
    line = {"input": {"question": "a"}, "context": {"user": "bob"}, "config": {"depth": 2}, "resume": [1]}
    (asked,) = read_inputs(GREETS, [line], RunSettings.of({"user": "ada", "visits": 4}, {"depth": 1, "lang": "en"}))
    assert asked.settings.context_for(GREETS) == Context("bob", 4)
    assert asked.settings.config == {"configurable": {"depth": 2, "lang": "en"}}
    assert asked.settings.resume == (1,)


# ---- store


SEEN: list[int] = []


def remember(state: State, *, store: BaseStore) -> State:
    before = len(store.search(("seen",)))
    SEEN.append(before)
    store.put(("seen",), str(before), {"text": state["question"]})
    return {"seen": [before]}


def test_a_graph_without_a_store_has_an_empty_one_in_each_run() -> None:
    SEEN.clear()
    assert outcomes(graph_of(remember)) == {"answered"}
    assert SEEN == [0] * 7


def test_a_store_of_the_users_is_made_for_each_run() -> None:
    made: list[InMemoryStore] = []

    def fresh() -> InMemoryStore:
        store = InMemoryStore()
        store.put(("seen",), "old", {"text": "before"})
        made.append(store)
        return store

    simulated(graph_of(remember), alternatives="unguarded,A,C", store=fresh)
    assert [len(store.search(("seen",))) for store in made] == [2, 2, 2]


# ---- errors that a graph notes by itself


class NotingState(TypedDict, total=False):
    question: str
    errors: list[str]
    error: str | None
    row_errors: Any
    terror: str


@pytest.mark.parametrize("alternatives", ["unguarded,A", "C,E"])
def test_a_graph_that_ends_with_an_error_in_its_state_is_said_to(alternatives: str) -> None:
    def catch(state: NotingState) -> NotingState:
        return {"error": None, "errors": ["the key is missing"], "terror": "of the deep"}

    graph = StateGraph(NotingState).add_node(catch).add_edge(START, "catch").compile()
    study = compared(graph, alternatives, 2)
    assert study.manifest["errors_in_state"] == {"errors": 4}
    said = " ".join(summarise(study.runs, study.manifest).markdown().split())
    assert "In 4 runs the graph came to its end with an error of its own in its state, under errors." in said


def test_an_error_that_came_with_the_input_or_was_put_right_is_none_of_the_graphs_nor_is_a_table() -> None:
    """The truth of a table is an error of its own."""

    def note(state: NotingState) -> NotingState:
        return {"error": "not yet", "row_errors": pd.DataFrame({"row": [1, 2]})}

    def mend(state: NotingState) -> NotingState:
        return {"error": None}

    graph = StateGraph(NotingState).add_sequence([note, mend]).add_edge(START, "note").compile()
    study = compared(graph, inputs=[{"question": "a", "errors": ["of before"]}])
    assert "errors_in_state" not in study.manifest
    assert set(study.runs["outcome"].astype("str")) == {"answered"}


class Report(TypedDict):
    report: str
    remark: NotRequired[str]


class Reporting(Report, total=False):
    question: str


@pytest.mark.parametrize(("written", "said"), [({"question": "b"}, True), ({"report": ""}, False)])
def test_a_graph_that_ends_without_the_output_that_it_declares_is_said_to(written: Reporting, said: bool) -> None:
    def write(state: Reporting) -> Reporting:
        return written

    graph = StateGraph(Reporting, output_schema=Report).add_node(write).add_edge(START, "write").compile()
    study = compared(graph, "unguarded,C", 2)
    assert study.manifest.get("outputs_not_set", {}) == ({"report": 4} if said else {})
    text = " ".join(summarise(study.runs, study.manifest).markdown().split())
    sentence = "In 4 runs the graph came to its end without a value of report, which it declares as its output."
    assert (sentence in text) is said


def test_a_graph_that_stops_for_a_person_is_not_said_to_lack_its_output() -> None:
    def ask(state: Reporting) -> Reporting:
        return {"report": interrupt("may I?")}

    graph = StateGraph(Reporting, output_schema=Report).add_node(ask).add_edge(START, "ask").compile()
    study = compared(graph, "unguarded,A,C")
    assert set(study.runs["outcome"].astype("str")) == {"interrupted"}
    assert "outputs_not_set" not in study.manifest


# ---- interrupts


def test_an_interrupt_is_an_outcome_of_its_own_and_names_its_node() -> None:
    runs = simulated(ASKS, alternatives=EVERY)
    assert {(run.run.outcome, run.run.stop_reason, run.run.error_node) for run in runs} == {
        ("interrupted", "interrupted", "ask_twice")
    }
    assert outcomes(ASKS, "unguarded,A,C", resume=["ada"]) == {"interrupted"}, "past the last answer too"


def test_interrupts_are_answered_in_their_order_under_every_alternative() -> None:
    heard: list[str] = []

    def note(state: State) -> State:
        heard.append(state["answer"])
        return {}

    runs = simulated(graph_of(ask_twice, note), alternatives=EVERY, resume=["ada", "asks"])
    assert heard == ["ada asks"] * 7
    for run in runs:
        answers = details(run, "interrupt_answered")
        # Events of one instant stand in the order of their details.
        assert sorted((answer["left"], answer["interrupts"]) for answer in answers) == [(0, 1), (1, 1)]


def stopping(**compiled: Any) -> Any:
    """A graph with a breakpoint before its last node."""
    compiled |= {"checkpointer": InMemorySaver(), "interrupt_before": ["finish"]}
    return graph_of(remember, finish, compiled=compiled)


ANSWERED: dict[str, Any] = {"question": "a", "answer": "b"}


@pytest.mark.parametrize(("resume", "outcome"), [([], "interrupted"), (["go on"], "answered")])
def test_a_breakpoint_is_no_answer_and_is_passed_by_one(resume: list[str], outcome: str) -> None:
    assert outcomes(stopping(), given=ANSWERED, resume=resume) == {outcome}


def test_runs_that_stop_at_a_breakpoint_are_said_to() -> None:
    study = compared(stopping(), inputs=[ANSWERED])
    assert "2 of 2 runs stopped to wait for a person at a breakpoint." in " ".join(str(study.report()).split())


def test_enforce_tells_a_breakpoint_from_an_answer() -> None:
    agent = dl.enforce(stopping(store=InMemoryStore()), 5, "A")
    config = {"configurable": {"thread_id": "1"}}
    assert agent.invoke(ANSWERED, config).outcome == "interrupted"
    assert agent.invoke(None, config).state["answer"] == "b."


class Answers(TypedDict, total=False):
    question: str
    seen: Annotated[list[Any], operator.add]


@pytest.mark.parametrize("answers", [["x", "y", "z"], ["x", "y"], ["x"]])
def test_parallel_interrupts_are_answered_in_their_order_and_the_rest_by_the_last_answer(answers: list[str]) -> None:
    heard: list[Any] = []

    def ask(state: Answers) -> Answers:
        return {"seen": [f"{state['question']}={interrupt(state['question'])}"]}

    def note(state: Answers) -> Answers:
        heard.append(sorted(state["seen"]))
        return {}

    builder = StateGraph(Answers)
    builder.add_node(ask)
    builder.add_node(note)
    builder.add_conditional_edges(START, lambda _: [Send("ask", {"question": name}) for name in "abc"], ["ask"])
    builder.add_edge("ask", "note")
    assert outcomes(builder.compile(), "unguarded,A,C", resume=answers) == {"answered"}
    b, c = (*answers, *answers[-1:] * 2)[1:3]
    assert heard == [["a=x", f"b={b}", f"c={c}"]] * 3


# ---- async only


async def think(state: State) -> State:
    return {"answer": "thought"}


def test_an_async_only_graph_is_measured_under_every_alternative() -> None:
    runs = simulated(graph_of(think), alternatives=EVERY)
    assert {(run.run.outcome, run.run.node_mode) for run in runs} == {("answered", "async")}


# ---- references


def makes_as_the_server_asks(config: dict[str, Any] | None = None) -> Any:
    """As graphs of LangGraph's server are written: without a run to come, a graph to be looked at."""
    given = (config or {}).get("configurable", {})
    if not given.get("__is_for_execution__") or given.get("thread_id") is None:
        return graph_of(remember)

    def act(state: State) -> State:
        return {"answer": given["thread_id"]}

    return graph_of(act)


@pytest.mark.parametrize("given", [None, {"thread_id": "harbour"}])
def test_a_function_that_makes_a_graph_is_told_that_a_run_is_to_come(given: dict[str, Any] | None) -> None:
    (run,) = simulated(makes_as_the_server_asks, given=ASKED, config=given)
    assert [event.role for event in run.events if event.event == "node_started"] == ["act"]


sessions: list[str] = []


@contextlib.asynccontextmanager
async def makes_one_a_run(config: RunnableConfig) -> AsyncIterator[Any]:
    """As a server's graph with sessions of its own: opened for a run, and closed after it, by one task."""
    task, thread = asyncio.current_task(), config["configurable"]["thread_id"]

    def act(state: State, config: RunnableConfig) -> State:
        assert config["configurable"]["thread_id"] == thread
        return {"answer": "seen"}

    sessions.append("opened")
    yield graph_of(act)
    assert asyncio.current_task() is task
    sessions.append("closed")


def test_a_function_of_the_configuration_is_called_for_each_run_and_what_it_opened_is_closed() -> None:
    sessions.clear()
    assert outcomes(makes_one_a_run, "A,B", given=ASKED) == {"answered"}
    # Once to be looked at; then one a run, whose thread it is told.
    assert sessions == ["opened", *["opened", "closed"] * 2]


def test_a_thread_of_the_configuration_is_the_runs_where_nothing_is_kept_in_it() -> None:
    seen: list[str] = []

    def note(state: State, config: RunnableConfig) -> State:
        seen.append(config["configurable"]["thread_id"])
        return {}

    config = {"thread_id": "harbour"}
    simulated(graph_of(note), config=config)
    simulated(graph_of(note, compiled={"checkpointer": InMemorySaver()}), config=config)
    assert seen[0] == "harbour"
    assert seen[1] != "harbour"


PROGRAM = """
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict
from .tools import KIND

class State(TypedDict, total=False):
    question: str

def make(config):
    name = config["configurable"].get("node", KIND)
    builder = StateGraph(State)
    builder.add_node(name, lambda state: {})
    builder.add_edge(START, name)
    return builder.compile()
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "an_app_of_somebody"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text("KIND = 'usual'\n")
    (package / "main.py").write_text(PROGRAM)
    (tmp_path / ".env").write_text("AN_APP_KEY=any\n")
    entry = {"dependencies": ["."], "env": ".env", "graphs": {"agent": "./an_app_of_somebody/main.py:make"}}
    (tmp_path / "langgraph.json").write_text(json.dumps(entry))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("reference", ["an_app_of_somebody/main.py:make", "langgraph.json", "langgraph.json:agent"])
def test_a_file_or_an_entry_of_langgraph_json_names_a_graph(reference: str, app: Path) -> None:
    assert "usual" in load_graph(reference).nodes


def test_a_function_that_makes_a_graph_gets_the_configuration(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AN_APP_KEY", raising=False)
    own = own_graph("langgraph.json:agent", [ASKED], config={"node": "other"})
    assert workload_kind(own.workload).roles == ("other",)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nowhere.py:graph", "there is no file nowhere.py"),
        ("langgraph.json:nothing", "name one of agent, such as langgraph.json:agent"),
        ("absent.json:agent", "absent.json cannot be read"),
        ("keyless.py:graph", "any text will do, such as OPENAI_API_KEY=none"),
    ],
)
def test_a_file_that_leads_nowhere_is_told_with_a_remedy(reference: str, said: str, app: Path) -> None:
    (app / "keyless.py").write_text("raise ValueError('The OPENAI_API_KEY environment variable must be set')\n")
    with pytest.raises(ConfigurationError, match=said):
        load_graph(reference)


def test_a_context_manager_that_makes_a_graph_stays_open() -> None:
    open_now: list[str] = []

    @contextlib.contextmanager
    def made() -> Iterator[Any]:
        open_now.append("sync")
        yield graph_of(finish)
        open_now.clear()

    @contextlib.asynccontextmanager
    async def made_async() -> AsyncIterator[Any]:
        open_now.append("async")
        yield graph_of(finish)
        open_now.clear()

    for factory in (made, made_async):
        own_graph(factory, [ANSWERED])
    assert open_now == ["sync", "async"]


def test_the_functional_api_takes_a_value_of_any_kind() -> None:
    @entrypoint()
    def shout(text: str) -> str:
        return text.upper()

    assert outcomes(shout, given="quiet") == {"answered"}
    assert outcomes(shout, given=3) == {"failed"}


# ---- nodes and tools that no run reached


def test_nodes_and_tools_that_no_run_reached_are_named_in_one_line_as_the_graph_names_them() -> None:
    builder = StateGraph(State)
    for name in ("finish_agent", "never_agent"):
        builder.add_node(name, finish)
    builder.add_edge(START, "finish_agent")
    builder.add_conditional_edges("finish_agent", lambda _: END, ["never_agent", END])
    study = compared(builder.compile(), runs=2, inputs=[ANSWERED])
    assert study.manifest["never_reached"] == {"nodes": ["never_agent"], "tools": []}
    assert "No run reached node never_agent, of which these numbers say nothing." in str(study.report())
    assert "No run called a model, so these are times of the graph's own code." in str(study.report())
    factors = {"alternatives": "A", "decision_timeout_s": 2}
    swept = dl.sweep(dl.graph(builder.compile(), [ANSWERED]), factors, runs=1)
    assert swept.manifest["never_reached"] == {"nodes": ["never_agent"], "tools": []}
    report = dl.doctor(dl.graph(builder.compile(), [ANSWERED]), decision_timeout_s=5.0, alternatives="A")
    assert report.unreached == ("node never_agent",)


# ---- sweeps


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"factors": {"workload": "peers"}}, "factors.workload: it is of the lab's own systems"),
        ({"factors": {"retries": 2}}, "factors.retries: it is of the lab's own systems"),
        ({"factors": {"fault": "hang:nobody"}}, "factors.fault: .*the graph has no node 'nobody'"),
        ({"factors": {"alternative": "A+hedge:2s"}}, "factors.alternative: .*for the model calls of the lab's own"),
        ({"documents": "papers"}, "documents is an option of docmind, .*, and not of graph"),
        ({"agent": finish}, "graph and agent name 2 systems"),
    ],
)
def test_a_sweep_of_a_graph_refuses_what_it_cannot_have(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        dl.sweep({**more, "graph": ASKS, "inputs": [ASKED]})


def test_a_study_file_names_a_graph_and_its_inputs(app: Path) -> None:
    (app / "inputs.jsonl").write_text('{"question": "a"}\n')
    (app / "study.toml").write_text(
        'repeats = 2\ngraph = "langgraph.json:agent"\ninputs = "inputs.jsonl"\n[factors]\nalternative = "unguarded,C"\n'
    )
    study = dl.sweep(app / "study.toml", out=app / "out")
    assert len(study.runs) == 4
    again = dl.sweep(app / "study.toml", out=app / "out")
    assert again.manifest["study_id"] == study.manifest["study_id"]


# ---- faults


def ask_model(state: State) -> State:
    return {"answer": str(ChatOpenAI(model="any", api_key="none", max_retries=0).invoke(state["question"]).content)}  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", ["hang", "hang:ask_model"])
def test_a_fault_without_a_role_strikes_every_node(fault: str) -> None:
    graph = graph_of(ask_model)
    study = compared(graph, faults=fault, decision_timeout_s=3)
    assert set(study.runs["faulted_calls"]) == {1.0}
    assert "no_model_calls" not in study.manifest
    factors = {"alternatives": "A", "faults": ["none", fault], "decision_timeout_s": 3}
    swept = dl.sweep(dl.graph(graph, [ASKED]), factors, runs=1)
    assert sorted(swept.runs["faulted_calls"]) == [0.0, 1.0]


@pytest.mark.wall
def test_a_recording_of_a_graph_of_ones_own_is_replayed_at_other_decision_timeouts(tmp_path: Path) -> None:
    """How long should the timeout be, for calls as they were."""
    names: dict[str, Any] = {"graph": graph_of(ask_model), "inputs": [ASKED]}
    live = {"clock": "wall", "latencies": "fast", "record": tmp_path / "r", "decision_timeout_s": 5}
    recorded = compare_by(**names, **live, runs=3, alternatives="unguarded")
    longest_s = float(recorded.runs["returned_at_s"].max())
    replay = {"replay": tmp_path / "r", "alternatives": "unguarded,A"}
    in_time = [
        compare_by(**names, **replay, decision_timeout_s=timeout_s).runs["answered_in_time"].sum()
        for timeout_s in (longest_s / 20, 60)
    ]
    assert in_time == [0, 6]
    with pytest.raises(ConfigurationError, match="name it and its inputs again"):
        compare_by(**replay)
    with pytest.raises(ConfigurationError, match="not those of the recording"):
        compare_by(**{**names, **replay, "inputs": [{"question": "b"}]})


# ---- what to do with the answer


def test_a_choice_for_a_graph_of_ones_own_is_a_call_of_enforce_and_no_setting() -> None:
    """The lab's environment variables say nothing to a user's graph."""
    system = dl.graph(GREETS, [{"input": {"question": "a"}, "context": {"user": "ada"}}])
    study = dl.sweep(system, {"alternatives": "A", "decision_timeout_s": 5}, runs=74)
    assert 'In production: docmind_lab.enforce(graph, 5, "A")' in study.recommend().text()
    assert "DOCMIND_" not in study.recommend().text() + str(study.report())
    answered = compared(ASKS, runs=24, resume=["ada", "asks"])
    assert "DOCMIND_" not in str(answered.report())
    assert 'docmind_lab.enforce(graph, 20, "A")' in str(answered.report())


# ---- what a cut run leaves behind


@pytest.mark.parametrize(("alternatives", "outcome"), [("A,C,D,E", "partial"), ("B", "timed_out")])
def test_state_of_its_own_that_a_cut_run_has_written_is_what_it_leaves_behind(alternatives: str, outcome: str) -> None:
    """Not messages and documents alone. B's caller is shown no state, and D stops between two steps."""
    assert outcomes(graph_of(ask_model), "A", decision_timeout_s=3, faults="hang:ask_model") == {"timed_out"}

    def note(state: State) -> State:
        return {"seen": ["first"]}

    def conclude(state: State) -> State:
        return {"answer": state["answer"].upper()}

    graph = graph_of(note, ask_model, conclude)
    assert outcomes(graph, alternatives, decision_timeout_s=3, faults="slow_first_token=9:ask_model") == {outcome}


# ---- which attempt of a call ended a run


def ask_three_times(state: State) -> State:
    model = ChatOpenAI(model="any", api_key="none", max_retries=2)  # type: ignore[arg-type]
    return {"answer": str(model.invoke(state["question"]).content)}


def ask_and_forget(state: State) -> State:
    with contextlib.suppress(Exception):
        ask_model(state)
    time.sleep(1.0)
    raise KeyError("customer")


def ask_and_fail(state: State) -> State:
    ask_model(state)
    raise KeyError("customer")


@pytest.mark.parametrize(
    ("node", "fault", "outcome", "attempt"),
    [
        (ask_model, "none", "answered", 0),
        (ask_model, "http_500:*", "failed", 1),
        (ask_three_times, "http_500:*", "failed", 3),
        (ask_three_times, "disconnect:*", "failed", 3),
        (ask_and_fail, "none", "failed", 0),
        (ask_and_forget, "http_500:*", "failed", 0),
    ],
    ids=["of none", "first", "third", "of no answer", "of the nodes own code", "of a call that was forgiven"],
)
def test_the_attempt_that_a_run_failed_with_stands_beside_its_error(
    node: Any, fault: str, outcome: str, attempt: int
) -> None:
    (measured,) = simulated(graph_of(node), decision_timeout_s=60, faults=fault)
    run = measured.run
    assert (run.outcome, run.error_attempt) == (outcome, attempt)
    assert run.error_node == (node.__name__ if outcome == "failed" else "")
    assert (run.error_type == "KeyError") == (outcome == "failed" and attempt == 0)
