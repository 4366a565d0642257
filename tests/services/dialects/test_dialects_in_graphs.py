"""A graph whose nodes speak to other providers is answered in virtual time as over sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ollama
import own_runs
import pytest
from dialect_clients import QUESTION, gemini
from langchain_anthropic import ChatAnthropic
from langchain_openai import AzureChatOpenAI, ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import MessagesState
from own_runs import simulated

from docmind_lab.experiments.measurement.measured_run import MeasuredRun


def _langchain(make: Callable[[], Any]) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [make().invoke(state["messages"])]}

    return node


def _gemini(state: MessagesState) -> dict[str, Any]:
    with gemini("https://generativelanguage.googleapis.com") as client:
        text = client.models.generate_content(
            model="gemini-2.5-flash", contents=str(state["messages"][-1].content)
        ).text
    return {"messages": [("assistant", text)]}


def _ollama(state: MessagesState) -> dict[str, Any]:
    asked = [{"role": "user", "content": str(state["messages"][-1].content)}]
    with ollama.Client() as client:
        parts = list(client.chat(model="llama3.2", messages=asked, stream=True))
    return {"messages": [("assistant", "".join(part.message.content or "" for part in parts))]}


def _azure() -> AzureChatOpenAI:
    # Without a name of the model it sends null for it.
    return AzureChatOpenAI(
        azure_endpoint="https://me.openai.azure.com", azure_deployment="d", api_version="2024-10-21", api_key="unused"
    )


NODES: dict[str, Any] = {
    "responses": _langchain(lambda: ChatOpenAI(model="gpt-5", api_key="unused", use_responses_api=True)),
    "anthropic": _langchain(lambda: ChatAnthropic(model="some-claude", api_key="unused")),
    "azure": _langchain(_azure),
    "gemini": _gemini,
    "ollama": _ollama,
}


def graph_of(node: Any) -> Any:
    return own_runs.graph_of(schema=MessagesState, writer=node)


def server_row(measured: MeasuredRun) -> tuple[Any, ...]:
    (call,) = [call for call in measured.calls if call.seen_from == "server"]
    return call.kind, call.role, call.input_tokens, call.output_tokens


@pytest.mark.parametrize("node", NODES)
def test_a_node_is_answered_and_its_call_is_seen_from_both_sides(node: str) -> None:
    (measured,) = simulated(graph_of(NODES[node]), alternatives="A", decision_timeout_s=60.0, given=QUESTION)
    assert measured.run.outcome == "answered"
    assert measured.run.llm_calls == 1
    assert server_row(measured) == ("llm", "writer", 9, 9)


@pytest.mark.parametrize("node", NODES)
def test_a_hang_is_cut_at_the_deadline_whatever_the_dialect(node: str) -> None:
    (measured,) = simulated(
        graph_of(NODES[node]), alternatives="A", decision_timeout_s=5.0, given=QUESTION, faults="hang:*"
    )
    assert (measured.run.outcome, measured.run.returned_at_s) == ("timed_out", pytest.approx(5.0, abs=0.005))
    assert measured.run.quiescent_at_s == pytest.approx(5.0, abs=0.005)


def test_embeddings_are_rows_of_retrieval() -> None:
    def embed(state: MessagesState) -> dict[str, Any]:
        # Counting tokens would download a tokenizer's data first.
        embeddings = OpenAIEmbeddings(model="text-embedding-3-small", api_key="u", check_embedding_ctx_length=False)
        assert [len(vector) for vector in embeddings.embed_documents(["a", "b"])] == [1536, 1536]
        return {}

    (measured,) = simulated(graph_of(embed), alternatives="A", decision_timeout_s=60.0, given=QUESTION)
    assert measured.run.outcome == "answered"
    assert (measured.run.llm_calls, measured.run.retrieval_calls) == (0, 1)
    assert server_row(measured)[:2] == ("retrieval", "writer")
