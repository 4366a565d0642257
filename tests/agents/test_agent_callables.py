"""`compare` with a function of a question, in virtual time."""

from __future__ import annotations

import json
import types
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import agents_here
import pandas as pd
import pytest
from agents_here import QUESTION
from flat_compare import compare_by
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.own.agents import STOPPED, agent_graph, as_question, load_agent, text_of
from docmind_lab.views.cli.app import main


def runs_of(agent: Any, *, decision_timeout_s: float = 30.0, **options: Any) -> pd.DataFrame:
    options = {"runs": 1, "inputs": [QUESTION], "latencies": "typical/6", **options}
    return compare_by(**options, decision_timeout_s=decision_timeout_s, agent=agent).runs.set_index("alternative")


@pytest.mark.parametrize("agent", [agents_here.ask, agents_here.ask_async], ids=["sync", "async"])
def test_a_function_answers_under_every_alternative_that_needs_no_graph(agent: Any) -> None:
    runs = runs_of(agent)
    assert list(runs.index) == ["unguarded", "cooperative", "hard_timeout", "async_cancellation", "hybrid"]
    assert set(runs["outcome"]) == {"answered"}
    assert set(runs["llm_calls"]) == {1}


@pytest.mark.parametrize(("agent", "work_under_c_s"), [(agents_here.ask, 12.0), (agents_here.ask_async, 0.0)])
def test_a_hang_is_left_at_the_budget_and_goes_on_where_nothing_cuts_it(agent: Any, work_under_c_s: float) -> None:
    runs = runs_of(agent, decision_timeout_s=3.0, faults="hang:agent")
    assert runs["outcome"].to_dict() == {
        "unguarded": "unfinished",
        "cooperative": "timed_out",
        "hard_timeout": "timed_out",
        "async_cancellation": "timed_out",
        "hybrid": "timed_out",
    }
    enforced = runs.drop("unguarded")
    assert set(enforced["caller_overrun_s"]) == {0.0}
    # The horizon is 15 s. A cancellation cuts an async function, and does not reach one in a thread.
    assert runs["work_overrun_s"].to_dict() == {
        "unguarded": 12.0,
        "cooperative": 0.0,
        "hard_timeout": 12.0,
        "async_cancellation": work_under_c_s,
        "hybrid": 0.0,
    }


async def in_steps_async(question: str, should_stop: Any) -> str:
    count = 0
    while not should_stop():
        await agents_here.ask_async(question)
        count += 1
    return f"{count} requests"


@pytest.mark.parametrize("agent", [agents_here.ask_in_steps, in_steps_async], ids=["sync", "async"])
def test_a_function_with_should_stop_is_told_to_stop_and_its_text_is_a_partial_answer(agent: Any) -> None:
    runs = runs_of(agent, decision_timeout_s=1.0, alternatives="B,B:drain,D")
    flagged = runs.loc["stop_flag"]
    assert (flagged["outcome"], flagged["stop_reason"]) == ("partial", "stop_flag")
    # It looks at its flag between two requests, each of some tenths of a second.
    assert 0.0 < flagged["caller_overrun_s"] < 1.0
    by_options = runs.loc["hard_timeout"].set_index("alternative_options")["work_overrun_s"]
    assert by_options['{"drain_on_timeout": true}'] == flagged["work_overrun_s"] < by_options["{}"]


def test_that_an_agent_was_told_to_stop_is_in_no_checkpoint() -> None:
    control = RunControl()

    def agent(question: str, should_stop: Any) -> str:
        control.request_drain("deadline")
        return str(should_stop())

    graph = agent_graph(load_agent(agent)).copy({"checkpointer": InMemorySaver()})
    config: Any = {"configurable": {"thread_id": "1"}}
    shown = graph.invoke({"question": "?"}, config, control=control)
    assert (shown["answer"], shown[STOPPED]) == ("True", True)
    assert STOPPED not in graph.get_state(config).values


def test_an_answer_before_the_deadline_is_no_partial_one() -> None:
    runs = runs_of(agents_here.ask_in_steps, decision_timeout_s=200.0, alternatives="D")
    assert runs.loc["stop_flag", "outcome"] == "answered"


def test_an_agent_that_returns_no_text_has_failed() -> None:
    runs = runs_of(lambda question: "", alternatives="unguarded,A")
    assert set(runs["outcome"]) == {"failed"}
    assert set(runs["error_type"]) == {"NoAnswer"}


@pytest.mark.parametrize(
    ("alternatives", "message"),
    [
        ("D", "alternative D stop flag: the agent takes no argument should_stop, a function that returns True when"),
        ("B:drain", "alternative B hard timeout (drain_on_timeout): the agent takes no argument should_stop"),
        ("F", "alternative F native: a function has no timeout of its own for a whole run"),
        ("F:per_step", "alternative F native (per_step): a function has no timeout of its own for a whole run"),
    ],
)
def test_an_alternative_that_a_function_cannot_have_is_refused_by_name_with_the_reason(
    alternatives: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        runs_of(agents_here.ask, alternatives=alternatives)
    assert str(refused.value).startswith(message)


def test_alternatives_that_are_left_out_by_default_are_named_in_the_summary() -> None:
    study = dl.compare(dl.agent(agents_here.ask, [QUESTION]), 30.0, runs=1)
    (system,) = study.manifest["systems"].values()
    assert [note.partition(":")[0] for note in system["notes"]] == ["D is left out", "F is left out"]
    assert "F is left out: a function has no timeout of its own for a whole run." in study._repr_html_()


class Conversation:
    """An agent with a method for its calls, as an object that users keep has."""

    def __call__(self, question: str) -> str:
        return question


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("no_such_module:agent", "agent 'no_such_module:agent': module no_such_module does not import"),
        ("agents_here", "agent 'agents_here': write it as module:attribute, such as my_app:"),
        ("agents_here:nobody", "agent 'agents_here:nobody': module agents_here has no attribute nobody"),
        ("agents_here:HOST", "agent 'agents_here:HOST' is a str, not a function of a question; write def"),
        (42, "agent is a int, not a function of a question; write def agent(question), which calls it"),
        (Conversation, "agent is a class (Conversation), not a function of a question"),
        (lambda: agents_here.ask, "agent is a function, not a function of a question"),
    ],
)
def test_what_is_no_agent_is_refused_in_one_line(agent: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        runs_of(agent)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("asked", [agents_here.ask_async, agents_here.ask_in_pieces])
def test_a_function_that_returns_what_is_async_is_told_to_be_async(asked: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"returns a (coroutine|async_generator); write it as async def"):
        runs_of(lambda question: asked(question), alternatives="A")


class Streaming:
    async def __call__(self, question: str) -> AsyncIterator[str]:
        async for piece in agents_here.ask_in_pieces(question):
            yield piece


async def stream_of(question: str) -> AsyncIterator[str]:
    return agents_here.ask_in_pieces(question)


@pytest.mark.parametrize("agent", [agents_here.ask_in_pieces, Streaming(), stream_of])
def test_the_pieces_of_an_async_generator_are_its_answer(agent: Any) -> None:
    inputs = [{"input": QUESTION, "gold": ["well, PLAIN:"], "id": "one"}]
    run = compare_by(runs=1, inputs=inputs, agent=agent, alternatives="C").runs.iloc[0]
    assert (run["outcome"], run["llm_calls"], run["answer_score"], run["question_id"]) == ("answered", 1, 1.0, "one")


@pytest.mark.parametrize("agent", [Conversation(), Conversation().__call__])
def test_an_object_with_call_and_a_method_are_agents(agent: Any) -> None:
    assert set(runs_of(agent, alternatives="A")["outcome"]) == {"answered"}


def test_the_lint_judges_an_agent_by_the_alternatives_that_it_can_have() -> None:
    report = dl.doctor(dl.agent("agents_here:ask", [QUESTION]), decision_timeout_s=3.0)
    assert [verdict.alternative for verdict in report.verdicts] == ["A", "B", "C", "E"]
    with pytest.raises(ConfigurationError, match="alternative F native: a function has no timeout of its own"):
        dl.doctor(dl.agent("agents_here:ask", [QUESTION]), decision_timeout_s=3.0, alternatives="F")


def test_doctor_takes_an_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text(json.dumps(QUESTION), encoding="utf-8")
    options = ["--agent", "agents_here:ask_async", "--inputs", str(inputs), "--alternatives", "C"]
    with pytest.raises(SystemExit) as ended:
        main(["doctor", *options, "--decision-timeout", "3", "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["verdicts"]


# ---- questions to an agent, and how its result is read


def thing(**attributes: Any) -> Any:
    return types.SimpleNamespace(**attributes)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("a text", "a text"),
        (thing(text="a"), "a"),
        (thing(content="a"), "a"),
        (thing(output="a"), "a"),
        (thing(final_output="a"), "a"),
        (thing(answer="a"), "a"),
        (thing(response=thing(content="a")), "a"),
        (thing(raw="a"), "a"),
        ({"answer": "a"}, "a"),
        (thing(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab"),
        (thing(text=lambda: "never called", output="a"), "a"),
        (42, "42"),
        (None, ""),
    ],
)
def test_the_text_of_a_result_is_read_from_the_first_attribute_that_has_one(result: Any, text: str) -> None:
    assert text_of(result) == text


def takes(question: str, depth: int = 1) -> str:
    return question


@pytest.mark.parametrize(
    ("item", "question", "keywords", "rest"),
    [
        ("why?", "why?", {}, {}),
        ({"question": "why?"}, "why?", {}, {}),
        ({"input": "why?"}, "why?", {}, {}),
        ({"question": "why?", "depth": 2}, "why?", {"depth": 2}, {}),
        ({"input": {"question": "why?", "depth": 2}, "gold": ["x"]}, "why?", {"depth": 2}, {"gold": ["x"]}),
        ({"question": "why?", "id": "q1"}, "why?", {}, {"id": "q1"}),
    ],
)
def test_a_question_is_a_text_or_a_mapping_with_keywords_of_the_function(
    item: Any, question: str, keywords: dict[str, Any], rest: dict[str, Any]
) -> None:
    made = as_question(load_agent(takes), item, "line 1")
    assert made == {"input": {"question": question, "keywords": keywords}, **rest}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"prompt": "why?"}, "line 1: a question has the key question or input; this has prompt"),
        ({"question": "why?", "tone": 1}, "line 1: the agent takes no argument 'tone'; it takes question, depth"),
        (["why?"], "line 1: a question is a text, not a list"),
        ("  ", "line 1: the question is empty; write one"),
        ("why?", "line 1: the agent needs the argument 'depth'; add the key to the input"),
    ],
)
def test_an_item_that_is_no_question_is_named_with_what_would_fit(item: Any, message: str) -> None:
    def needs(question: str, depth: int) -> str:
        return question

    with pytest.raises(ConfigurationError) as refused:
        as_question(load_agent(needs), item, "line 1")
    assert str(refused.value) == message
