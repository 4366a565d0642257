"""LangChain's agent with `LLMToolSelectorMiddleware`, which asks a model for the tools that matter."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import LLMToolSelectorMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[LLMToolSelectorMiddleware(model=model)],
)
