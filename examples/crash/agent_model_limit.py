"""LangChain's agent with `ModelCallLimitMiddleware`."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[ModelCallLimitMiddleware(run_limit=8, thread_limit=8)],
)
