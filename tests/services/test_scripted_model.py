"""The scripted model: what it says follows from the request, and the roles play together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docmind_lab.services.scripted_model import Conversation, Reply, reply_to
from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, unsupported_statements
from docmind_lab.services.scripted_model.scripted_roles import role_of, strategy_for, sub_questions
from docmind_lab.services.scripted_model.tokens import first_tokens

QUOLL = "A quoll is a spotted marsupial. The quoll hunts at night in the eucalyptus forest."
KILN = "A kiln is fired slowly. The potter opens the kiln after two days."
SIMPLE = "When does the quoll hunt in the forest?"
COMPLEX = "When does the quoll hunt at night, and when does the potter open the kiln?"
AGENTS = ("router_agent", "planner_agent", "retrieval_agent", "synthesis_agent", "validation_agent")

Message = dict[str, Any]


def tool(name: str, **properties: Any) -> Message:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


STRATEGIES = ["hybrid", "hierarchical", "graph"]
ROUTE_TOOL = tool("choose_route", strategy={"enum": STRATEGIES}, complexity={"enum": ["simple", "complex"]})
PLAN_TOOL = tool("make_plan", tasks={"type": "array"})
SEARCH_TOOL = tool("retrieve_documents", query={"type": "string"}, strategy={"enum": STRATEGIES})
ENGINE_TOOL = tool("select_engine", engine={"enum": STRATEGIES})
VERDICT_TOOL = tool("report_validation", verdict={"enum": ["accept", "correct"]})
HANDOFF_TOOLS = [tool(f"transfer_to_{agent}", task={"type": "string"}) for agent in AGENTS]
FORWARD_TOOL = tool("forward_message", from_agent={"type": "string"})
ONE_EACH = (FORWARD_TOOL, ROUTE_TOOL, PLAN_TOOL, SEARCH_TOOL, VERDICT_TOOL)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def called(name: str, call_id: str = "1", **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def result(name: str, content: Any, call_id: str = "1") -> Message:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def found(*documents: tuple[str, str]) -> Message:
    return result("retrieve_documents", {"documents": [{"id": id_, "content": text} for id_, text in documents]})


def reply(messages: list[Message], *tools: Message) -> Reply:
    return reply_to(Conversation.from_request({"messages": messages, "tools": list(tools)}))


# ---- the answer follows the documents


NIGHT, DAWN = QUOLL, QUOLL.replace("at night", "at dawn")


@pytest.mark.parametrize(
    ("question", "results", "answer"),
    [
        (SIMPLE, [found(("q#1", NIGHT))], "The quoll hunts at night in the eucalyptus forest. [q#1]"),
        (SIMPLE, [found(("q#2", DAWN))], "The quoll hunts at dawn in the eucalyptus forest. [q#2]"),
        ("Of what colour is a spotted quoll?", [found(("q#1", NIGHT))], "A quoll is a spotted marsupial. [q#1]"),
        # Documents that do not answer are not made to.
        (SIMPLE, [found(("kiln", KILN))], NOT_FOUND),
        # A text of any tool is a document that can be cited.
        (SIMPLE, [result("atlas", NIGHT)], "The quoll hunts at night in the eucalyptus forest. [atlas]"),
        # A result of another shape is none.
        *((SIMPLE, [result("look_up", {"documents": each})], NOT_FOUND) for each in (3, "none", [None, {"id": 1}])),
    ],
)
def test_the_answer_is_what_the_documents_say_with_their_ids(question, results, answer):
    messages = [user(question), called("look_up"), *results]
    assert reply(messages).text == answer
    assert reply(json.loads(json.dumps(messages))).text == answer, "the same request gets the same reply"
    # Every statement stands in the document that it cites.
    cited = [Document(name, text) for name, text in (("q#1", NIGHT), ("q#2", DAWN), ("atlas", NIGHT))]
    assert answer == NOT_FOUND or unsupported_statements(answer, cited) == []


# ---- roles


@pytest.mark.parametrize(
    ("tools", "prompt", "role"),
    [
        (HANDOFF_TOOLS, "You are the router.", "supervisor"),
        ([ROUTE_TOOL], "", "router"),
        ([ENGINE_TOOL], "You are the router engine.", "router_engine"),
        ([PLAN_TOOL], "", "planner"),
        ([SEARCH_TOOL], "", "retrieval"),
        ([VERDICT_TOOL], "", "validation"),
        ([], "You are the synthesis agent of DocMind; validation comes after you.", "synthesis"),
        ([], "You are a planner who compares options. Answer in JSON.", "assistant"),
        ([], "You route requests as a router.", "assistant"),
        ([], "Be helpful.", "assistant"),
        ([tool("look_up")], "You do validation and retrieval.", "assistant"),
        ([tool("retrieve_documents", question={"type": "string"})], "", "assistant"),
    ],
)
def test_the_role_is_read_off_tools_and_prompt(tools, prompt, role):
    payload = {"messages": [{"role": "system", "content": prompt}, user("Why?")], "tools": tools}
    assert role_of(Conversation.from_request(payload)) == role


@pytest.mark.parametrize(
    ("question", "strategy", "complexity"),
    [
        ("When does the quoll hunt?", "hybrid", "simple"),
        ("How does a quoll differ from a possum?", "graph", "complex"),
        ("What is related to the quoll?", "graph", "simple"),
        ("Give me an overview of the quoll", "hierarchical", "simple"),
        ("What does the whole section on kilns say?", "hierarchical", "simple"),
        (COMPLEX, "hybrid", "complex"),
    ],
)
def test_the_router_and_its_engine_choose_by_the_words_of_the_question(question, strategy, complexity):
    (route,) = reply([user(question)], ROUTE_TOOL).tool_calls
    assert (route.name, dict(route.arguments)) == ("choose_route", {"strategy": strategy, "complexity": complexity})
    (engine,) = reply([user(question)], ENGINE_TOOL).tool_calls
    assert (engine.name, dict(engine.arguments)) == ("select_engine", {"engine": strategy})


@pytest.mark.parametrize(
    ("question", "offered", "strategy"),
    [
        ("How is a quoll related to a possum?", ["hierarchical", "hybrid"], "hybrid"),
        ("Compare the whole of it", ["graph", "hierarchical"], "graph"),
        ("When does it hunt?", ["graph", "hierarchical"], "graph"),
        ("When does the quoll hunt?", ["graph"], "graph"),
    ],
)
def test_what_fits_first_and_is_on_offer_is_chosen(question, offered, strategy):
    assert strategy_for(question, offered) == strategy
    (call,) = reply([user(question)], tool("choose_route", strategy={"enum": offered})).tool_calls
    assert call.arguments["strategy"] == strategy


@pytest.mark.parametrize(
    ("first", "offered", "then"),
    [
        ("hybrid", STRATEGIES, "hierarchical"),
        ("graph", STRATEGIES, "hybrid"),
        ("hierarchical", ["hierarchical", "graph"], "graph"),
        ("graph", ["graph"], "graph"),
    ],
)
def test_another_route_is_another_strategy_where_there_is_one(first, offered, then):
    verdict = {"verdict": "correct", "target": "retrieval"}
    messages = [user(SIMPLE), called("choose_route"), result("choose_route", {"strategy": first})]
    messages += [called("report_validation", "2"), result("report_validation", verdict, "2")]
    search = tool("retrieve_documents", query={"type": "string"}, strategy={"enum": offered})
    (call,) = reply(messages, search).tool_calls
    assert call.arguments["strategy"] == then


@pytest.mark.parametrize(
    ("question", "tasks"),
    [
        (SIMPLE, [SIMPLE]),
        (COMPLEX, ["When does the quoll hunt at night", "when does the potter open the kiln"]),
        ("How does a quoll differ from a possum?", ["a quoll", "a possum"]),
        ("Why this? Why that? Why these? Why those?", ["Why this", "Why that", "Why these"]),
    ],
)
def test_a_question_is_split_into_at_most_three_tasks(question, tasks):
    assert sub_questions(question) == tasks
    (call,) = reply([user(question)], PLAN_TOOL).tool_calls
    assert call.arguments == {"tasks": tasks}


def test_retrieval_searches_for_its_own_task_by_the_route_chosen():
    messages = [user(COMPLEX), called("choose_route"), result("choose_route", {"strategy": "graph"})]
    (call,) = reply([*messages, user("Task: the kiln")], SEARCH_TOOL).tool_calls
    assert dict(call.arguments) == {"query": "the kiln", "strategy": "graph"}


def verdict_on(answer: str, *documents: tuple[str, str]) -> dict[str, Any]:
    said_by_synthesis = {"role": "assistant", "name": "synthesis_agent", "content": answer}
    messages = [user(SIMPLE), called("retrieve_documents"), found(*documents), said_by_synthesis]
    (call,) = reply(messages, VERDICT_TOOL).tool_calls
    return dict(call.arguments)


HUNTS = "The quoll hunts at night in the eucalyptus forest."


@pytest.mark.parametrize(
    ("answer", "verdict", "target", "score", "unsupported"),
    [
        (f"{HUNTS} [quoll#1]", "accept", "", 1.0, 0),
        # False, misplaced twice, missing, and one statement of two.
        ("The quoll hunts at noon in the eucalyptus forest. [quoll#1]", "correct", "synthesis", 0.0, 1),
        (f"{HUNTS} [kiln]", "correct", "synthesis", 0.0, 1),
        (f"{HUNTS} [nowhere]", "correct", "synthesis", 0.0, 1),
        (HUNTS, "correct", "synthesis", 0.0, 1),
        (f"{HUNTS} [quoll#1] The quoll hunts at noon. [quoll#1]", "correct", "synthesis", 0.5, 1),
        # No answer asks for another search.
        (NOT_FOUND, "correct", "retrieval", 0.0, 1),
    ],
)
def test_validation_accepts_what_citations_support_and_scores_the_share_of_statements(
    answer, verdict, target, score, unsupported
):
    found_in_it = {"verdict": verdict, "target": target, "score": score, "unsupported": unsupported}
    assert verdict_on(answer, ("quoll#1", QUOLL), ("kiln", KILN)) == found_in_it


# ---- the supervisor


@pytest.mark.parametrize(
    ("left_out", "visited", "then"),
    [
        ("router_agent", "", "retrieval_agent"),
        ("synthesis_agent", "retrieval_agent", "validation_agent"),
        ("validation_agent", "synthesis_agent", ""),
    ],
)
def test_a_system_without_one_of_the_roles_goes_on_to_the_next(left_out, visited, then):
    tools = [t for t in HANDOFF_TOOLS if left_out not in t["function"]["name"]]
    messages = [user(SIMPLE)]
    if visited:
        messages += [called(f"transfer_to_{visited}"), result(f"transfer_to_{visited}", "Successfully handed over.")]
        messages += [{"role": "assistant", "name": visited, "content": "It hunts at night."}]
    said = reply(messages, *tools, FORWARD_TOOL)
    if then:
        assert [call.name for call in said.tool_calls] == [f"transfer_to_{then}"]
    else:
        # Where the answer cannot be forwarded, it is given in words.
        assert [dict(call.arguments) for call in said.tool_calls] == [{"from_agent": visited}]
        assert reply(messages, *tools).text == "It hunts at night."


def test_agents_that_are_none_of_the_roles_are_visited_once_each_in_the_order_given():
    agents = ["poet", "critic", "printer"]
    tools = [tool(f"transfer_to_{agent}") for agent in agents]
    messages, visited = [user("Write.")], []
    while calls := reply(messages, *tools).tool_calls:
        (call,) = calls
        visited.append(call.name.removeprefix("transfer_to_"))
        messages += [called(call.name), result(call.name, "Successfully handed over.")]
        messages.append({"role": "assistant", "name": visited[-1], "content": f"Said by {visited[-1]}."})
    assert visited == agents
    assert reply(messages, *tools).text == "Said by printer."


@pytest.mark.parametrize("tasks", [2, None, "all", {}, [], ["one"]])
def test_a_plan_that_is_no_list_of_several_tasks_gives_retrieval_the_whole_question(tasks):
    messages = [user(SIMPLE), called("make_plan"), result("make_plan", {"tasks": tasks})]
    (call,) = reply(messages, HANDOFF_TOOLS[2]).tool_calls
    assert (call.name, dict(call.arguments)) == ("transfer_to_retrieval_agent", {})


# ---- an agent of one's own


@pytest.mark.parametrize("parameter", ["query", "q", "question", "text"])
def test_an_assistant_with_a_search_tool_searches_once_and_then_answers(parameter):
    look_up = tool("look_up", **{parameter: {"type": "string"}})
    (call,) = reply([user(SIMPLE)], look_up).tool_calls
    assert (call.name, dict(call.arguments)) == ("look_up", {parameter: SIMPLE})
    for content, answer in ((QUOLL, f"{HUNTS} [look_up]"), ({"documents": []}, NOT_FOUND)):
        assert reply([user(SIMPLE), called("look_up"), result("look_up", content)], look_up) == Reply(answer)


@pytest.mark.parametrize("tools", [[], [tool("transfer_to_clerk")], [tool("look_up"), tool("transfer_to_clerk")]])
@pytest.mark.parametrize("choice", [None, "none"])
def test_an_agent_to_whom_all_is_handed_back_answers_from_results_whatever_it_is_offered(tools, choice):
    messages = [user(SIMPLE), called("look_up"), result("look_up", QUOLL), called("transfer_to_clerk")]
    messages.append(result("transfer_to_clerk", "Successfully transferred to clerk"))
    request = {"messages": messages, "tools": tools, "tool_choice": choice}
    assert reply_to(Conversation.from_request(request)) == Reply(f"{HUNTS} [look_up]")


@pytest.mark.parametrize("content", [None, "", "Why?", '{"verdict": 1, "tasks": 2, "documents": 3}'])
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_any_conversation_gets_a_reply(role, content):
    message = {"role": role, "content": content, "name": "synthesis_agent"}
    for tools in ([], HANDOFF_TOOLS, [*HANDOFF_TOOLS, FORWARD_TOOL], *([tool] for tool in ONE_EACH)):
        for messages in ([message], [user(SIMPLE), message], [message, message, user(SIMPLE)]):
            said = reply(messages, *tools)
            assert said.text or said.tool_calls


def test_a_request_without_documents_gets_a_reply_about_itself_of_a_bounded_length() -> None:
    assert reply([user(SIMPLE)]) == Reply(f"Scripted reply: {first_tokens(SIMPLE, 6)}")
    told = reply([user("Write a poem\n  about the sea.")]).text
    assert told == "Scripted reply: Write a poem about the sea"
    # A loop that hands its text back is not told the beginning again and again.
    assert reply([user(told)]).text == told
    assert len(reply([user("sea " * 500)]).text.split()) == 8
    assert reply([user("")]).text == NOT_FOUND
