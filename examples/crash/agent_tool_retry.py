"""LangChain's agent with `ToolRetryMiddleware`, and a tool whose first call fails."""

from harbour_tools import busy_tool, model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware


def graph():
    """Make the agent."""
    return create_agent(
        model,
        [*tools, busy_tool()],
        system_prompt="You help captains.",
        middleware=[ToolRetryMiddleware(max_retries=2, initial_delay=0.2, jitter=False)],
    )
