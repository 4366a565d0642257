"""A swarm of langgraph-swarm: two agents with tools that hand the conversation to each other."""

from harbour_tools import book_berth, depth_of, model, send_letter
from langchain.agents import create_agent
from langgraph_swarm import create_handoff_tool, create_swarm

to_clerk = create_handoff_tool(agent_name="clerk", description="Hand over to the clerk, who books and writes.")
to_pilot = create_handoff_tool(agent_name="pilot", description="Hand over to the pilot, who knows harbours.")
pilot = create_agent(model, [depth_of, to_clerk], system_prompt="You know harbours.", name="pilot")
clerk = create_agent(model, [book_berth, send_letter, to_pilot], system_prompt="You book and write.", name="clerk")
graph = create_swarm([pilot, clerk], default_active_agent="pilot").compile()
