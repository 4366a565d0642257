"""An agent that asks a person before it calls a tool that changes something (HumanInTheLoopMiddleware)."""

from knowledge import book_berth, lookup
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

graph = create_agent(
    ChatOpenAI(model="gpt-4.1-mini"),
    [lookup, book_berth],
    system_prompt="You help captains. Look things up before you book.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"book_berth": True, "lookup": False})],
    checkpointer=InMemorySaver(),
)
