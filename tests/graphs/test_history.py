"""Trimming and counting the conversation (supervisor.md 7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from graph_fakes import FakeModel, agent, asked, asking, check_whole
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.docmind.graphs.history import TrimHistory, trim_messages, whole_messages

# A history is a row of turns: 0 a user's message, -1 an agent's text, n > 0 a message with n tool calls and results.
TURNS = st.lists(st.integers(-1, 4), min_size=1, max_size=25).map(lambda turns: [0, *turns])
# With equal ids too, as a model that repeats itself may give them.
SAME_IDS = st.booleans()


def history(turns: list[int], same_ids: bool = False) -> list[AnyMessage]:
    messages: list[AnyMessage] = []
    for turn, kind in enumerate(turns):
        if kind <= 0:
            make = AIMessage if kind else HumanMessage
            messages.append(make(f"{turn}", id=f"m{turn}"))
            continue
        request = asking(*(("look", {}) for _ in range(kind)), turn=0 if same_ids else turn)
        messages.append(request.model_copy(update={"id": f"m{turn}"}))
        for number, call in enumerate(request.tool_calls):
            messages.append(ToolMessage("r", tool_call_id=call["id"], id=f"m{turn}r{number}"))
    return messages


@given(TURNS, SAME_IDS, st.integers(2, 30))
def test_trimming_never_parts_a_tool_call_from_its_result(turns: list[int], same_ids: bool, keep: int):
    messages = history(turns, same_ids)
    kept = trim_messages(messages, keep)
    check_whole(kept)
    ids, kept_ids = [m.id for m in messages], [m.id for m in kept]
    assert kept_ids == [i for i in ids if i in set(kept_ids)], "the order has changed"
    assert set(ids[-keep:]) <= set(kept_ids), "one of the last is missing"
    # A message with its results at the cut, and a question before it: no more than that is kept beyond `keep`.
    assert len(kept) <= keep + 5
    assert any(isinstance(message, HumanMessage) for message in kept)


@given(TURNS, SAME_IDS, st.integers(0, 60), st.integers(0, 60))
def test_any_piece_of_a_history_can_be_made_whole(turns: list[int], same_ids: bool, start: int, length: int):
    piece = history(turns, same_ids)[start : start + length]
    whole = whole_messages(piece)
    check_whole(whole)
    assert {m.id for m in piece if not isinstance(m, ToolMessage) and not getattr(m, "tool_calls", ())} <= {
        m.id for m in whole
    }


@given(TURNS, SAME_IDS)
def test_a_whole_history_is_left_as_it_is(turns: list[int], same_ids: bool):
    messages = history(turns, same_ids)
    assert whole_messages(messages) == messages


def test_an_unanswered_call_goes_and_the_text_beside_it_stays():
    request = asking(("a", {}), ("b", {}), text="Looking.")
    answered = [request, ToolMessage("r", tool_call_id="t0c1")]
    assert [call["name"] for call in whole_messages(answered)[0].tool_calls] == ["b"]  # type: ignore[union-attr]
    (alone,) = whole_messages([request])
    assert (alone.text, alone.tool_calls) == ("Looking.", [])  # type: ignore[union-attr]
    assert whole_messages([asking(("a", {}))]) == []
    assert len(request.tool_calls) == 2, "the message itself must not change"


def test_the_question_that_is_kept_is_the_latest_before_the_cut():
    messages = [HumanMessage("first", id="1"), AIMessage("a", id="2"), HumanMessage("second", id="3")]
    messages += [AIMessage(str(number), id=f"a{number}") for number in range(5)]
    assert [m.text for m in trim_messages(messages, 2)] == ["second", "3", "4"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_trimming_replaces_the_history(how: str):
    messages = history([0] + [2] * 8)
    trim = TrimHistory(keep=4)
    state: Any = {"messages": messages}
    update = trim.before_model(state, None) if how == "sync" else asyncio.run(trim.abefore_model(state, None))
    assert update is not None
    first = update["messages"][0]
    assert isinstance(first, RemoveMessage)
    assert first.id == REMOVE_ALL_MESSAGES
    merged = add_messages(messages, update["messages"])
    assert [m.id for m in merged] == [m.id for m in trim_messages(messages, 4)]


def test_a_short_history_is_left_alone():
    assert TrimHistory(keep=4).before_model({"messages": history([0, -1, 0, -1])}, None) is None


@pytest.mark.parametrize("keep", [1, 0, -3])
def test_keeping_less_than_two_messages_is_refused(keep: int):
    with pytest.raises(ConfigurationError, match="keep"):
        TrimHistory(keep=keep)


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_an_agent_that_trims_sends_short_whole_requests(how: str):
    requests: list[list[Any]] = []

    def say(messages: list[Any], tools: Any) -> AIMessage:
        requests.append(messages)
        return asking(("look", {}), ("look", {}), turn=len(requests)) if len(requests) < 12 else AIMessage("end")

    trimmed = agent("a", FakeModel(say=say), tools=[look], middleware=[TrimHistory(keep=6)])
    state = trimmed.invoke(asked("q")) if how == "invoke" else asyncio.run(trimmed.ainvoke(asked("q")))
    check_whole(state["messages"])
    for request in requests:
        check_whole(request)
        assert len(request) <= 7
        assert request[0].text == "q"
