"""Topics: names that survive a citation and the cleaning of metadata, and where links lead."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.systems.base.documents.folder import linked_topics, resolve_link, topic_of
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.results import RetrievedDocument, clean_metadata
from docmind_lab.systems.base.scores import answer_score

# What POSIX allows in a name, undecodable bytes included, which Python shows as lone surrogates.
NAMES = st.one_of(st.text(min_size=1, max_size=12), st.binary(min_size=1, max_size=12).map(os.fsdecode)).filter(
    lambda name: (
        not set(name) & {"/", "\0"}
        and not any("\ud800" <= c < "\udc80" or c > "\udcff" for c in name if "\ud800" <= c <= "\udfff")
    )
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/".join(names) + ".md")


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("guide/setup.md", "guide/setup.md"),
        ("Größe (2).md", "Größe%20(2).md"),
        ("a[1],b;c#d.md", "a%5B1%5D%2Cb%3Bc%23d.md"),
        ("c++/100%.md", "c+%2B/100%25.md"),
        ("\udcff.md", "%FF.md"),
    ],
)
def test_a_topic_is_the_path_with_uncitable_characters_encoded(path: str, topic: str):
    assert topic_of(path) == topic


@given(PATHS)
def test_any_topic_survives_citations_and_metadata(path: str):
    topic = topic_of(path)
    assert clean_metadata({"topic": topic}) == {"topic": topic}
    document = RetrievedDocument(f"{topic}#1", "the suite is executed")
    question = Question("q", "?", (topic,), ("the suite is executed",))
    assert answer_score(question, f"The suite is executed [{topic}#1].", [document]) == 1.0


@given(PATHS, PATHS)
def test_different_paths_have_different_topics(one: str, other: str):
    assert (topic_of(one) == topic_of(other)) == (one == other)


@pytest.mark.parametrize(
    ("link", "topics"),
    [
        ("b.md", ("guide/b.md",)),
        ("./b.md#part", ("guide/b.md",)),
        ("../my%20notes/c.md?x=1", ("my%20notes/c.md",)),
        ("a.md", ()),
        ("#part", ()),
        ("/b.md", ()),
        ("../../b.md", ()),
        ("https://example.org/b.md", ()),
        ("//example.org/b.md", ()),
        ("mailto:someone@example.org", ()),
        ("http://[", ()),
    ],
)
def test_only_relative_links_inside_the_folder_lead_somewhere(link: str, topics: tuple[str, ...]):
    assert linked_topics("guide/a.md", [link, link]) == topics


def test_a_link_without_a_suffix_means_the_document_with_one():
    assert resolve_link("guide/b", {"guide/b.md"}) == "guide/b.md"
    assert resolve_link("guide/b.md", {"guide/b.md", "guide/b.md.txt"}) == "guide/b.md"
    assert resolve_link("guide/c", {"guide/b.md"}) is None
