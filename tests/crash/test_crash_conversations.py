"""The rules by which providers refuse a conversation, in their own words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planned_replies import json_of

from docmind_lab.services.conversation_rules import refusal_of
from docmind_lab.services.dialects.anthropic_messages import AnthropicMessages
from docmind_lab.services.dialects.dialect_exchange import Route
from docmind_lab.services.dialects.gemini import Gemini
from docmind_lab.services.dialects.ollama import Ollama
from docmind_lab.services.dialects.openai_chat import OpenAIChat
from docmind_lab.services.dialects.openai_responses import OpenAIResponses
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Headers, ServiceRequest
from docmind_lab.statistics.latency.profile import LatencyProfile

CALL = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
QUESTION = {"role": "user", "content": "Hello"}


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
DONE = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]}
TWICE = {"role": "user", "content": [*DONE["content"], *DONE["content"]]}
CALLED, OUTPUT = {"type": "function_call", "call_id": "c"}, {"type": "function_call_output", "call_id": "c"}
ASKS, ANSWERS = {"parts": [{"functionCall": {}}]}, {"parts": [{"functionResponse": {}}]}
TWO_ANSWERS = {"parts": [*ANSWERS["parts"], *ANSWERS["parts"]]}
DIALECTS = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "anthropic_messages": AnthropicMessages(),
    "gemini": Gemini(),
    "ollama": Ollama(),
}
KEYS = {"openai_responses": "input", "gemini": "contents"}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


@pytest.mark.parametrize(
    ("dialect", "messages", "words"),
    [
        # Each result once, and at once.
        ("openai_chat", [QUESTION, CALL, result("a"), QUESTION], ""),
        ("openai_chat", [QUESTION, CALL, result("a"), CALL, result("a")], ""),
        ("openai_chat", [QUESTION, CALL], "did not have response messages: a"),
        ("openai_chat", [QUESTION, CALL, QUESTION, result("a")], "did not have response messages: a"),
        ("openai_chat", [QUESTION, result("a")], "must be a response to a preceeding message"),
        ("openai_chat", [QUESTION, CALL, result("b")], "must be a response to a preceeding message"),
        ("openai_chat", [QUESTION, CALL, result("a"), result("a")], "Duplicate value for 'tool_call_id' of 'a'"),
        # In the next message.
        ("anthropic_messages", [QUESTION, USE, DONE], ""),
        (
            "anthropic_messages",
            [QUESTION, USE, QUESTION],
            "without `tool_result` blocks immediately after: t.",
        ),
        ("anthropic_messages", [QUESTION, DONE], "unexpected `tool_use_id`"),
        ("anthropic_messages", [QUESTION, USE, TWICE], "must have a single result"),
        ("openai_responses", [CALLED, OUTPUT], ""),
        # Wherever it stands.
        ("openai_responses", [CALLED, QUESTION, OUTPUT, OUTPUT], ""),
        ("openai_responses", [CALLED], "No tool output found for function call c."),
        ("openai_responses", [OUTPUT], "No tool call found"),
        ("gemini", [ASKS, ANSWERS], ""),
        ("gemini", [ASKS, QUESTION], "number of function response parts"),
        ("gemini", [ASKS, TWO_ANSWERS], "number of function response parts"),
        ("ollama", [QUESTION, CALL], ""),
    ],
)
def test_each_dialect_refuses_a_conversation_by_its_own_rules_and_words(
    dialect: str, messages: list[Any], words: str
) -> None:
    chat = DIALECTS[dialect].chat(Route("generate"), {KEYS.get(dialect, "messages"): messages})
    refusal = str(refusal_of(chat, dialect) or "")
    assert words in refusal
    assert bool(words) == bool(refusal)


@pytest.mark.parametrize(("checks", "status"), [(False, 200), (True, 400)])
def test_only_a_crash_test_has_the_simulated_model_refuse_a_conversation(checks: bool, status: int) -> None:
    service = OpenAIService(LatencyProfile.named("typical"), checks_conversation=checks)
    body = b'{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}]}'
    plan = service.plan(ServiceRequest("POST", "/v1/chat/completions", body=body))
    head = next(step for step in plan.steps if isinstance(step, Headers))
    assert head.status == status


def test_a_call_of_an_earlier_response_needs_its_result_too() -> None:
    service = OpenAIService(LatencyProfile.named("typical"), checks_conversation=True)

    def asked(**body: Any) -> Any:
        return json_of(service.plan(ServiceRequest("POST", "/v1/responses", body=json.dumps(body).encode())))

    first = asked(input="Hello", tools=[{"type": "function", "name": "f", "parameters": {}}])
    call_id = first["output"][0]["call_id"]
    refused = asked(input="Go on.", previous_response_id=first["id"])
    assert refused["error"]["message"] == f"No tool output found for function call {call_id}."
    output = {"type": "function_call_output", "call_id": call_id, "output": "done"}
    assert asked(input=[output], previous_response_id=first["id"])["status"] == "completed"
