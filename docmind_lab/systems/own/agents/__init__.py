"""Agents that are no LangGraph graph: functions of a question, objects of other frameworks, and their own timeouts.

agent.py         Agent: one function of a question, and the graph of one node, `agent`, that runs it
frameworks.py    one adapter for each framework
load.py          an object, a function or "my_app:agent" as an Agent, and questions as inputs of its graph
enforcing.py     which alternatives an agent can have, and what carries them out
"""

from docmind_lab.systems.own.agents.agent import Agent, AgentGraph, NativeTimeout, agent_graph
from docmind_lab.systems.own.agents.load import load_agent

__all__ = ["Agent", "AgentGraph", "NativeTimeout", "agent_graph", "load_agent"]
