"""LangGraph's prebuilt agent of version "v1", which runs all tool calls of a message in one task."""

from harbour_tools import model, tools
from langgraph.prebuilt import create_react_agent

graph = create_react_agent(model, tools, prompt="You help captains.", version="v1")
