"""LangChain's agent with `TodoListMiddleware`."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[TodoListMiddleware()],
)
