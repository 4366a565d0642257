"""Late work of runs against a played profile is that of the real server whose profile it is."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from flat_compare import compare_by
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState
from own_runs import graph_of
from served_here import Here
from service_doors import always

from benchmarks.tiny_server import MODULES, TinyServer
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.probe import Target
from docmind_lab.experiments.probe.probe_bench import Bench
from docmind_lab.experiments.probe.truth import Counters, LabLog, Look, truth_of
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.scripted_model import Reply
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

TIMEOUT_S, ANSWER_S, REPEATS = 2.3, 5.0, 3
# A token takes the longer the more there are before it. After a long prompt it takes nearly as long at the end.
WORDS = 600
LETTERS = ("A", "B", "C")
# Answers of one length, and a prompt that is read each time.
ALWAYS = {"ignore_eos": True, "cache_prompt": False}
Late = tuple[float, float]
"""Tokens and seconds of the server after the deadline of a run."""
Speed = tuple[float, float]
"""Seconds of the prompt, and of each token, in a run."""


def asking(base_url: str, model: str, max_tokens: int, look: Callable[[], object] = int) -> Any:
    """One call to a model, in sync and in async nodes. look: called before it."""
    limits = {"max_tokens": max_tokens, "max_retries": 0, "extra_body": ALWAYS}
    chat: Any = ChatOpenAI(base_url=base_url, api_key="unused", model=model, **limits)

    def call(state: MessagesState) -> dict[str, Any]:
        look()
        return {"messages": [chat.invoke(state["messages"])]}

    async def acall(state: MessagesState) -> dict[str, Any]:
        await asyncio.to_thread(look)
        return {"messages": [await chat.ainvoke(state["messages"])]}

    return graph_of(schema=MessagesState, model=RunnableLambda(call, acall))


def late_work(graph: Any, letter: str, measured: Callable[[Any], Late]) -> Late:
    """Late work of one run. measured: given the row of its call."""
    names = {"graph": graph, "inputs": ["go on " * (WORDS // 2)], "services": "own"}
    study = compare_by(**names, decision_timeout_s=TIMEOUT_S, runs=1, alternatives=letter, clock="wall")
    # To look is a call too, before that of the model.
    (call,) = study.calls[study.calls["seen_from"] == "client"].nlargest(1, "started_at_s").itertuples()
    return measured(call)


def of_counters(looks: list[Look], truth: Counters, speeds: list[Speed]) -> Callable[[Any], Late]:
    """Late work by what the server has counted; it is waited for without looking, which would change it.

    looks: what it said before each call, that of the measured run last: a comparison on the wall clock begins with one
    that is not measured. speeds: gets how fast the server was.
    """

    def measured(call: Any) -> Late:
        time.sleep(ANSWER_S)
        before, after = looks[-1], truth.look()
        if before.busy or after.busy:
            pytest.skip("the server needed longer for its answer than an idle machine does, so its runs overlapped")
        tokens, generating_s = after.tokens - before.tokens, after.generating_s - before.generating_s  # type: ignore[operator]
        begun_s = call.started_at_s + after.prompt_s - before.prompt_s  # type: ignore[operator]
        late_s = begun_s + generating_s - TIMEOUT_S
        speeds.append((after.prompt_s - before.prompt_s, generating_s / tokens))  # type: ignore[operator]
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


def played(letter: str, speed: Speed, max_tokens: int) -> Late:
    """Late work of a run against the lab's service, as fast as the real server was and with its behaviour."""
    first_s, token_s = speed
    profile = LatencyProfile("as measured", "", "a test", always(first_s), always(token_s), always(0.0), slots=1)
    model = OpenAIService(profile, model="tiny", script=lambda conversation: Reply(text="go " * max_tokens))
    behaviour = ServerBehaviour.named("llama-cpp-2026.10")
    door = WallDoor(llm=model, vectors=VectorService(profile), slots=1, behaviour=behaviour)
    with contextlib.closing(Here(door)) as here:
        return late_work(asking(here.addresses.openai_base_url, "tiny", max_tokens), letter, of_log(here))


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.skipif(any(importlib.util.find_spec(name) is None for name in MODULES), reason="no extra live")
def test_late_tokens_and_seconds_are_those_of_the_real_server_within_a_tenth() -> None:
    """Each run is played as fast as the server was in it: what else a machine does changes the speed, not the end."""
    ratios: dict[str, list[Late]] = {letter: [] for letter in LETTERS}
    with TinyServer() as server:
        target = Target(server.base_url, "tiny", extra=ALWAYS)
        truth = truth_of(target)
        assert not isinstance(truth, LabLog | None)
        bench = Bench(target, truth, most_calls=10)
        first_s, few_s = bench.whole_s(WORDS, 1), bench.whole_s(WORDS, 100)
        max_tokens = int((ANSWER_S - first_s) / ((few_s - first_s) / 99))
        looks: list[Look] = []
        speeds: list[Speed] = []
        graph = asking(server.base_url, "tiny", max_tokens, lambda: looks.append(truth.look()))
        for _ in range(REPEATS):
            for letter in LETTERS:
                real = late_work(graph, letter, of_counters(looks, truth, speeds))
                as_played = played(letter, speeds[-1], max_tokens)
                ratios[letter].append((as_played[0] / real[0], as_played[1] / real[1]))
    for letter, found in ratios.items():
        for number, what in enumerate(("tokens", "seconds")):
            median = statistics.median(ratio[number] for ratio in found)
            assert median == pytest.approx(1.0, abs=0.1), (letter, what, found)
