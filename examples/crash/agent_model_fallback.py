"""LangChain's agent with `ModelFallbackMiddleware`, and a first model whose calls all fail."""

from harbour_tools import busy_model, model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware


def graph():
    """Make the agent."""
    return create_agent(
        busy_model(failures=-1),
        tools,
        system_prompt="You help captains.",
        middleware=[ModelFallbackMiddleware(model)],
    )
