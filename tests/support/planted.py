"""Ten planted defects that the crash test finds, each with its corrected twin: `planted.py:double_charge.broken`."""

import contextlib
import operator
import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import httpx
from chains import chain
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from twins import twins

from docmind_lab import once

HARBOUR = {"about": "harbour"}
PAID = ("orders", "paid")


class Report(TypedDict, total=False):
    about: str
    report: str


class Order(TypedDict, total=False):
    order: str
    receipt: str
    letter: str


def fetched() -> str:
    return str(httpx.get("https://slow.example.com/report").json()["report"])


def paid(order: str, headers: dict[str, str]) -> str:
    answer = httpx.post("https://pay.example.com/charges", json={"order": order}, headers=headers)
    return str(answer.json()["status"])


@twins("effects", {"order": "17"})
def double_charge(is_safe: bool) -> Any:
    """A payment that is made again when the run is resumed. Mended: both carry the order as the key of the payment."""

    def pay(state: Order) -> dict[str, Any]:
        headers = {"Idempotency-Key": f"order-{state['order']}"} if is_safe else {}
        return {"receipt": paid(state["order"], headers)}

    def write(state: Order) -> dict[str, Any]:
        time.sleep(0.3)
        return {"letter": f"Order {state['order']} is {state['receipt']}."}

    return chain(Order, pay=pay, write=write).compile()


def charge_between_answers() -> Any:
    """The same payment by a node that asks first, and a letter by another that asks."""

    def pay(state: Order) -> dict[str, Any]:
        return {"receipt": paid(interrupt("Which order?"), {})}

    def write(state: Order) -> dict[str, Any]:
        return {"letter": f"{state['receipt']} at {interrupt('When?')}"}

    return chain(Order, pay=pay, write=write).compile()


def charge_for_a_repeat() -> Any:
    """A payment that is made only by a node that finds that it was there before."""

    def pay(state: Order, *, store: BaseStore) -> dict[str, Any]:
        was_here = store.get(PAID, state["order"]) is not None
        store.put(PAID, state["order"], {})
        return {"receipt": paid(state["order"], {}) if was_here else "none"}

    return chain(Order, pay=pay).compile()


def charge_side_by_side() -> Any:
    """Two payments at once, by two nodes."""
    builder = StateGraph(Order)
    for key in ("receipt", "letter"):
        node = f"pay_{key}"
        builder.add_node(node, lambda state, key=key: {key: paid(state["order"], {})}).add_edge(START, node)
    return builder.compile()


def charging_agent(order: str, *, currency: str) -> str:
    """The same payment by an agent that is no graph."""
    return paid(order, {"Currency": currency})


@twins("effects", {"order": "17"})
def effect_lost(is_safe: bool) -> Any:
    """A payment noted as made before it is, and so left out by the resumed run. Mended: it is noted afterwards."""

    def pay(state: Order, runtime: Runtime[None]) -> dict[str, Any]:
        store, order = runtime.store, state["order"]
        assert store is not None
        if store.get(PAID, order) is None:
            if not is_safe:
                store.put(PAID, order, {"is_paid": True})
            paid(order, {"Idempotency-Key": f"order-{order}"})
            if is_safe:
                store.put(PAID, order, {"is_paid": True})
        return {"letter": f"Order {order} is paid."}

    return chain(Order, pay=pay).compile()


def fetched_and_ended(end: Callable[[], object], is_safe: bool) -> dict[str, Any]:
    """Fetch a report and end what stands beside the request, whatever happens or only if nothing does."""
    with contextlib.ExitStack() as always:
        if is_safe:
            always.callback(end)
        report = fetched()
    if not is_safe:
        end()
    return {"report": report}


@twins("leftovers", HARBOUR)
def file_left(is_safe: bool) -> Any:
    """A temporary file that stays when the request beside it is cut. Mended: it is removed whatever happens."""

    def read(state: Report) -> dict[str, Any]:
        handle, path = tempfile.mkstemp(suffix=".txt")
        os.close(handle)
        return fetched_and_ended(lambda: os.unlink(path), is_safe)

    return chain(Report, read=read).compile()


@twins("leftovers", HARBOUR)
def lock_held(is_safe: bool) -> Any:
    """A lock that stays held when the request under it is cut. Mended: it is released whatever happens."""
    one_at_a_time = threading.Lock()

    def read(state: Report) -> dict[str, Any]:
        one_at_a_time.acquire()
        return fetched_and_ended(one_at_a_time.release, is_safe)

    return chain(Report, read=read).compile()


class InPlace(TypedDict, total=False):
    topic: str
    notes: list[str]
    summary: str


class Added(TypedDict, total=False):
    topic: str
    notes: Annotated[list[str], operator.add]
    summary: str


@twins("resume", {"topic": "tides", "notes": []})
def lost_update(is_safe: bool) -> Any:
    """A node that changes a list of the state in place, which no checkpoint holds. Mended: it returns what it adds."""

    def note(text: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            time.sleep(0.2)
            if not is_safe:
                state["notes"].append(text)
                return {}
            return {"notes": [text]}

        return node

    def summarise(state: Any) -> dict[str, Any]:
        time.sleep(0.2)
        return {"summary": f"{state['topic']}: {', '.join(state['notes'])}"}

    schema = Added if is_safe else InPlace
    return chain(schema, first=note("the moon"), second=note("the sun"), summarise=summarise).compile()


@tool
def sounding(query: str) -> str:
    """Return the depth of the harbour."""
    time.sleep(0.3)
    return "The harbour is 9 metres deep at low tide, and 12 metres deep at high tide."


def filled_in(messages: list[Any]) -> list[Any]:
    """Return a conversation in which each tool call has a result directly after it."""
    made = []
    for position, message in enumerate(messages):
        made.append(message)
        if isinstance(message, AIMessage):
            following = messages[position + 1 :]
            answered = {each.tool_call_id for each in following if isinstance(each, ToolMessage)}
            for call in message.tool_calls:
                if call["id"] not in answered:
                    made.append(ToolMessage("It was interrupted.", tool_call_id=call["id"]))
    return made


def with_tools(think: Any, *tools: Any) -> Any:
    """Return an agent: a node that thinks, and its tools, until it calls none."""
    builder = chain(MessagesState, think=think).add_node("tools", ToolNode(tools))
    return builder.add_conditional_edges("think", tools_condition).add_edge("tools", "think").compile()


@twins("conversation", "How deep is the harbour?")
def orphan_tool_call(is_safe: bool) -> Any:
    """A tool call saved without its result: the next request is refused. Mended: missing results are filled in."""
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([sounding])

    def think(state: MessagesState) -> dict[str, Any]:
        messages = state["messages"]
        return {"messages": [model.invoke(filled_in(messages) if is_safe else messages)]}

    return with_tools(think, sounding)


def agent_in_a_node() -> Any:
    """A node whose code asks an agent, with a tool that runs once."""
    measured = tool("measured")(sounding.func)
    measured.metadata = {"effect": "sounding"}
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([measured])

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    agent = with_tools(think, once(measured))

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

    return chain(MessagesState, ask=ask).compile(store=InMemoryStore())


@twins("leftovers", HARBOUR)
def request_open(is_safe: bool) -> Any:
    """A response that is not closed when the work beside it is cut. Mended: it is closed whatever happens."""
    # As an application has it: for as long as the process lives, with what is open on it.
    client, opened = httpx.Client(), []

    def read(state: Report) -> dict[str, Any]:
        response = client.send(client.build_request("GET", "https://slow.example.com/report"), stream=True)
        opened.append(response)
        try:
            fetched()
            response.read()
        finally:
            if is_safe:
                response.close()
        return {"report": response.json()["report"]}

    return chain(Report, read=read).compile()


class Ping(TypedDict, total=False):
    host: str
    answer: str


def ping(host: str) -> None:
    for pause_s in (0.2, 0.4, 0.8):
        if httpx.get(f"https://{host}.example.com/ping").status_code < 500:
            return
        time.sleep(pause_s)


@twins("begins", {"host": "down"})
def retry_outlives(is_safe: bool) -> Any:
    """A retry in a thread that goes on after the deadline. Mended: the node itself tries again, and waits."""

    def wake(state: Ping) -> dict[str, Any]:
        if is_safe:
            ping(state["host"])
        else:
            threading.Thread(target=ping, args=(state["host"],)).start()
        time.sleep(0.2)
        return {}

    def answering(state: Ping) -> dict[str, Any]:
        time.sleep(2.5)
        return {"answer": "done"}

    return chain(Ping, wake=wake, answering=answering).compile()


@twins("leftovers", HARBOUR)
def thread_left(is_safe: bool) -> Any:
    """A heartbeat that nobody stops when the work beside it is cut. Mended: it is stopped whatever happens."""

    def read(state: Report) -> dict[str, Any]:
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(5.0):
                pass

        threading.Thread(target=beat, daemon=True).start()
        return fetched_and_ended(stop.set, is_safe)

    return chain(Report, read=read).compile()


class Greeting(TypedDict, total=False):
    name: str
    greeting: str


@twins("checkpoint", {"name": "Ada"})
def write_after_fence(is_safe: bool) -> Any:
    """A store that a thread of nobody's writes to after the caller was told. Mended: the node waits for its thread."""

    def remember(state: Greeting, *, store: BaseStore) -> dict[str, Any]:
        def write() -> None:
            time.sleep(0.5)
            store.put(("people",), state["name"], {"seen": True})

        thread = threading.Thread(target=write)
        thread.start()
        if is_safe:
            thread.join()
        return {}

    def greet(state: Greeting) -> dict[str, Any]:
        return {"greeting": f"Good morning, {state['name']}: {fetched()}"}

    return chain(Greeting, remember=remember, greet=greet).compile()
