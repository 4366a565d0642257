"""The corpus shared out among peers."""

from __future__ import annotations

from collections import Counter

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents.library import named_corpus
from docmind_lab.systems.base.questions import load_questions
from docmind_lab.systems.peers.shelves import PASSAGES, shelves, task_for

PEERS = ("a", "b", "c", "d")


def chunk(topic: str, number: int, text: str = "The quoll hunts at night.") -> Chunk:
    return Chunk(f"{topic}#{number}", topic, topic, text)


def test_every_chunk_is_on_one_shelf_and_topics_stay_together() -> None:
    chunks = named_corpus("handbook").chunks
    made = shelves(chunks, PEERS)
    assert sorted(c.id for shelf in made for c in shelf.chunks) == sorted(c.id for c in chunks)
    topics = [topic for shelf in made for topic in shelf.topics]
    assert len(topics) == len(set(topics))
    sizes = [len(shelf.chunks) for shelf in made]
    # A topic is never split.
    largest = max(Counter(c.topic for c in chunks).values())
    assert all(abs(size - len(chunks) / len(PEERS)) <= largest for size in sizes)


def test_no_peer_goes_without_however_large_a_topic_is() -> None:
    chunks = [chunk("a", number) for number in range(50)] + [chunk(topic, 1) for topic in "bcd"]
    assert [shelf.topics for shelf in shelves(chunks, PEERS)] == [("a",), ("b",), ("c",), ("d",)]


def test_fewer_topics_than_peers_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 topics cannot be shared by 4 peers"):
        shelves([chunk("a", 1), chunk("b", 1)], PEERS)


def test_a_task_carries_the_passages_that_share_most_with_the_question() -> None:
    chunks = [
        chunk("quoll", 1),
        chunk("quoll", 2, "A numbat eats termites."),
        chunk("b", 1),
        chunk("c", 1),
        chunk("d", 1),
    ]
    of_quoll = next(shelf for shelf in shelves(chunks, PEERS) if "quoll" in shelf.topics)
    task = task_for(of_quoll, "When does the quoll hunt?")
    assert task["passages"][0]["id"] == "quoll#1"
    assert task_for(of_quoll, "xyzzy")["passages"] == []


def test_for_most_questions_a_gold_topic_is_among_what_peers_are_sent() -> None:
    made = shelves(named_corpus("handbook").chunks, PEERS)
    found = 0
    for question in load_questions():
        sent = {
            passage["id"].partition("#")[0] for shelf in made for passage in task_for(shelf, question.text)["passages"]
        }
        assert len(sent) <= len(PEERS) * PASSAGES
        found += bool(sent & set(question.gold_topics))
    assert found / len(load_questions()) > 0.8
