"""LangChain's agent without middleware: `create_agent`."""

from harbour_tools import model, tools
from langchain.agents import create_agent

graph = create_agent(model, tools, system_prompt="You help captains.")
