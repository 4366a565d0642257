"""LangChain's agent with `ContextEditingMiddleware`, which clears old results of tools."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10, keep=1)])],
)
