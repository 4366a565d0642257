"""FR-3: retries within the budget, then an answer extracted from documents, else a clear sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stub_server import StubConnection, StubRequest, StubServer

from docmind_lab.core.settings import Settings
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

pytestmark = pytest.mark.wall

QUESTION = "What does a hard timeout leave running?"
Made = Callable[..., MultiAgentCoordinator]


def test_when_synthesis_fails_the_answer_is_extracted_from_the_documents_found(coordinator: Made) -> None:
    response = coordinator("http_500:synthesis").process_query(QUESTION)
    assert response.fallback_used
    assert response.metadata["reason"] == "error"
    assert response.metadata["error_type"] == "OpenAIAPIError"
    cited = response.content.split("[")[1].split("]")[0]
    assert cited in {source["id"] for source in response.sources}
    # The agents had searched already; nothing is searched twice.
    assert response.optimization_metrics["retrieval_calls"] == 1


def test_when_agents_fail_before_retrieval_the_fallback_retrieves_for_real(coordinator: Made) -> None:
    response = coordinator("http_500:*").process_query(QUESTION)
    assert response.fallback_used
    assert response.sources
    assert response.optimization_metrics["retrieval_calls"] == 1
    assert "hard timeout" in response.content


def test_when_retrieval_fails_too_the_answer_says_so_and_is_no_fallback(coordinator: Made) -> None:
    response = coordinator("http_500:*", "retrieval_503").process_query(QUESTION)
    assert not response.fallback_used
    assert response.sources == ()
    assert response.content == "No answer: the agents failed (OpenAIAPIError)."


def test_a_retry_after_beyond_the_budget_fails_at_once_and_leaves_time_for_the_fallback(coordinator: Made) -> None:
    for alternative in ("A", "E"):
        response = coordinator("rate_limit=30:*", timeout_s=2.0, alternative=alternative).process_query(QUESTION)
        assert response.fallback_used
        assert response.metadata["overrun_s"] == 0.0
        assert response.processing_time < 2.0


def test_a_fault_that_passes_is_retried_within_the_budget_and_then_answered_by_the_agents(coordinator: Made) -> None:
    response = coordinator("http_500@1:synthesis").process_query(QUESTION)
    assert not response.fallback_used
    assert response.metadata["outcome"] == "answered"


def test_without_retries_the_same_fault_ends_in_the_fallback(coordinator: Made) -> None:
    response = coordinator("http_500@1:synthesis", agents={"max_retries": 0}).process_query(QUESTION)
    assert response.fallback_used


def test_an_agent_that_hands_over_for_ever_ends_in_a_typed_reason(coordinator: Made) -> None:
    response = coordinator(agents={"max_workflow_depth": 5}).process_query(QUESTION)
    assert response.metadata["cancel_reason"] == "step_limit"
    assert response.fallback_used


def test_agents_that_were_redirected_to_a_refused_host_have_failed_and_say_why(
    served: Callable[..., ServiceAddresses], stub: Callable[..., StubServer]
) -> None:
    def redirect(_: StubRequest, connection: StubConnection) -> None:
        connection.send(b"HTTP/1.1 307 -\r\nlocation: http://refused.test/v1\r\ncontent-length: 0\r\n\r\n")

    database = {"qdrant_url": served().qdrant_url}
    with MultiAgentCoordinator(Settings(llm={"base_url": f"{stub(redirect).url}/v1"}, database=database)) as asked:
        response = asked.process_query(QUESTION)
    assert response.metadata["outcome"] == "failed"
    assert response.content.startswith("No answer: the agents failed (")
    assert "refused.test is not on this machine" in response.content
