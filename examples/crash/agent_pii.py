"""LangChain's agent with `PIIMiddleware`, which removes addresses of mail."""

from harbour_tools import model, tools
from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware

graph = create_agent(
    model,
    tools,
    system_prompt="You help captains.",
    middleware=[PIIMiddleware("email", apply_to_input=True)],
)
