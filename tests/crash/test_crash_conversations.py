"""The rules by which providers refuse a conversation, in their own words."""

from __future__ import annotations

from typing import Any

import pytest

from docmind_lab.services.conversation_rules import refusal_of
from docmind_lab.services.dialects import Route
from docmind_lab.services.dialects.anthropic_messages import AnthropicMessages
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Headers, ServiceRequest
from docmind_lab.statistics.latency.profile import LatencyProfile

CALL = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
QUESTION = {"role": "user", "content": "Hello"}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def words(messages: list[Any], dialect: str = "openai_chat", key: str = "messages") -> str:
    refusal = refusal_of({key: messages}, dialect)
    return "" if refusal is None else str(refusal)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([QUESTION, CALL, result("a"), QUESTION], ""),
        ([QUESTION, CALL, result("a"), CALL, result("a")], ""),
        ([QUESTION, CALL], "did not have response messages: a"),
        ([QUESTION, CALL, QUESTION, result("a")], "did not have response messages: a"),
        ([QUESTION, result("a")], "must be a response to a preceeding message"),
        ([QUESTION, CALL, result("b")], "must be a response to a preceeding message"),
        ([QUESTION, CALL, result("a"), result("a")], "Duplicate value for 'tool_call_id' of 'a'"),
    ],
)
def test_a_chat_completion_needs_each_result_once_and_at_once(messages: list[Any], said: str) -> None:
    found = words(messages)
    assert said in found if said else found == ""


def test_a_message_of_anthropic_needs_each_result_in_the_next_message() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    done = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]}
    twice = {"role": "user", "content": [*done["content"], *done["content"]]}
    for messages, said in (
        ([QUESTION, use, QUESTION], "`tool_use` ids were found without `tool_result` blocks immediately after: t."),
        ([QUESTION, done], "unexpected `tool_use_id` found in `tool_result` blocks: t."),
        ([QUESTION, use, twice], "must have a single result"),
        ([QUESTION, use, done], ""),
    ):
        chat = AnthropicMessages().chat(Route("generate"), {"messages": messages})
        found = words(chat["messages"], "anthropic_messages")
        assert said in found if said else found == ""


def test_the_other_dialects_have_rules_of_their_own() -> None:
    called, output = {"type": "function_call", "call_id": "c"}, {"type": "function_call_output", "call_id": "c"}
    assert words([called, output], "openai_responses", "input") == ""
    assert words([called], "openai_responses", "input") == "No tool output found for function call c."
    assert "No tool call found" in words([output], "openai_responses", "input")
    asks, answers = {"parts": [{"functionCall": {}}]}, {"parts": [{"functionResponse": {}}]}
    assert words([asks, answers], "gemini", "contents") == ""
    assert "number of function response parts" in words([asks, QUESTION], "gemini", "contents")
    assert words([QUESTION, CALL], "ollama") == ""


@pytest.mark.parametrize(("checks", "status"), [(False, 200), (True, 400)])
def test_only_a_crash_test_has_the_simulated_model_refuse_a_conversation(checks: bool, status: int) -> None:
    service = OpenAIService(LatencyProfile.named("typical"), checks_conversation=checks)
    body = b'{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}]}'
    plan = service.plan(ServiceRequest("POST", "/v1/chat/completions", body=body))
    head = next(step for step in plan.steps if isinstance(step, Headers))
    assert head.status == status
