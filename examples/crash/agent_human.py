"""LangChain's agent with `HumanInTheLoopMiddleware`, which asks a person before a letter is sent."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_letter": True})],
)
