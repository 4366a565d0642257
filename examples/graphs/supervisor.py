"""A supervisor of langgraph-supervisor over a researcher and a calculator, each an agent with tools."""

from knowledge import add, lookup, multiply
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="gpt-4.1-mini")
researcher = create_agent(model, [lookup], system_prompt="You look up facts. Do no sums.", name="researcher")
calculator = create_agent(model, [add, multiply], system_prompt="You do sums, one at a time.", name="calculator")
graph = create_supervisor(
    [researcher, calculator],
    model=model,
    prompt="You lead a researcher and a calculator. Hand each part of the question to the one who can answer it.",
).compile(name="supervisor")
