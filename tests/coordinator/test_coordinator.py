"""The coordinator on the real stack, over sockets: ADR-011's interface, ADR-056's budget."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from often import often

from docmind_lab.alternatives import ALTERNATIVES, StopFlag
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

pytestmark = pytest.mark.wall

QUESTION = "What does a hard timeout leave running?"
Made = Callable[..., MultiAgentCoordinator]
# Far above the milliseconds of an alternative that holds on a busy machine, far below the seconds of one that does not.
HELD_S = 0.5


def conversation_of(user_id: str = "local") -> RunnableConfig:
    """Where a checkpointer has the conversation "t" of a user."""
    return {"configurable": {"thread_id": f"{user_id}/t"}}


def messages_of(made: MultiAgentCoordinator, user_id: str = "local") -> list[AnyMessage]:
    messages: list[AnyMessage] = made._graph.get_state(conversation_of(user_id)).values.get("messages", [])
    return messages


@pytest.mark.parametrize("alternative", often(ALTERNATIVES, "cooperative", "native"))
def test_an_answer_has_content_sources_a_score_decisions_and_metrics(alternative: str, coordinator: Made) -> None:
    response = coordinator(alternative=alternative).process_query(QUESTION)
    assert response.content
    assert {source["id"] for source in response.sources} >= {response.content.split("[")[1].split("]")[0]}
    assert response.metadata["outcome"] == "answered"
    assert "reason" not in response.metadata
    assert response.validation_score == 1.0
    assert [decision["agent"] for decision in response.agent_decisions] == ["router_agent", "validation_agent"]
    metrics = response.optimization_metrics
    assert metrics["llm_calls"] >= 8
    assert metrics["retrieval_calls"] >= 1
    assert metrics["output_tokens"] > 0
    assert 0 < metrics["coordination_overhead_s"] < response.processing_time
    assert not response.fallback_used


@pytest.mark.parametrize("alternative", often(["A", "C", "E", "F"], "A", "F"))
def test_a_timeout_says_so_and_keeps_the_documents(alternative: str, coordinator: Made) -> None:
    response = coordinator("hang", timeout_s=2.0, alternative=alternative).process_query(QUESTION)
    assert response.timed_out
    assert response.metadata["reason"] == "timeout"
    assert response.metadata["cancel_reason"] in ("deadline", "cancelled", "node_timeout", "step_timeout")
    assert response.metadata["overrun_s"] < HELD_S
    assert response.sources
    assert "2 s" in response.content
    assert not response.fallback_used


def test_b_says_that_it_timed_out_and_has_nothing_to_show(coordinator: Made) -> None:
    response = coordinator("hang", timeout_s=1.0, alternative="B").process_query(QUESTION)
    assert response.metadata["cancel_reason"] == "hard_timeout"
    assert response.sources == ()


def test_the_budget_starts_before_set_up(coordinator: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made = coordinator(timeout_s=0.3)
    prepare = made.system.for_run

    def slow(*arguments: Any, **options: Any) -> Any:
        threading.Event().wait(0.4)
        return prepare(*arguments, **options)

    monkeypatch.setattr(made.system, "for_run", slow)
    response = made.process_query(QUESTION)
    assert response.metadata["cancel_reason"] in ("deadline", "budget_refused")
    assert response.optimization_metrics["llm_calls"] == 0


def test_a_conversation_goes_on_in_its_thread_and_is_its_users_alone(coordinator: Made) -> None:
    made = coordinator()
    first = made.process_query(QUESTION, thread_id="t")
    second = made.process_query("What is done when an injected engine fails?", thread_id="t")
    assert first.content != second.content
    assert "engine" in second.content
    said = [m.text for m in messages_of(made) if m.type == "human"]
    assert said == [QUESTION, "What is done when an injected engine fails?"]
    assert messages_of(made, "grace") == []


def test_the_fence_keeps_an_abandoned_run_out_of_the_next_question(coordinator: Made) -> None:
    """B leaves its run behind after 0.3 s; a run takes about 0.6 s, most of it in the background then."""
    saver = InMemorySaver()
    abandoning = coordinator(timeout_s=0.15, alternative="B", checkpointer=saver)
    first = abandoning.process_query(QUESTION, thread_id="t")
    assert first.timed_out
    conversation = conversation_of()
    before = {each.config["configurable"]["checkpoint_id"] for each in saver.list(conversation)}
    answering = coordinator(checkpointer=saver)
    second = answering.process_query("What is done when an injected engine fails?", thread_id="t")
    assert "engine" in second.content
    messages = messages_of(answering)
    after_second = messages[[m.text for m in messages].index("What is done when an injected engine fails?") :]
    assert not any("hard timeout" in m.text for m in after_second if m.type == "ai")
    added = [each for each in saver.list(conversation) if each.config["configurable"]["checkpoint_id"] not in before]
    # One question, one line of checkpoints: one that the run left behind had added would be a second way on.
    parents = [each.parent_config["configurable"]["checkpoint_id"] for each in added if each.parent_config]
    assert len(set(parents)) == len(parents) > 0


def test_a_second_question_on_a_busy_thread_waits_within_its_own_budget(coordinator: Made) -> None:
    made = coordinator("hang", timeout_s=1.0)
    # The first holds the thread until its deadline; the second begins later and has the rest of its own.
    first = threading.Thread(target=made.process_query, args=(QUESTION,), kwargs={"thread_id": "t"})
    first.start()
    response = made.process_query(QUESTION, thread_id="t")
    first.join()
    assert response.timed_out
    assert response.metadata["overrun_s"] < HELD_S


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_question_is_refused_by_name(query: str, coordinator: Made) -> None:
    made = coordinator()
    with pytest.raises(ConfigurationError, match="query must be a question"):
        made.process_query(query)


def test_a_propagating_alternative_with_propagation_off_is_refused() -> None:
    off = Settings(agents={"enable_deadline_propagation": False})
    for name in ("A", "E"):
        with pytest.raises(ConfigurationError, match="enable_deadline_propagation=false"):
            MultiAgentCoordinator(off, alternative=name)


def test_with_propagation_off_the_default_is_a_look_between_steps_and_no_call_has_a_cap(coordinator: Made) -> None:
    made = coordinator(agents={"enable_deadline_propagation": False})
    assert made.alternative == StopFlag()
    assert made.process_query(QUESTION).metadata["outcome"] == "answered"


@pytest.mark.full
def test_without_endpoints_the_simulated_services_are_started_and_stopped_again() -> None:
    with MultiAgentCoordinator() as made:
        response = made.process_query(QUESTION)
        address = made.system.surroundings.addresses
    assert response.metadata["outcome"] == "answered"
    with pytest.raises(OSError, match="refused"):
        _connect(address.qdrant_url)


def _connect(url: str) -> None:
    import socket

    host, port = url.removeprefix("http://").split(":")
    socket.create_connection((host, int(port)), timeout=1).close()


def test_after_its_end_a_coordinator_says_that_it_is_closed(coordinator: Made) -> None:
    closed = coordinator()
    closed.close()
    with pytest.raises(ConfigurationError, match="this coordinator is closed; make a new"):
        closed.process_query(QUESTION)
