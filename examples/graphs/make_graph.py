"""A graph made for each configuration, as langgraph.json names it."""

from knowledge import lookup, tide_at
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI


async def make_graph(config: RunnableConfig):
    chosen = config.get("configurable", {})
    tools = [lookup, tide_at] if chosen.get("with_tides") else [lookup]
    return create_agent(ChatOpenAI(model=chosen.get("model", "gpt-4.1-mini")), tools)
