"""A replay without texts: a graph that finds no structure in simulated texts is refused before the first run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from flat_compare import compare_by
from often import often
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


@pytest.mark.parametrize("with_text", often([False, True], False))
def test_a_graph_that_parses_what_its_model_says_is_replayed_from_texts_alone(
    with_text: bool, stub: Callable[..., StubServer], tmp_path: Path
) -> None:
    address, parses = f"http://127.0.0.1:{stub(reply).port}/v1/chat/completions", True

    def judge(state: State) -> State:
        asked = {"model": "any", "messages": [{"role": "user", "content": state["question"]}]}
        text = httpx.post(address, json=asked, timeout=9).json()["choices"][0]["message"]["content"]
        return {"answer": json.loads(text)["verdict"] if parses else text}

    named: dict[str, Any] = {"graph": graph_of(judge), "inputs": [{"question": "a"}]}
    live: dict[str, Any] = {"services": "own", "clock": "wall", "record": tmp_path / "r", "record_text": with_text}
    study = compare_by(**named, **live, runs=1, alternatives="A", decision_timeout_s=5)
    assert set(study.runs["outcome"]) == {"answered"}
    if not with_text:
        said = r"has no texts, and on simulated ones the graph fails with JSONDecodeError in node judge.*--record-text"
        with pytest.raises(ConfigurationError, match=said):
            compare_by(**named, replay=tmp_path / "r")
        parses = False
    assert set(compare_by(**named, replay=tmp_path / "r").runs["outcome"]) == {"answered"}
