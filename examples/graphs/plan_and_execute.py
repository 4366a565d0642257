"""Plan and execute: steps by structured output, an agent for each, and a new plan or the answer after each step."""

import operator
from typing import Annotated, TypedDict

from knowledge import lookup
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-4.1-mini")
agent = create_agent(model, [lookup])


class Plan(BaseModel):
    """The steps that are left, in order."""

    steps: list[str] = Field(min_length=1, max_length=3)


class Response(BaseModel):
    """The answer for the user."""

    response: str


class Act(BaseModel):
    """What to do next: answer, or go on with these steps."""

    action: Response | Plan


class State(TypedDict):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple], operator.add]
    response: str


async def make_plan(state: State):
    return {"plan": (await model.with_structured_output(Plan).ainvoke(f"Plan: {state['input']}")).steps}


async def execute(state: State):
    step = state["plan"][0]
    result = await agent.ainvoke({"messages": [("user", f"Do this step: {step}")]})
    return {"past_steps": [(step, result["messages"][-1].content)]}


async def plan_again(state: State):
    asked = f"Aim: {state['input']}\nPlan: {state['plan']}\nDone: {state['past_steps']}\nUpdate the plan, or answer."
    act = await model.with_structured_output(Act).ainvoke(asked)
    if isinstance(act.action, Response):
        return {"response": act.action.response}
    return {"plan": act.action.steps}


builder = StateGraph(State)
builder.add_node("make_plan", make_plan)
builder.add_node("execute", execute)
builder.add_node("plan_again", plan_again)
builder.add_edge(START, "make_plan")
builder.add_edge("make_plan", "execute")
builder.add_edge("execute", "plan_again")
builder.add_conditional_edges("plan_again", lambda state: END if state.get("response") else "execute", ["execute", END])
graph = builder.compile()
