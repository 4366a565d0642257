"""LangGraph's prebuilt agent: `create_react_agent`."""

from harbour_tools import model, tools
from langgraph.prebuilt import create_react_agent

graph = create_react_agent(model, tools, prompt="You help captains.")
