"""What a router answered is read liberally and believed only when it is documents."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from docmind_lab.core.errors import ServiceError
from docmind_lab.systems.base.results import RetrievedDocument
from docmind_lab.systems.docmind.retrieval.injection import read_source_nodes


def node(name: Any = "a#1", text: Any = "Some text.", **more: Any) -> SimpleNamespace:
    return SimpleNamespace(node_id=name, get_content=lambda: text, **more)


def scored(inner: Any, score: Any = 0.5) -> SimpleNamespace:
    return SimpleNamespace(node=inner, score=score)


def answer(*nodes: Any, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(source_nodes=list(nodes), **more)


@pytest.mark.parametrize(
    "given",
    [
        scored(node()),
        scored(SimpleNamespace(id_="a#1", text="Some text.", metadata=None)),
        SimpleNamespace(id="a#1", content="Some text.", score=0.5),
        RetrievedDocument("a#1", "Some text.", score=0.5),
        scored(SimpleNamespace(node_id="a#1", get_content=lambda: None, text="Some text."), np.float32(0.5)),
    ],
)
def test_nodes_of_several_shapes_are_the_same_document(given: Any):
    assert read_source_nodes(answer(given), 5) == (RetrievedDocument("a#1", "Some text.", {}, 0.5),)


def test_documents_come_best_first_and_ties_keep_the_routers_order():
    nodes = [scored(node(name), score) for name, score in [("c", 0.1), ("b", None), ("d", 0.9), ("a", 0.0)]]
    assert [document.id for document in read_source_nodes(answer(*nodes), 9)] == ["d", "c", "b", "a"]


def test_no_more_than_the_limit_and_no_id_twice():
    nodes = [scored(node("a", "worse"), 0.1), scored(node("a", "better"), 0.2), scored(node("b"), 0.3)]
    found = read_source_nodes(answer(*nodes), 9)
    assert [(document.id, document.content) for document in found] == [("b", "Some text."), ("a", "better")]
    assert len(read_source_nodes(answer(*nodes), 1)) == 1


@pytest.mark.parametrize("name", ["/srv/secret/a.md_part_0", "two words", "a[1]", "x" * 300, "~/a"])
def test_an_id_that_cannot_be_cited_or_holds_a_path_becomes_a_digest(name: str):
    (first,) = read_source_nodes(answer(scored(node(name))), 5)
    (again,) = read_source_nodes(answer(scored(node(name))), 5)
    assert first.id == again.id
    assert first.id.startswith("source-")
    assert "secret" not in json.dumps(first.to_payload())


@pytest.mark.parametrize("words", [None, "", " ", "Empty Response"])
def test_no_sources_and_no_words_is_nothing(words: Any):
    assert read_source_nodes(answer(response=words), 5) == ()


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (None, "source_nodes"),
        ("an answer", "source_nodes"),
        (SimpleNamespace(source_nodes="abc"), "source_nodes"),
        (SimpleNamespace(source_nodes=3), "source_nodes"),
        (answer(response="The answer is 42."), "no source"),
        (answer("a text"), "no text"),
        (answer(None), "no text"),
        (answer(scored(node(text=None))), "no text"),
        (answer(scored(node(text=b"bytes"))), "no text"),
        (answer(scored(node(text="  "))), "no text"),
        (answer(scored(SimpleNamespace(text="Some text."))), "no id"),
        (answer(scored(node(""))), "no id"),
        (answer(scored(node(True))), "no id"),
        (answer(scored(node(), "high")), "score"),
        (answer(scored(node(), float("nan"))), "score"),
        (answer(scored(node(), True)), "score"),
        (answer(scored(node(metadata=["a"]))), "metadata"),
        (answer(scored(node()), scored(node(text=7))), "source 1 has no text"),
    ],
)
def test_an_answer_that_is_no_documents_is_an_error_that_says_why(lie: Any, said: str):
    with pytest.raises(ServiceError, match=said):
        read_source_nodes(lie, 5)


def test_a_coroutine_for_an_answer_is_an_error_and_is_closed():
    async def later() -> None:
        raise AssertionError("never run")

    with pytest.raises(ServiceError, match="aquery"):
        read_source_nodes(later(), 5)
