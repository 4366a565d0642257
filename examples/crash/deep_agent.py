"""A deep agent of deepagents, with a sub-agent that has the tools."""

from deepagents import create_deep_agent
from harbour_tools import depth_of, model, tools

graph = create_deep_agent(
    model=model,
    tools=[depth_of],
    system_prompt="You help captains.",
    subagents=[
        {
            "name": "clerk",
            "description": "Books berths and writes letters.",
            "system_prompt": "You book berths and write letters.",
            "tools": tools,
        }
    ],
)
