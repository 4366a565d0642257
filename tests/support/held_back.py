"""Seven defects with their corrected twins, written before the crash test was tried on them."""

import asyncio
import operator
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import httpx
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.base import BaseStore
from langgraph.types import Send
from twins import chain, twins

REPORT = "https://slow.example.com/report"


class Conversation(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


def filled_in(messages: list[Any], text: str) -> list[Any]:
    """Return a conversation in which each tool call without a result has this one after it."""
    done = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    made = []
    for message in messages:
        made.append(message)
        if isinstance(message, AIMessage):
            missing = [call["id"] for call in message.tool_calls if call["id"] not in done]
            made += [ToolMessage(text, tool_call_id=each) for each in missing]
    return made


@twins("effects", "Give me back what I paid for order 17.")
def double_refund(is_safe: bool) -> Any:
    """A tool whose refund is made again when the run is resumed. Mended: the order is the key of the refund."""

    @tool
    async def refund(order_id: str) -> str:
        """Pay back what was paid for an order."""
        await asyncio.sleep(0.3)
        return "What was paid for the order is on its way back to the customer."

    refund.metadata = {"effect": "refund", **({"idempotency_key": "order_id"} if is_safe else {})}
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([refund])

    async def think(state: Conversation) -> dict[str, Any]:
        messages = filled_in(state["messages"], "It is not known whether it was done.")
        return {"messages": [await model.ainvoke(messages)]}

    inner = chain(Conversation, think=think)
    inner.add_node("tools", ToolNode([refund]))
    inner.add_conditional_edges("think", tools_condition)
    inner.add_edge("tools", "think")
    return chain(Conversation, agent=inner.compile()).compile()


class About(TypedDict, total=False):
    about: str
    report: str


@twins("leftovers", {"about": "harbour"})
def job_left(is_safe: bool) -> Any:
    """A job of a pool that waits for a word that never comes once its node is cut. Mended: the word always comes."""

    def read(state: About) -> dict[str, Any]:
        pool, done = ThreadPoolExecutor(1), threading.Event()

        def show() -> None:
            while not done.wait(0.5):
                pass

        pool.submit(show)
        try:
            report = httpx.get(REPORT).json()["report"]
        except BaseException:
            if is_safe:
                done.set()
                pool.shutdown()
            raise
        done.set()
        pool.shutdown()
        return {"report": report}

    return chain(About, inner=chain(About, read=read).compile()).compile()


class Pages(TypedDict, total=False):
    pages: list[str]
    report: str


class Reader:
    def __init__(self, is_safe: bool) -> None:
        self.is_safe, self.turn = is_safe, threading.Lock()

    def read(self, task: dict[str, Any]) -> dict[str, Any]:
        if self.is_safe:
            with self.turn:
                httpx.get(f"{REPORT}?page={task['page']}")
            return {}
        self.turn.acquire()
        httpx.get(f"{REPORT}?page={task['page']}")
        self.turn.release()
        return {}


@twins("leftovers", {"pages": ["a", "b"]})
def lock_held(is_safe: bool) -> Any:
    """A lock of a client object that stays held when its request is cut. Mended: it is released."""

    def fan_out(state: Pages) -> list[Send]:
        return [Send("read", {"page": page}) for page in state["pages"]]

    builder = chain(Pages, plan=lambda state: {})
    builder.add_node("read", Reader(is_safe).read)
    builder.add_node("close", lambda state: {"report": "all pages are read"})
    builder.add_conditional_edges("plan", fan_out, ["read"])
    builder.add_edge("read", "close")
    return builder.compile()


class Shared(TypedDict, total=False):
    items: list[str]
    results: dict[str, int]
    total: int


class Merged(TypedDict, total=False):
    items: list[str]
    results: Annotated[dict[str, int], operator.or_]
    total: int


@twins("resume", {"items": ["ebb", "flow"]})
def lost_update(is_safe: bool) -> Any:
    """Workers side by side that put their results into one list of the state. Mended: each returns its own."""

    def begin(state: Any) -> dict[str, Any]:
        time.sleep(0.1)
        return {"results": {}}

    def fan_out(state: Any) -> list[Send]:
        return [Send("count", {"item": item, "results": state["results"]}) for item in state["items"]]

    def count(task: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.1 * len(task["item"]))
        if not is_safe:
            task["results"][task["item"]] = len(task["item"])
            return {}
        return {"results": {task["item"]: len(task["item"])}}

    def add(state: Any) -> dict[str, Any]:
        time.sleep(0.2)
        return {"total": sum(state["results"].values())}

    builder = chain(Merged if is_safe else Shared, begin=begin)
    builder.add_node("count", count)
    builder.add_node("add", add)
    builder.add_conditional_edges("begin", fan_out, ["count"])
    builder.add_edge("count", "add")
    return builder.compile()


@tool
async def weather(place: str) -> str:
    """Return the weather."""
    await asyncio.sleep(0.2)
    return "The wind comes from the west at 14 knots, and the sky is clear."


@tool
async def tide(place: str) -> str:
    """Return the tide."""
    await asyncio.sleep(0.6)
    return "The tide is 3 metres high at noon, and it falls until six."


TOOLS = {"weather": weather, "tide": tide}


@twins("conversation", "How is the weather, and how is the tide?")
def orphan_tool_call(is_safe: bool) -> Any:
    """Tool calls handed out one by one: only some results are saved. Mended: the missing are filled in."""
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools(list(TOOLS.values()))

    async def think(state: Conversation) -> dict[str, Any]:
        messages = filled_in(state["messages"], "No result.") if is_safe else state["messages"]
        return {"messages": [await model.ainvoke(messages)]}

    async def use(call: dict[str, Any]) -> dict[str, Any]:
        text = await TOOLS[call["name"]].ainvoke(call["args"])
        return {"messages": [ToolMessage(text, tool_call_id=call["id"])]}

    def after(state: Conversation) -> Any:
        return [Send("use", dict(call)) for call in state["messages"][-1].tool_calls] or END

    builder = chain(Conversation, think=think)
    builder.add_node("use", use)
    builder.add_conditional_edges("think", after, ["use", END])
    builder.add_edge("use", "think")
    return builder.compile()


class Ping(TypedDict, total=False):
    host: str
    answer: str


async def ping(host: str) -> str:
    async with httpx.AsyncClient() as client:
        for pause_s in (0.2, 0.4, 0.8):
            answer = await client.get(f"https://{host}.example.com/ping")
            if answer.status_code < 500:
                break
            await asyncio.sleep(pause_s)
    return "It does not answer."


@twins("begins", {"host": "down"})
def retry_outlives(is_safe: bool) -> Any:
    """A retry shielded from cancellation, which goes on without its caller. Mended: it is cancelled with the node."""

    async def wake(state: Ping) -> dict[str, Any]:
        ringing = ping(state["host"])
        return {"answer": await (ringing if is_safe else asyncio.shield(ringing))}

    return chain(Ping, inner=chain(Ping, wake=wake).compile()).compile()


class Greeting(TypedDict, total=False):
    name: str
    greeting: str


@twins("checkpoint", {"name": "Grace"})
def write_after_fence(is_safe: bool) -> Any:
    """A task of an event loop that writes to the store after the caller was told. Mended: the node awaits it."""
    running = set()

    async def write(store: BaseStore, name: str) -> None:
        await asyncio.sleep(0.7)
        await store.aput(("people",), name, {"seen": True})

    async def remember(state: Greeting, *, store: BaseStore) -> dict[str, Any]:
        if is_safe:
            await write(store, state["name"])
        else:
            task = asyncio.create_task(write(store, state["name"]))
            running.add(task)
            task.add_done_callback(running.discard)
        return {}

    async def greet(state: Greeting) -> dict[str, Any]:
        await asyncio.sleep(1.2)
        return {"greeting": f"Good evening, {state['name']}"}

    return chain(Greeting, remember=remember, greet=greet).compile()
