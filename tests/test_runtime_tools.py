"""Tools that are given the runtime, and what LangChain makes of them."""

from __future__ import annotations

from typing import Annotated, Any

from graph_fakes import asking, in_turn
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from docmind_lab.systems.docmind.runtime_tools import runtime_tool


def tool(seen: list[Any]) -> Any:
    def look(runtime: ToolRuntime[Any, Any], number: Annotated[int, Field(description="Which one.", ge=1)] = 1) -> str:
        seen.append((runtime.state["messages"][0].text, number))
        return f"number {number}"

    async def look_async(runtime: ToolRuntime[Any, Any], number: int = 1) -> str:
        return look(runtime, number)

    return runtime_tool(look, look_async, name="look", description="Look.")


def test_the_model_is_offered_every_argument_but_the_runtime():
    function = convert_to_openai_tool(tool([]))["function"]
    assert (function["name"], function["description"]) == ("look", "Look.")
    assert list(function["parameters"]["properties"]) == ["number"]
    assert function["parameters"]["properties"]["number"]["description"] == "Which one."


def run(arguments: dict[str, Any], seen: list[Any]) -> ToolMessage:
    agent = create_agent(in_turn(asking(("look", arguments)), AIMessage("done")), tools=[tool(seen)])
    result = agent.invoke({"messages": [{"role": "user", "content": "q"}]})["messages"]
    return next(message for message in result if isinstance(message, ToolMessage))


def test_the_runtime_is_the_graphs_even_if_the_model_brings_one():
    seen: list[Any] = []
    assert run({"number": 2, "runtime": {"state": {"messages": []}}}, seen).text == "number 2"
    assert seen == [("q", 2)]


def test_arguments_are_checked_and_have_their_defaults():
    seen: list[Any] = []
    assert run({}, seen).text == "number 1"
    assert run({"number": 0}, seen).status == "error"
    assert seen == [("q", 1)]
