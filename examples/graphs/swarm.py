"""A swarm of langgraph-swarm: two agents that hand the conversation to each other."""

from knowledge import book_berth, lookup
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_swarm import create_handoff_tool, create_swarm

model = ChatOpenAI(model="gpt-4.1-mini")
guide = create_agent(
    model,
    [lookup, create_handoff_tool(agent_name="clerk", description="Hand over to the clerk, who books berths.")],
    system_prompt="You answer questions about harbours.",
    name="guide",
)
clerk = create_agent(
    model,
    [book_berth, create_handoff_tool(agent_name="guide", description="Hand over to the guide.")],
    system_prompt="You book berths.",
    name="clerk",
)
graph = create_swarm([guide, clerk], default_active_agent="guide").compile(checkpointer=InMemorySaver())
