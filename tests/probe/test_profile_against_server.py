"""A profile of llama.cpp's server, played by the lab's service, leaves as much late work as that server did."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph
from served_here import Here
from service_doors import always

import docmind_lab as dl
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.experiments.probe import Target
from docmind_lab.experiments.probe.bench import Bench
from docmind_lab.experiments.probe.truth import Counters, LabLog, Look, truth_of
from docmind_lab.services.behaviour import ServerBehaviour
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.scripted_model import Reply
from docmind_lab.services.tiny_server import MODULES, TinyServer
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.wall_door import WallDoor

TIMEOUT_S, ANSWER_S, REPEATS = 2.3, 5.0, 3
LETTERS = ("A", "B", "C")
Late = tuple[float, float]
"""Tokens and seconds of the server after the deadline of a run."""


def graph_of(base_url: str, model: str, max_tokens: int, look: Callable[[], object] = int) -> Any:
    """One call to a model, in sync and in async nodes. look: called before it."""
    chat = ChatOpenAI(
        base_url=base_url,
        api_key="unused",
        model=model,
        max_tokens=max_tokens,
        max_retries=0,
        extra_body={"ignore_eos": True},
    )

    def call(state: MessagesState) -> dict[str, Any]:
        look()
        return {"messages": [chat.invoke(state["messages"])]}

    async def acall(state: MessagesState) -> dict[str, Any]:
        await asyncio.to_thread(look)
        return {"messages": [await chat.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", RunnableLambda(call, acall))
    builder.set_entry_point("model")
    return builder.compile()


def late_work(graph: Any, letter: str, measured: Callable[[Any], Late]) -> Late:
    """Late work of one run. measured: given the row of its call."""
    study = dl.compare(
        TIMEOUT_S, graph=graph, inputs=["Go on."], runs=1, alternatives=letter, clock="wall", services="own"
    )
    (call,) = study.calls[study.calls["seen_from"] == "client"].itertuples()
    return measured(call)


def of_counters(looks: list[Look], truth: Counters) -> Callable[[Any], Late]:
    """Late work by what the server has counted; it is waited for without looking, which would change it.

    looks: what it said before each call, that of the measured run last: a comparison on the wall clock begins with one
    that is not measured.
    """

    def measured(call: Any) -> Late:
        time.sleep(ANSWER_S)
        before, after = looks[-1], truth.look()
        assert not before.busy
        assert not after.busy
        tokens, generating_s = after.tokens - before.tokens, after.generating_s - before.generating_s  # type: ignore[operator]
        begun_s = call.started_at_s + after.prompt_s - before.prompt_s  # type: ignore[operator]
        late_s = begun_s + generating_s - TIMEOUT_S
        return tokens * late_s / generating_s, late_s

    return measured


def of_log(here: Here) -> Callable[[Any], Late]:
    """Late work by the log of the lab's service."""

    def measured(call: Any) -> Late:
        # A client that the lab did not make does not say which run it is of.
        row = LabLog(here.addresses.log_url).rows(call.run_id, 2 * ANSWER_S)[-1]
        deadline_at_s = row.received_at - call.started_at_s + TIMEOUT_S
        late = sum(
            tokens * max(0.0, end_s - max(start_s, deadline_at_s)) / (end_s - start_s)
            for start_s, end_s, tokens in row.token_spans
        )
        return late, row.ended_at - deadline_at_s

    return measured


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in MODULES), reason="no extra live")
def test_late_tokens_and_seconds_are_those_of_the_real_server_within_a_tenth() -> None:
    real: dict[str, list[Late]] = {letter: [] for letter in LETTERS}
    played: dict[str, list[Late]] = {letter: [] for letter in LETTERS}
    with TinyServer() as server:
        target = Target(server.base_url, "tiny", extra={"ignore_eos": True})
        truth = truth_of(target)
        assert not isinstance(truth, LabLog | None)
        usual = Bench(target, truth, most_calls=100).measure_undisturbed(ANSWER_S, 3000)
        token_s = (usual.whole_s - usual.first_token_s) / usual.max_tokens
        looks: list[Look] = []
        graph = graph_of(server.base_url, "tiny", usual.max_tokens, lambda: looks.append(truth.look()))
        first_s = min(usual.idle_s) - token_s
        for _ in range(REPEATS):
            for letter in LETTERS:
                real[letter].append(late_work(graph, letter, of_counters(looks, truth)))
    profile = LatencyProfile("as measured", "", "a test", always(first_s), always(token_s), always(0.0), slots=1)
    model = OpenAIService(profile, model="tiny", script=lambda conversation: Reply(text="go " * usual.max_tokens))
    behaviour = ServerBehaviour.named("llama-cpp-2026.10")
    here = Here(WallDoor(llm=model, vectors=VectorService(profile), slots=1, behaviour=behaviour))
    try:
        graph = graph_of(here.addresses.openai_base_url, "tiny", usual.max_tokens)
        for _ in range(REPEATS):
            for letter in LETTERS:
                played[letter].append(late_work(graph, letter, of_log(here)))
    finally:
        here.close()
    for letter in LETTERS:
        for number, what in enumerate(("tokens", "seconds")):
            of_real, of_played = (
                sorted(late[number] for late in side[letter])[REPEATS // 2] for side in (real, played)
            )
            assert of_played == pytest.approx(of_real, rel=0.1), (letter, what, real[letter], played[letter])
