"""LangChain's agent with `SummarizationMiddleware`, which replaces what was said first by a summary."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[SummarizationMiddleware(model=model, trigger=("messages", 3), keep=("messages", 2))],
)
