"""A graph to try this with, in place of your own: two services side by side, then a model that answers."""

import httpx
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

model = ChatOpenAI(model="gpt-4.1-mini")


class Crossing(MessagesState):
    """What is asked, and what two services say to it."""

    forecast: str
    ferries: list[str]


async def look_at_the_sky(state: Crossing) -> dict:
    """Ask a weather service."""
    async with httpx.AsyncClient() as client:
        answer = await client.get("https://weather.example.com/v1/forecast")
    return {"forecast": answer.json()["sky"]}


async def look_up_ferries(state: Crossing) -> dict:
    """Ask a timetable."""
    async with httpx.AsyncClient() as client:
        answer = await client.get("https://ferries.example.com/departures")
    return {"ferries": answer.json()["departures"]}


async def answer(state: Crossing) -> dict:
    """Have a model answer."""
    known = f"The sky: {state['forecast']}. Ferries: {', '.join(state['ferries'])}."
    return {"messages": [await model.ainvoke([("system", known), *state["messages"]])]}


graph = (
    StateGraph(Crossing)
    .add_node("sky", look_at_the_sky)
    .add_node("ferries", look_up_ferries)
    .add_node("answer", answer)
    .add_edge(START, "sky")
    .add_edge(START, "ferries")
    .add_edge(["sky", "ferries"], "answer")
    .compile()
)
