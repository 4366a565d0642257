"""A supervisor that chooses the next worker by structured output, and ends by choosing FINISH."""

from typing import Literal, TypedDict

from knowledge import lookup
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

MEMBERS = ["researcher", "writer"]
PROMPT = f"You lead {', '.join(MEMBERS)}. Say who acts next. When the answer is complete, say FINISH."
model = ChatOpenAI(model="gpt-4.1-mini")


class Route(TypedDict):
    """Who acts next; FINISH when nobody has to."""

    next: Literal["researcher", "writer", "FINISH"]


def supervisor(state: MessagesState) -> Command[Literal["researcher", "writer", "__end__"]]:
    route = model.with_structured_output(Route).invoke([("system", PROMPT), *state["messages"]])
    return Command(goto=END if route["next"] == "FINISH" else route["next"])


def worker(name, agent):
    def node(state: MessagesState) -> Command[Literal["supervisor"]]:
        said = agent.invoke({"messages": state["messages"]})["messages"][-1].content
        return Command(update={"messages": [HumanMessage(said, name=name)]}, goto="supervisor")

    return node


builder = StateGraph(MessagesState)
builder.add_node("supervisor", supervisor)
builder.add_node("researcher", worker("researcher", create_agent(model, [lookup])))
builder.add_node("writer", worker("writer", create_agent(model, [], system_prompt="You write the answer.")))
builder.add_edge(START, "supervisor")
graph = builder.compile()
