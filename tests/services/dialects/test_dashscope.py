"""DashScope's own interface: what a request in it is answered, whole and as events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.services.dialects import is_answered
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest

GENERATION = "/api/v1/services/aigc/text-generation/generation"
EMBEDDING = "/api/v1/services/embeddings/text-embedding/text-embedding"
ASKED = [{"role": "user", "content": "When does the quoll hunt?"}]
LOOK_UP = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
}


def answered(path: str, body: dict[str, Any], *, stream: bool = False) -> tuple[int, str]:
    headers = {"x-dashscope-sse": "enable"} if stream else {}
    plan = OpenAIService(LatencyProfile.named("fast")).plan(
        ServiceRequest("POST", path, headers, json.dumps({"model": "qwen-turbo", **body}).encode())
    )
    (head,) = [step for step in plan.steps if isinstance(step, Headers)]
    return head.status, b"".join(step.data for step in plan.steps if isinstance(step, Chunk)).decode()


def outputs(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[5:])["output"] for line in text.splitlines() if line.startswith("data:")]


def test_an_answer_is_a_text_or_where_it_is_asked_for_a_message() -> None:
    as_text = json.loads(answered(GENERATION, {"input": {"prompt": "When does the quoll hunt?"}})[1])
    asked = {"input": {"messages": ASKED}, "parameters": {"result_format": "message"}}
    (choice,) = json.loads(answered(GENERATION, asked)[1])["output"]["choices"]
    assert as_text["output"] == {"text": choice["message"]["content"], "finish_reason": "stop"}
    assert as_text["usage"]["total_tokens"] == sum(as_text["usage"][kind] for kind in ("input_tokens", "output_tokens"))


@pytest.mark.parametrize("is_incremental", [True, False])
def test_events_have_the_text_so_far_or_what_is_new(is_incremental: bool) -> None:
    parameters = {"result_format": "message", "incremental_output": is_incremental}
    asked = {"input": {"messages": ASKED}, "parameters": parameters}
    whole = json.loads(answered(GENERATION, asked)[1])["output"]["choices"][0]["message"]["content"]
    choices = [output["choices"][0] for output in outputs(answered(GENERATION, asked, stream=True)[1])]
    texts = [choice["message"]["content"] for choice in choices]
    assert ("".join(texts) if is_incremental else texts[-1]) == whole
    assert [choice["finish_reason"] for choice in choices] == ["null"] * (len(choices) - 1) + ["stop"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_is_called_with_arguments_as_a_text(stream: bool) -> None:
    asked = {"input": {"messages": ASKED}, "parameters": {"result_format": "message", "tools": [LOOK_UP]}}
    text = answered(GENERATION, asked, stream=stream)[1]
    output = outputs(text)[-1] if stream else json.loads(text)["output"]
    (call,) = output["choices"][0]["message"]["tool_calls"]
    assert (output["choices"][0]["finish_reason"], call["function"]["name"]) == ("tool_calls", "look_up")
    assert json.loads(call["function"]["arguments"]) == {"query": ASKED[0]["content"]}


def test_texts_have_vectors_of_the_size_asked_for() -> None:
    asked = {"input": {"texts": ["ebb", "flood"]}, "parameters": {"dimension": 64}}
    found = json.loads(answered(EMBEDDING, asked)[1])["output"]["embeddings"]
    assert [(each["text_index"], len(each["embedding"])) for each in found] == [(0, 64), (1, 64)]


@pytest.mark.parametrize("body", [{}, {"input": "ebb"}, {"input": {"messages": "ebb"}}, {"input": {}, "parameters": 1}])
def test_an_error_has_a_code_and_names_the_field(body: dict[str, Any]) -> None:
    status, text = answered(GENERATION, body)
    assert (status, json.loads(text)["code"]) == (400, "InvalidParameter")
    assert "input" in json.loads(text)["message"] or "parameters" in json.loads(text)["message"]


def test_its_host_is_answered_in_a_graph_of_ones_own() -> None:
    route = is_answered("POST", f"https://dashscope.aliyuncs.com{GENERATION}")
    assert route is not None
    assert route.operation == "generate"
