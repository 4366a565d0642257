"""A deep agent of deepagents: a list of things to do, files in its state, and a sub-agent."""

from deepagents import create_deep_agent
from knowledge import lookup
from langchain_openai import ChatOpenAI

graph = create_deep_agent(
    model=ChatOpenAI(model="gpt-4.1-mini", use_responses_api=True),
    tools=[lookup],
    system_prompt="You write short reports about harbours.",
    subagents=[
        {
            "name": "researcher",
            "description": "Looks up facts.",
            "system_prompt": "You look up facts about harbours.",
            "tools": [lookup],
        }
    ],
)
