"""A model and a vector store of the user's own, by settings alone: reached, admitted, and honest in the tables."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from chat_replies import reply
from stub_server import StubConnection, StubRequest, StubServer

import docmind_lab as dl
from docmind_lab.core.errors import ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network.live_endpoints import reason_of
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

pytestmark = pytest.mark.wall

QUESTION = "What does a hard timeout leave running?"


def settings_for(live: ServiceAddresses) -> Settings:
    return Settings(llm={"base_url": live.openai_base_url}, database={"qdrant_url": live.qdrant_url})


def test_compare_on_live_endpoints_measures_the_client_and_leaves_out_what_only_a_servers_log_can_tell(
    live: ServiceAddresses,
) -> None:
    study = dl.compare(decision_timeout_s=20.0, alternatives="A", world=dl.Live(settings=settings_for(live)), runs=1)
    assert set(study.runs["outcome"]) == {"answered"}
    assert set(study.calls["seen_from"]) == {"client"}
    for column in ("calls_after_deadline", "busy_after_deadline_s", "tokens_after_deadline"):
        assert study.runs[column].isna().all(), column
    assert (study.runs["llm_calls"] > 0).all()
    assert list(study.runs["latency_profile"].unique()) == [""]
    assert "cannot be known without their log" in study.report()


def test_one_live_endpoint_is_enough_and_the_other_is_simulated(live: ServiceAddresses) -> None:
    with MultiAgentCoordinator(Settings(llm={"base_url": live.openai_base_url})) as coordinator:
        assert coordinator.system.surroundings.addresses.qdrant_url != live.qdrant_url
        assert coordinator.process_query(QUESTION).metadata["outcome"] == "answered"


@pytest.fixture
def redirecting(stub: Callable[..., StubServer]) -> str:
    """The address of a server that sends every request on to another machine."""

    def redirect(request: StubRequest, connection: StubConnection) -> None:
        connection.send(reply(b"", 307, f"location: http://elsewhere.example{request.path}\r\n"))

    return stub(redirect).url


@pytest.mark.parametrize("alternative", ["A", "B", "E"])
def test_a_redirect_off_loopback_is_refused_and_the_answer_is_extracted_instead(
    alternative: str, redirecting: str, live: ServiceAddresses
) -> None:
    settings = Settings(llm={"base_url": f"{redirecting}/v1"}, database={"qdrant_url": live.qdrant_url})
    with MultiAgentCoordinator(settings, alternative=alternative) as coordinator:
        response = coordinator.process_query(QUESTION)
    assert response.metadata["outcome"] == "failed"
    assert response.fallback_used


def test_a_vector_store_that_redirects_is_not_followed_and_a_dead_one_is_named_with_the_remedy(
    redirecting: str, live: ServiceAddresses
) -> None:
    model = {"base_url": live.openai_base_url}
    with pytest.raises(ServiceError, match=rf"vector store at {redirecting} answered HTTP 307"):
        MultiAgentCoordinator(Settings(llm=model, database={"qdrant_url": redirecting}))
    with pytest.raises(ServiceError, match=r"vector store at http://127\.0\.0\.1:9 .*DOCMIND_DATABASE__QDRANT_URL"):
        MultiAgentCoordinator(Settings(llm=model, database={"qdrant_url": "http://127.0.0.1:9"}))


def test_a_dead_model_endpoint_costs_the_agents_and_not_the_documents(live: ServiceAddresses) -> None:
    settings = Settings(llm={"base_url": "http://127.0.0.1:9/v1"}, database={"qdrant_url": live.qdrant_url})
    with MultiAgentCoordinator(settings) as coordinator:
        response = coordinator.process_query(QUESTION)
    assert response.fallback_used
    assert response.metadata["error_type"]
    assert math.isnan(response.optimization_metrics["output_tokens"])


def test_compare_asks_a_dead_endpoint_before_it_measures_anything() -> None:
    with pytest.raises(ServiceError, match=r"model endpoint .*DOCMIND_LLM__BASE_URL"):
        dl.compare(
            decision_timeout_s=1.0,
            alternatives="A",
            world=dl.Live(settings=Settings(llm={"base_url": "http://127.0.0.1:9/v1"})),
            runs=1,
        )


@pytest.mark.parametrize(
    ("error", "words"), [(OSError("at http://ada:secret@host/"), "at http://host/"), (ValueError(), "ValueError")]
)
def test_why_an_endpoint_cannot_be_reached_is_said_without_credentials(error: Exception, words: str) -> None:
    assert reason_of(error) == words
