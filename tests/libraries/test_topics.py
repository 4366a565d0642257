"""Topics: names that survive a citation and the cleaning of metadata, and where links lead."""

from __future__ import annotations

import pytest

from docmind_lab.systems.base.answer_scores import answer_score
from docmind_lab.systems.base.documents.folder import linked_topics, resolve_link, topic_of
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.results import RetrievedDocument, clean_metadata

# POSIX allows all but two characters in a name, undecodable bytes too, which Python shows as lone surrogates.
TOPICS = {
    "guide/setup.md": "guide/setup.md",
    "Größe (2).md": "Größe%20(2).md",
    "a[1],b;c#d.md": "a%5B1%5D%2Cb%3Bc%23d.md",
    "a%5B1%5D,b;c#d.md": "a%255B1%255D%2Cb%3Bc%23d.md",
    "c++/100%.md": "c+%2B/100%25.md",
    "\udcff.md": "%FF.md",
    "%FF.md": "%25FF.md",
}


@pytest.mark.parametrize("path", TOPICS)
def test_a_topic_is_the_path_encoded_so_that_it_survives_citations_and_metadata(path: str):
    topic = topic_of(path)
    assert topic == TOPICS[path]
    assert clean_metadata({"topic": topic}) == {"topic": topic}
    document = RetrievedDocument(f"{topic}#1", "the suite is executed")
    question = Question("q", "?", (topic,), ("the suite is executed",))
    assert answer_score(question, f"The suite is executed [{topic}#1].", [document]) == 1.0


def test_different_paths_have_different_topics():
    assert len({topic_of(path) for path in TOPICS}) == len(TOPICS)


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
