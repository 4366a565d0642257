"""A replay without texts: a graph that finds no structure in simulated texts is refused before the first run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from flat_compare import compare_by
from own_runs import State, graph_of
from stub_server import StubConnection, StubRequest, StubServer

from docmind_lab.core.errors import ConfigurationError

pytestmark = pytest.mark.wall


def reply(request: StubRequest, connection: StubConnection) -> None:
    message = {"role": "assistant", "content": '{"verdict": "yes"}'}
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.send(head.encode() + body)


def recorded(stub: Callable[..., StubServer], folder: Path, *, with_text: bool, parses: bool = True) -> dict[str, Any]:
    """Record one run of a graph that takes the model's text apart; returns what names the graph and its input."""
    address = f"http://127.0.0.1:{stub(reply).port}/v1/chat/completions"

    def judge(state: State) -> State:
        asked = {"model": "any", "messages": [{"role": "user", "content": state["question"]}]}
        text = httpx.post(address, json=asked, timeout=9).json()["choices"][0]["message"]["content"]
        return {"answer": json.loads(text)["verdict"] if parses else text}

    named: dict[str, Any] = {"graph": graph_of(judge), "inputs": [{"question": "a"}]}
    study = compare_by(
        **named,
        runs=1,
        alternatives="A",
        decision_timeout_s=5,
        services="own",
        clock="wall",
        record=folder,
        record_text=with_text,
    )
    assert set(study.runs["outcome"]) == {"answered"}
    return named


def test_a_graph_that_parses_what_its_model_says_is_refused_with_the_remedy(
    stub: Callable[..., StubServer], tmp_path: Path
) -> None:
    named = recorded(stub, tmp_path / "recording", with_text=False)
    said = r"has no texts, and on simulated ones the graph fails with JSONDecodeError in node judge.*--record-text"
    with pytest.raises(ConfigurationError, match=said):
        compare_by(**named, replay=tmp_path / "recording")


@pytest.mark.full
def test_with_texts_it_is_replayed(stub: Callable[..., StubServer], tmp_path: Path) -> None:
    named = recorded(stub, tmp_path / "recording", with_text=True)
    assert set(compare_by(**named, replay=tmp_path / "recording").runs["outcome"]) == {"answered"}


def test_a_graph_that_takes_any_text_is_replayed_without_texts(stub: Callable[..., StubServer], tmp_path: Path) -> None:
    named = recorded(stub, tmp_path / "recording", with_text=False, parses=False)
    assert set(compare_by(**named, replay=tmp_path / "recording").runs["outcome"]) == {"answered"}
