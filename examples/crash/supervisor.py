"""A supervisor of langgraph-supervisor over two agents with tools."""

from harbour_tools import book_berth, depth_of, model, send_letter
from langchain.agents import create_agent
from langgraph_supervisor import create_handoff_tool, create_supervisor

pilot = create_agent(model, [depth_of], system_prompt="You know harbours.", name="pilot")
clerk = create_agent(model, [book_berth, send_letter], system_prompt="You book and write.", name="clerk")
# Named in an order. Those that the package makes itself are in the order of a set, which differs between processes.
to_agents = [create_handoff_tool(agent_name=name) for name in ("pilot", "clerk")]
office = create_supervisor([pilot, clerk], model=model, tools=to_agents, prompt="You lead a pilot and a clerk.")
graph = office.compile(name="office")
