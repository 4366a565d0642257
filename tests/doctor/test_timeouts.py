"""`dl.timeouts`: limits by design, measured by a hang and a trickle, and what does not fit."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity
from commands_here import said
from hung_graphs import ask_tavily, chat_model, one_node
from limited_graphs import GRAPHS, Expected, node_of
from urllib3.util import Retry

import docmind_lab as dl
from docmind_lab.experiments.doctor.limits_in_force import Limit, client_of, designed, in_sequence_s
from docmind_lab.experiments.doctor.timeouts import TimeoutReport

TOLERANCE = 0.02
"""Waits of clients are drawn, up to a quarter shorter; what is not struck takes some time."""

INVERSIONS = {
    "openai in a short node": "openai gives up after 55 s × 3, the node after 20 s",
    "idle": "openai gives up after 30 s, the idle node after 6 s",
    "aiohttp with a total": "the read of aiohttp gives up after 60 s, the try after 10 s",
    "anthropic in a short run": "anthropic gives up after 30 s × 2, the run after 20 s",
    "tenacity around openai": "Retrying gives up after 16.5 s × 2, the run after 30 s",
    "RetryPolicy": "the node gives up after 4 s × 3, the run after 15 s",
    "two calls in a short step": "the node gives up after 15 s, the step after 12 s",
    "a node longer than its run": "the node gives up after 30 s, the run after 20 s",
}


@functools.cache
def report_of(expected: Expected) -> TimeoutReport:
    return dl.timeouts(dl.graph(expected.graph, [expected.asked]), expected.run_s)


def rows_of(report: TimeoutReport, level: str) -> list[Any]:
    return [row for row in report.rows if row.level == level]


@pytest.mark.parametrize("expected", GRAPHS, ids=lambda each: each.name)
def test_limits_are_as_built_and_last_as_long_as_measured(expected: Expected) -> None:
    report = report_of(expected)
    (node,) = rows_of(report, "node")
    assert max(row.designed_s for row in rows_of(report, "call")) == pytest.approx(expected.call_s)
    assert node.designed_s == pytest.approx(expected.designed_s)
    assert node.hang_s == pytest.approx(expected.hang_s, rel=TOLERANCE, abs=0.3)
    assert node.hang_requests == expected.requests
    assert node.trickle_s == pytest.approx(expected.trickle_s, rel=TOLERANCE, abs=0.3)
    found = INVERSIONS.get(expected.name)
    assert report.inversions == ((f"In node {node.node}, {found}.",) if found else ())
    assert max(map(len, report.finding().text(80).splitlines())) <= 80


def test_each_layer_of_retries_is_a_row_and_multiplies() -> None:
    model: Any = chat_model(4, tries=2).with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    report = dl.timeouts(dl.graph(node_of(lambda: model.invoke("Why?")), [{"question": "Why?"}]))
    (call,), (retry,), (read,) = (rows_of(report, level) for level in ("call", "retry", "read"))
    assert [(row.who, row.tries, row.designed_s) for row in (call, retry)] == [
        ("RunnableRetry", 3, 25.5),
        ("langchain-openai", 2, 8.5),
    ]
    assert (call.hang_requests, call.hang_s) == (6, pytest.approx(25.5, rel=TOLERANCE))
    assert (read.hang_requests, read.hang_s) == (1, pytest.approx(4.0, rel=TOLERANCE))


def asks_by_the_question(state: Any) -> dict[str, Any]:
    """Ask one model for the one question; another at its address, and outside every node, for the other."""
    if state["question"] == "Why?":
        return {"answer": chat_model(4).invoke("Why?")}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return {"answer": [pool.submit(ask_tavily, 45).result(), chat_model(50, tries=2).invoke("How?")]}


def test_every_client_of_every_input_is_a_row_and_is_struck_also_outside_every_node() -> None:
    graph = one_node(asks_by_the_question, "nur für ä")
    report = dl.timeouts(dl.graph(graph, [{"question": "Why?"}, {"question": "How?"}]), 20)
    calls, reads = rows_of(report, "call"), rows_of(report, "read")
    assert [(row.node, row.tries, row.designed_s) for row in calls] == [
        ("", 1, 45.0),
        ("nur für ä", 1, 4.0),
        ("nur für ä", 2, 100.5),
    ]
    assert [row.hang_s for row in reads] == [pytest.approx(row.seconds, rel=TOLERANCE) for row in reads]
    # Of the node is said what its clients come to only where none of them is too long by itself.
    assert report.inversions == (
        "Outside every node, httpx gives up after 45 s, the run after 20 s.",
        "In node nur für ä, langchain-openai gives up after 50 s × 2, the run after 20 s.",
    )


def test_a_loop_of_tenacity_has_the_tries_that_begin_before_it_stops() -> None:
    sent: Any = SimpleNamespace(own_s={"read": 8.0})

    def call(stop: Any) -> Limit:
        retrying, found = tenacity.Retrying(stop=stop, wait=tenacity.wait_fixed(1)), []
        for attempt in retrying:
            with attempt:
                found = client_of(sent)
        assert (found, client_of(sent)[0].tries) == (retrying(lambda: client_of(sent)), 1)
        return found[0]

    def urlopen(retries: Retry, method: str = "GET") -> Limit:
        return client_of(sent)[0]

    five, twenty_s = tenacity.stop_after_attempt(5), tenacity.stop_after_delay(20)
    stops = five | twenty_s, five & twenty_s, tenacity.stop_before_delay(18)
    assert [call(stop).tries for stop in stops] == [3, 5, 2]
    assert call(five | twenty_s).designed_s == 26.0
    for endless in (call(tenacity.stop_never), urlopen(Retry(total=None))):
        assert math.isinf(endless.designed_s)


def test_arithmetic_adds_what_follows_and_not_what_goes_side_by_side() -> None:
    assert in_sequence_s([((0.0, 1.0), 5.0), ((0.5, 2.0), 7.0), ((2.0, 3.0), 4.0)]) == 11.0
    assert in_sequence_s([]) == 0.0
    limits = [Limit("node", "node", 20.0, 2, 1.0), Limit("call", "a", tries=3, waits_s=1.5), Limit("read", "a", 5.0)]
    limits.append(Limit("connect", "a", 3.0))
    assert [limit.designed_s for limit in designed(limits)] == [2 * 16.5 + 1.0, 16.5, 5.0, 3.0]
    assert designed(limits[:1])[0].designed_s == 41.0


def test_the_command_prints_the_table_and_ends_with_an_exit_code_by_the_inversions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text('{"question": "Why?"}\n')
    words = ["doctor", "--timeouts", "--graph", "limited_graphs:httpx_in_a_loop", "--inputs", inputs]
    code, printed, _ = said(capsys, *words)
    assert code == 0
    assert "of  bounds limit tries designed hang sent trickle" in printed
    assert "no end" in printed
    code, printed, _ = said(capsys, *words, "--decision-timeout", "4", "--json")
    data = json.loads(printed)
    assert (code, data["inversions"]) == (1, ["In node only, httpx gives up after 5 s, the run after 4 s."])
    assert {"node", "level", "seconds", "tries", "designed_s", "hang_s", "trickle_s"} <= data["limits"][0].keys()
    assert "decision timeout must be" in said(capsys, *words, "--decision-timeout", "-1")[2]
    code, _, refused = said(capsys, *words, "--alternatives", "A", "--slack", "0")
    assert code == 2
    assert "--timeouts judges no alternative: leave --slack, --alternatives out" in refused


def test_the_figure_draws_each_limit_that_a_fault_is_of_with_its_tries() -> None:
    axes = dl.plots.nested_limits(report_of(GRAPHS[0]), ax=dl.plots.OFFSCREEN)
    assert [round(bar.get_width(), 1) for bar in axes.patches if bar.get_height() < 1] == [20.0, 20.0, 166.5, 55.0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["run", "node only 20 s", "  openai, call × 3", "  openai, read 55 s"]
