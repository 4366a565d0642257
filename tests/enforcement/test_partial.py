"""`Result.partial`: what a cut call has brought, with the texts of answers that were cut (runway.md 3)."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send
from limited_clients import (
    ASYNC,
    BLOCKING,
    OFTEN,
    Ask,
    silent_server,
    with_aiohttp,
    with_async_openai,
    with_httpx,
    with_requests,
)
from often import often
from stub_server import StubConnection, StubRequest, StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.result import Partial, StreamedText, ToolReturn
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.core.streamed_answers import StreamedAnswer

Stub = Callable[..., StubServer]
# What `silent_server` says before it stops: two tokens.
SAID = "aa"
CANARY = "zephyrquark"
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


class Found(TypedDict, total=False):
    found: Annotated[list[str], operator.add]
    number: int


def fan_out(ask: Ask, url: str) -> Any:
    """A graph of five branches, of which four finish; the fifth streams an answer that stops half-way."""

    def work(state: Found) -> Found:
        if state["number"] == 4:
            ask(url, "stops", True)
        return {"found": [f"branch {state['number']}"]}

    async def awork(state: Found) -> Found:
        if state["number"] == 4:
            await ask(url, "stops", True)
        return {"found": [f"branch {state['number']}"]}

    builder = StateGraph(Found)
    builder.add_node("worker", awork if ask in ASYNC else work)
    builder.add_conditional_edges(START, lambda _: [Send("worker", {"number": number}) for number in range(5)])
    return builder.compile()


def of_the_cut(result: Any) -> tuple[Any, ...]:
    partial = result.partial
    return result.outcome, sorted(partial.values["found"]), partial.texts


CUT = ("partial", [f"branch {number}" for number in range(4)], (StreamedText("worker", SAID, is_cut=True),))


@pytest.mark.wall
@pytest.mark.parametrize("ask", often([*BLOCKING, *ASYNC], *OFTEN))
def test_each_client_leaves_the_text_so_far_of_a_cut_branch_beside_what_the_others_wrote(ask: Ask, stub: Stub) -> None:
    result = dl.enforce(fan_out(ask, stub(silent_server).url), 0.8, "E").invoke({})
    assert of_the_cut(result) == CUT


@pytest.mark.wall
@pytest.mark.parametrize(
    ("alternative", "ask"),
    [
        *((each, with_requests) for each in ("A", "B", "B:propagate", "C")),
        *((each, with_async_openai) for each in ("B", "C", "C:propagate", "F")),
        ("C", with_aiohttp),
    ],
)
def test_each_alternative_that_cuts_a_stream_keeps_its_text(alternative: str, ask: Ask, stub: Stub) -> None:
    # The test's own loop would wait for a blocking node's thread, which nothing ends but the end of the server.
    enforced = dl.enforce(fan_out(ask, stub(chunked).url), 0.8, alternative)
    result = asyncio.run(enforced.ainvoke({})) if ask in ASYNC else enforced.invoke({})
    assert of_the_cut(result) == CUT


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_text_is_kept_for_an_enforced_call_only_and_not_once_its_call_is_over(is_whole: bool, stub: Stub) -> None:
    server = stub(answers_whole if is_whole else breaks_off)
    with hold_scope(Hold(dl.Deadline.after(20))) as block:
        if is_whole:
            with_httpx(server.url, "m", True)
    assert block is not None
    assert block.answers is None

    async def study() -> Any:
        answered = asyncio.Event()

        async def ask(state: Found) -> Found:
            with contextlib.suppress(*() if is_whole else (Exception,)):
                await with_async_openai(server.url, "m", True)
            answered.set()
            await asyncio.Event().wait()
            return {}

        graph = StateGraph(Found).add_node("ask", ask).add_edge(START, "ask").compile()
        return await dl.enforce(graph, 60, "E").ainvoke({}, cancel=answered.wait())

    result = asyncio.run(study())
    assert (result.cut_at, result.partial.texts) == (("ask",), ())


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


def event_of(text: str) -> bytes:
    """The event of a stream that says a text."""
    return b"data: %s\n\n" % json.dumps({**CHUNK, "choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def say_in_chunks(connection: StubConnection, said: str) -> None:
    """Say each letter in a chunk of its own."""
    connection.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    for event in map(event_of, said):
        connection.send(b"%x\r\n%s\r\n" % (len(event), event))


def chunked(request: StubRequest, connection: StubConnection) -> None:
    """Says what `silent_server` says, in chunks as providers send it, and is silent until the test is over."""
    say_in_chunks(connection, SAID)
    connection.pause(60)


def breaks_off(request: StubRequest, connection: StubConnection) -> None:
    """Says "a", and then what no client can read."""
    say_in_chunks(connection, "a")
    connection.send(b"no size\r\n")


def answers_whole(request: StubRequest, connection: StubConnection) -> None:
    """Answers "Whole." and the end of its stream."""
    body = event_of("Whole.") + b"data: [DONE]\n\n"
    connection.send(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)


# ---- what a stream has said


def streamed(*events: Any, content_type: bytes = b"text/event-stream", encoding: bytes = b"", end: str = "") -> Any:
    headers = {b"content-type": content_type, **({b"content-encoding": encoding} if encoding else {})}
    assert StreamedAnswer.is_one(headers)
    answer = StreamedAnswer("writer", headers)
    prefix = "data: " if content_type == b"text/event-stream" else ""
    body = "".join(f"{prefix}{json.dumps(event)}\n\n" for event in events).encode() + end.encode()
    for part in (body[:7], body[7:]) if not encoding else [gzip.compress(body)[:-9]]:
        answer.feed(part)
    return answer


CHAT = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("The depth ", "is 14 m")]
EVENTS: dict[str, list[Any]] = {
    "openai chat": [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}, *CHAT],
    "openai chat, two answers": [*CHAT, {"choices": [{"index": 1, "delta": {"content": "Another."}}]}],
    "openai completions": [{"choices": [{"text": "The depth is 14 m", "index": 0}]}],
    "openai responses": [
        {"type": "response.created"},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        {"type": "response.output_text.delta", "delta": "The depth is 14 m"},
        {"type": "response.function_call_arguments.delta", "delta": "{"},
    ],
    "anthropic": [
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "The depth is 14 m"}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"functionCall": {}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "The depth is 14 m"}]}}]},
    ],
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_the_text_so_far_is_that_of_the_answer_alone_in_each_dialect(events: list[Any]) -> None:
    # The last event has come by half.
    answer = streamed(*events, end='data: {"choices": [{"delta": {"content": " de')
    assert answer.text == "The depth is 14 m"
    assert not answer.is_whole


def test_ollama_streams_lines_and_a_compressed_stream_is_read_as_far_as_it_came() -> None:
    lines = [{"message": {"content": "The depth "}}, {"message": {"content": "is"}}]
    assert streamed(*lines, content_type=b"application/x-ndjson").text == "The depth is"
    assert streamed(*CHAT, encoding=b"gzip").text == "The depth is 14 m"
    unreadable = StreamedAnswer("writer", {b"content-encoding": b"br"})
    unreadable.feed(b"\x1b\x2a\x00")
    assert unreadable.text == ""


@pytest.mark.parametrize(
    "last", ["data: [DONE]\n", 'data: {"type": "message_stop"}\n', 'data: {"type":"response.completed"}\n']
)
def test_a_stream_that_said_that_it_is_over_was_not_cut(last: str) -> None:
    assert streamed(*CHAT, end=last).is_whole


# ---- one shape


@tool(response_format="content_and_artifact")
async def quick(text: str) -> tuple[str, dict[str, str]]:
    """Return at once."""
    return f"done {text}", {"file": "chart.png"}


class Work(MessagesState, total=False):
    notes: list[str]


def tools_at_work(reached: asyncio.Event) -> Any:
    """A graph whose one node of tools never ends, though one of its two tools does."""

    @tool
    async def endless(text: str) -> str:
        """Wait for ever."""
        reached.set()
        await asyncio.Event().wait()
        return text

    def plan(state: Work) -> Any:
        calls = [{"name": name, "args": {"text": CANARY}, "id": name} for name in ("quick", "endless")]
        return {"messages": [AIMessage("", tool_calls=calls)], "notes": [CANARY]}

    builder = StateGraph(Work).add_node("plan", plan).add_node("tools", ToolNode([quick, endless]))
    return builder.add_edge(START, "plan").add_edge("plan", "tools").compile()


def cut_tools() -> Any:
    async def run() -> Any:
        reached = asyncio.Event()
        agent = dl.enforce(tools_at_work(reached), 60, "E")
        return await agent.ainvoke({"messages": [HumanMessage(CANARY)]}, cancel=reached.wait())

    return asyncio.run(run())


def test_messages_keys_and_what_tools_returned_have_one_shape_and_nothing_of_it_is_shown() -> None:
    result = cut_tools()
    partial = result.partial
    assert (result.outcome, partial.values, partial.texts) == ("partial", {"notes": [CANARY]}, ())
    assert [message.type for message in partial.messages] == ["human", "ai"]
    (returned,) = partial.tools
    assert (returned.name, returned.result) == ("quick", f"done {CANARY}")
    assert returned.artifact == {"file": "chart.png"}
    assert CANARY not in repr(result) + repr(partial) + result._repr_html_() + partial._repr_html_()
    assert repr(partial) == "Partial: 2 messages, 1 key, 0 cut texts, 1 result"


@pytest.mark.parametrize(
    ("state", "messages", "values"),
    [
        (None, (), {}),
        ("a text", (), {"__root__": "a text"}),
        ([HumanMessage("Hi", id="1")], ("Hi",), {}),
        ({"messages": [], "answer": 1}, (), {"messages": [], "answer": 1}),
        ({"messages": ["no message"]}, (), {"messages": ["no message"]}),
    ],
)
def test_every_state_has_the_shape(state: Any, messages: tuple[str, ...], values: dict[str, Any]) -> None:
    partial = Partial.of(state, (), ())
    assert (tuple(message.text for message in partial.messages), partial.values) == (messages, values)
    assert all(isinstance(message, BaseMessage) for message in partial.messages)


def test_a_tool_that_returns_no_message_is_kept_as_it_is() -> None:
    assert ToolReturn.of("depth_of", 14) == ToolReturn("depth_of", 14)
    message = ToolMessage("14 m", tool_call_id="1", artifact=[14])
    assert ToolReturn.of("depth_of", message) == ToolReturn("depth_of", "14 m", [14], message)


def test_an_answered_call_has_no_cut_text_and_a_whole_state(stub: Stub) -> None:
    url = stub(answers_whole).url

    def ask(state: Found) -> Found:
        with_httpx(url, "m", True)
        return {"found": ["answer"]}

    result = dl.enforce(StateGraph(Found).add_node("ask", ask).add_edge(START, "ask").compile(), 20, "E").invoke({})
    assert (result.outcome, result.partial) == ("answered", Partial(values={"found": ["answer"]}))
    assert result.requests_cut == 0
