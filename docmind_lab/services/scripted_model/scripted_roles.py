"""The scripted model's replies in each role, computed from the request alone.

Which role a request is for is read off the tools on offer and the system prompt; a request for none of the five
(a user's own agent) is played as any agent is: it calls each tool once and answers from what they returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from docmind_lab.services.scripted_model.any_agent import calls_of_own_tools, reply_of_assistant
from docmind_lab.services.scripted_model.conversation import HANDOFF_PREFIX, Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer, unsupported_statements

ROLE_OF_PHRASE: dict[str, str] = {
    # One that was given no tools any more has nothing else by which it could be told.
    "You are the supervisor of DocMind": "supervisor",
}
ROLES = ("router", "planner", "retrieval", "synthesis", "validation")
_OWN_SYSTEM = "DocMind"
_TOOL_OF_ROLE = {
    "router": ("choose_route", "strategy"),
    "router_engine": ("select_engine", "engine"),
    "planner": ("make_plan", "tasks"),
    "retrieval": ("retrieve_documents", "strategy"),
    "validation": ("report_validation", "verdict"),
}
"""Role → its tool, and a parameter by which that is told from another system's tool of the same name."""
_COMPLEX = re.compile(
    r"\b(compare|differ\w*|versus|vs|both|relate|relation\w*|as opposed to)\b"
    r"|\?.*\?|,? and (how|what|when|why|which|where)\b",
    re.IGNORECASE | re.DOTALL,
)
# Which words ask for which way to search; the first kind that a question has decides, and "hybrid" is for all others.
_WORDS_OF_STRATEGY = {
    "graph": re.compile(r"\b(relat(ed|es?|ions?\w*)|compar\w+|differ\w*|versus|vs|as opposed to)\b", re.IGNORECASE),
    "hierarchical": re.compile(r"\b(overview|summar\w+|whole|entire|section|chapter)\b", re.IGNORECASE),
}
# Where to look when validation asks for another route: after hybrid with what stands around, else by hybrid.
_OTHER_ROUTE = {"hybrid": "hierarchical"}
_SPLIT = re.compile(r"\?\s+|;\s+|,?\s+and\s+(?=how\b|what\b|when\b|why\b|which\b|where\b)", re.IGNORECASE)
_COMPARED = re.compile(
    r"(?:how\s+do(?:es)?|difference\s+between|compare)\s+(?P<a>.+?)\s+(?:differ\w*\s+from|and|with|to|versus|vs\.?)\s+(?P<b>.+?)[?.]*$",
    re.IGNORECASE,
)
MAX_TASKS = 3
MAX_CORRECTIONS = 1


def role_of(conversation: Conversation) -> str:
    """Return the role that a request is for: "supervisor", one of `ROLES`, a role of another system, or "assistant"."""
    prompt = conversation.system_prompt
    for phrase, role in ROLE_OF_PHRASE.items():
        if phrase in prompt:
            return role
    if any(name.startswith(HANDOFF_PREFIX) for name in conversation.tools):
        return "supervisor"
    for role, (tool, parameter) in _TOOL_OF_ROLE.items():
        if parameter in (conversation.tools.get(tool, {}).get("properties") or {}):
            return role
    if conversation.tools or conversation.output_schema is not None:
        return "assistant"
    # Another system has planners and routers too, whose prompts say what theirs are to answer.
    mentioned = [(prompt.lower().find(role), role) for role in ROLES] if _OWN_SYSTEM in prompt else []
    return min(((at, role) for at, role in mentioned if at >= 0), default=(0, "assistant"))[1]


def reply_to(conversation: Conversation) -> Reply:
    """Return the model's reply; the same request gets the same reply."""
    return REPLIES[role_of(conversation)](conversation)


def strategy_for(question: str, offered: Sequence[str]) -> str:
    """Choose a strategy of those on offer to search for a question, by its words alone.

    graph: what is related, compared or different. hierarchical: an overview, a whole section. hybrid: everything else.
    The first of these that fits and is on offer; where "hybrid" is not on offer, the first that is.
    """
    fitting = [strategy for strategy, words in _WORDS_OF_STRATEGY.items() if words.search(question)]
    return next((strategy for strategy in (*fitting, "hybrid") if strategy in offered), offered[0])


def _router(conversation: Conversation) -> Reply:
    question = conversation.task
    strategy = strategy_for(question, _options_of(conversation, "choose_route", "strategy") or ("hybrid",))
    complexity = "complex" if _COMPLEX.search(question) else "simple"
    return Reply(tool_calls=(ToolCall("choose_route", {"strategy": strategy, "complexity": complexity}),))


def _router_engine(conversation: Conversation) -> Reply:
    engines = _options_of(conversation, "select_engine", "engine") or ("hybrid",)
    return Reply(tool_calls=(ToolCall("select_engine", {"engine": strategy_for(conversation.task, engines)}),))


def _options_of(conversation: Conversation, tool: str, parameter: str) -> tuple[str, ...]:
    schema: Mapping[str, Any] = conversation.tools.get(tool, {}).get("properties", {}).get(parameter, {})
    return tuple(schema.get("enum", ()))


def _planner(conversation: Conversation) -> Reply:
    return Reply(tool_calls=(ToolCall("make_plan", {"tasks": sub_questions(conversation.task)}),))


def sub_questions(question: str) -> list[str]:
    """Split a question into parts that can be looked up alone, at most three; the question itself if it has none."""
    compared = _COMPARED.search(question)
    parts = [compared["a"], compared["b"]] if compared else _SPLIT.split(question)
    parts = [part.strip(" ?.,") for part in parts if len(part.strip(" ?.,")) > 2]
    return parts[:MAX_TASKS] if len(parts) > 1 else [question]


def _retrieval(conversation: Conversation) -> Reply:
    if "retrieve_documents" not in conversation.tools:
        return Reply("There is no search tool to find documents with.")
    offered = _options_of(conversation, "retrieve_documents", "strategy") or ("hybrid",)
    route = conversation.latest_report("strategy") or {}
    strategy = str(route.get("strategy", "hybrid"))
    verdict = conversation.latest_report("verdict")
    if verdict is not None and verdict.get("target") == "retrieval":
        other = _OTHER_ROUTE.get(strategy, "hybrid")
        strategy = other if other in offered else next((name for name in offered if name != strategy), strategy)
    if strategy not in offered:
        strategy = offered[0]
    return Reply(tool_calls=(ToolCall("retrieve_documents", {"query": conversation.task, "strategy": strategy}),))


def _synthesis(conversation: Conversation) -> Reply:
    return Reply(extract_answer(conversation.question, conversation.documents()))


def _validation(conversation: Conversation) -> Reply:
    answer = conversation.agent_text("synthesis") or _last_answer(conversation)
    documents = conversation.documents()
    if answer == NOT_FOUND or not answer:
        verdict: dict[str, Any] = {"verdict": "correct", "target": "retrieval", "score": 0.0, "unsupported": 1}
    else:
        failed = unsupported_statements(answer, documents)
        statements = max(1, answer.count("["))
        score = round(max(0.0, 1 - len(failed) / statements), 3)
        verdict = {"verdict": "correct" if failed else "accept", "target": "synthesis" if failed else ""}
        verdict |= {"score": score, "unsupported": len(failed)}
    return Reply(tool_calls=(ToolCall("report_validation", verdict),))


def _last_answer(conversation: Conversation) -> str:
    return next(
        (
            str(m["content"])
            for m in reversed(conversation.messages)
            if m.get("role") == "assistant" and m.get("content")
        ),
        "",
    )


def _supervisor(conversation: Conversation) -> Reply:
    own = calls_of_own_tools(conversation)
    if own:
        return Reply(tool_calls=own)
    agents = [name.removeprefix(HANDOFF_PREFIX) for name in conversation.tools if name.startswith(HANDOFF_PREFIX)]
    if not agents:
        return end_of_supervision(conversation) if conversation.agent_text("synthesis") else _synthesis(conversation)
    rounds = conversation.handoff_rounds()
    upcoming = _next_agent(conversation, agents, rounds)
    if upcoming is None:
        return end_of_supervision(conversation)
    tasks = _tasks_for(conversation, upcoming)
    calls = tuple(ToolCall(HANDOFF_PREFIX + upcoming, {"task": task} if task else {}) for task in tasks)
    return Reply(tool_calls=calls)


def _next_agent(conversation: Conversation, agents: list[str], rounds: list[list[str]]) -> str | None:
    """Return the next agent in the order of the roles; after validation, the one that its verdict asks for."""
    visited = [agents_of_round[0] for agents_of_round in rounds]
    by_role = {role: agent for role in ROLES for agent in reversed(agents) if role in agent}
    if not by_role:
        return next((agent for agent in agents if agent not in visited), None)
    last_role = next((role for role, agent in by_role.items() if visited and agent == visited[-1]), None)
    if last_role == "validation":
        verdict = conversation.latest_report("verdict") or {"verdict": "accept"}
        if verdict["verdict"] == "accept" or visited.count(by_role["validation"]) > MAX_CORRECTIONS:
            return None
        return by_role.get(str(verdict.get("target"))) or by_role.get("synthesis")
    upcoming = ROLES[ROLES.index(last_role) + 1 :] if last_role else ROLES
    for role in upcoming:
        if role in by_role and (role != "planner" or _is_complex(conversation)):
            return by_role[role]
    return None


def _is_complex(conversation: Conversation) -> bool:
    route = conversation.latest_report("complexity")
    if route is not None:
        return bool(route["complexity"] == "complex")
    return "complex" in conversation.agent_text("router").lower()


def _tasks_for(conversation: Conversation, agent: str) -> list[str]:
    """Return one task for each part of the plan if the agent searches, so that searches run side by side."""
    tasks = (conversation.latest_report("tasks") or {}).get("tasks")
    takes_task = "task" in conversation.tools[HANDOFF_PREFIX + agent].get("properties", {})
    if "retrieval" not in agent or not takes_task or not isinstance(tasks, list) or len(tasks) < 2:
        return [""]
    return [str(task) for task in tasks[:MAX_TASKS]]


def end_of_supervision(conversation: Conversation) -> Reply:
    """Return the supervisor's last reply: what its agents have answered, else its own answer from what it knows."""
    answer = conversation.agent_text("synthesis") or _last_answer(conversation)
    verdict = conversation.latest_report("verdict")
    if verdict is not None and verdict["verdict"] != "accept":
        return Reply(f"{answer} (Validation could not confirm every statement.)")
    # Only what an agent said: a hand-over's own result may be named after the agent too.
    messages = (m for m in conversation.current_turn() if m.get("role") == "assistant")
    synthesis = next((str(m["name"]) for m in messages if "synthesis" in str(m.get("name"))), "")
    if synthesis and any(name == "forward_message" for name in conversation.tools):
        return Reply(tool_calls=(ToolCall("forward_message", {"from_agent": synthesis}),))
    if answer:
        return Reply(answer)
    # As it answers where tools are forbidden: what an agent says of its results does not depend on what it is offered.
    return reply_of_assistant(replace(conversation, tools={}, tool_choice="none", named_tool=""))


REPLIES: dict[str, Callable[[Conversation], Reply]] = {
    "supervisor": _supervisor,
    "router": _router,
    "router_engine": _router_engine,
    "planner": _planner,
    "retrieval": _retrieval,
    "synthesis": _synthesis,
    "validation": _validation,
    "assistant": reply_of_assistant,
}
