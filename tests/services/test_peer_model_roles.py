"""The parent of peers, as the scripted model plays it: decided from the request alone."""

from __future__ import annotations

import json
from typing import Any

from docmind_lab.services.scripted_model import Conversation, reply_to
from docmind_lab.services.scripted_model.extraction import NOT_FOUND
from docmind_lab.services.scripted_model.roles import role_of
from docmind_lab.workloads.peers.graph import CONCLUDE_PROMPT, DELEGATE_PROMPT

QUESTION = {"role": "user", "content": "When does the quoll hunt in the forest?"}


def tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"question": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def conversation(prompt: str, *messages: dict[str, Any], tools: tuple[str, ...] = ()) -> Conversation:
    said = [{"role": "system", "content": prompt}, QUESTION, *messages]
    return Conversation.from_request({"messages": said, "tools": [tool(name) for name in tools]})


def told(number: int, **result: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(result)}


def test_it_delegates_to_every_peer_on_offer_and_to_nobody_else() -> None:
    asked = conversation(DELEGATE_PROMPT, tools=("ask_reader_1", "search", "ask_reader_2"))
    assert role_of(asked) == "delegate"
    calls = reply_to(asked).tool_calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("ask_reader_1", {"question": QUESTION["content"]}),
        ("ask_reader_2", {"question": QUESTION["content"]}),
    ]


def test_without_peers_on_offer_it_says_what_it_has() -> None:
    assert reply_to(conversation(DELEGATE_PROMPT)).text == NOT_FOUND


def test_it_concludes_from_what_peers_gave_back_and_cites_it() -> None:
    found = {"id": "quoll#1", "content": "The quoll will hunt at night in the forest."}
    results = (
        told(1, peer="reader_1", outcome="timed_out", documents=[], error="no answer within 8.000 s"),
        told(2, peer="reader_2", outcome="completed", documents=[found]),
    )
    concluding = conversation(CONCLUDE_PROMPT, *results)
    assert role_of(concluding) == "conclude"
    assert reply_to(concluding).text == "The quoll will hunt at night in the forest. [quoll#1]"


def test_when_every_peer_timed_out_there_is_nothing_to_conclude_from() -> None:
    results = (told(1, peer="reader_1", outcome="timed_out", documents=[], error="no answer within 8.000 s"),)
    assert reply_to(conversation(CONCLUDE_PROMPT, *results)).text == NOT_FOUND
