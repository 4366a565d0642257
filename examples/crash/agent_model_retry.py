"""LangChain's agent with `ModelRetryMiddleware`, and a model whose first call fails."""

from harbour_tools import busy_model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware


def graph():
    """Make the agent."""
    return create_agent(
        busy_model(failures=1),
        tools,
        system_prompt="You help captains.",
        middleware=[ModelRetryMiddleware(max_retries=2, initial_delay=0.2, jitter=False)],
    )
