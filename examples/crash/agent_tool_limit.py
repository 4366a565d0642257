"""LangChain's agent with `ToolCallLimitMiddleware`, whose limit the first message of the model exceeds."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[ToolCallLimitMiddleware(run_limit=2)],
)
