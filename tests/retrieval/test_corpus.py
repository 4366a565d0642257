"""The corpus: what a chunk is, where it is cut, and who keeps a section that several pages have."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.docmind.retrieval.corpus import (
    CHUNK_CHARACTERS,
    chunk_pages,
    language_references,
    load_language_reference,
    page_sections,
    reference_pages,
    split_text,
    topic_references,
)

PARAGRAPHS = st.lists(st.text(alphabet="ab cd.", min_size=1, max_size=60).filter(str.strip), max_size=12)


def test_the_reference_has_a_few_hundred_chunks_with_readable_unique_ids():
    chunks = load_language_reference()
    assert 300 <= len(chunks) <= 600
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    for topic, count in Counter(chunk.topic for chunk in chunks).items():
        assert [c.id for c in chunks if c.topic == topic] == [f"{topic}#{n}" for n in range(1, count + 1)]


def test_no_chunk_is_empty_or_longer_than_the_limit():
    lengths = [len(chunk.text.strip()) for chunk in load_language_reference()]
    assert min(lengths) > 0
    assert max(lengths) <= CHUNK_CHARACTERS


def test_no_passage_is_indexed_twice():
    bodies = Counter(" ".join(chunk.text.split()) for chunk in load_language_reference())
    repeated = {body for body, count in bodies.items() if count > 1}
    assert not {body for body in repeated if len(body) > 200}


def test_every_page_has_chunks_unless_another_page_says_the_same():
    missing = set(reference_pages) - {chunk.topic for chunk in load_language_reference()}
    assert all(any(reference_pages[m] == reference_pages[o] for o in reference_pages if o != m) for m in missing)
    assert {"with", "try", "if", "for", "naming", "compound", "specialnames"}.isdisjoint(missing)


def test_a_shared_section_belongs_to_the_shortest_page():
    pages = {
        "chapter": "Chapter\n*******\n\nIntro.\n\nThe part\n========\n\nShared words.\n",
        "part": "The part\n********\n\nShared\nwords.\n",
    }
    chunks = {chunk.id: chunk for chunk in chunk_pages(pages)}
    assert set(chunks) == {"chapter#1", "part#1"}
    assert chunks["chapter#1"].text == "Intro."
    assert chunks["part#1"].section == "The part"


def test_of_two_equal_pages_the_one_that_is_named_first_keeps_the_text():
    page = 'The "if" statement\n******************\n\nThe "else" clause is optional.\n'
    assert {chunk.topic for chunk in chunk_pages({"else": page, "if": page})} == {"if"}


def test_sections_carry_the_headings_above_them():
    page = "Top\n***\n\nA.\n\nSub\n===\n\nB.\n\nDeep\n----\n\nC.\n\nNext\n====\n\nD.\n\n-[ Footnotes ]-\n\n[1] E.\n"
    assert page_sections(page) == (
        ("Top", "A."),
        ("Top > Sub", "B."),
        ("Top > Sub > Deep", "C."),
        ("Top > Next", "D."),
        ("Top > Footnotes", "[1] E."),
    )


def test_prompts_rules_and_indented_lines_are_not_headings():
    page = ">>> a\n>>>>>\n\n   Indented\n   ========\n\n======\n\nText\n"
    assert [heading for heading, _ in page_sections(page)] == [""]


@given(PARAGRAPHS, st.integers(min_value=5, max_value=120))
def test_splitting_loses_no_word_and_keeps_their_order(paragraphs: list[str], limit: int):
    text = "\n\n".join(paragraphs)
    assert " ".join(split_text(text, limit)).split() == text.split()


@given(PARAGRAPHS, st.integers(min_value=60, max_value=200))
def test_a_paragraph_that_fits_is_never_cut(paragraphs: list[str], limit: int):
    pieces = split_text("\n\n".join(paragraphs), limit)
    assert all(len(piece) <= limit for piece in pieces)
    for paragraph in paragraphs:
        assert any(paragraph.strip() in piece for piece in pieces)


def test_a_definition_stays_with_its_body():
    text = "f(x)\n\n   About f, at some length.\n\ng(x)\n\n   About g, at some length."
    assert split_text(text, 50) == ("f(x)\n\n   About f, at some length.", "g(x)\n\n   About g, at some length.")


def test_a_paragraph_longer_than_the_limit_is_cut_at_line_ends_then_between_words():
    assert split_text("one two\nthree four", 10) == ("one two", "three four")
    assert split_text("one two three four", 9) == ("one two", "three", "four")
    assert split_text("unbreakable", 4) == ("unbreakable",)


def test_blank_text_has_no_pieces():
    assert split_text(" \n\n ") == ()


def test_references_name_topics_of_the_corpus_and_never_the_topic_itself():
    topics = {chunk.topic for chunk in load_language_reference()}
    for topic in reference_pages:
        references = topic_references(topic)
        assert set(references) <= topics - {topic}
        assert len(set(references)) == len(references)


def test_references_follow_pydocs_tables_through_its_aliases():
    assert topic_references("with") == ("context-managers", "exceptions", "yield")
    assert "typesmapping" in topic_references("dict")


def test_an_unknown_topic_has_no_references():
    assert topic_references("no such topic") == ()


def test_all_references_together_are_those_of_each_topic():
    together = language_references()
    for topic in {chunk.topic for chunk in load_language_reference()}:
        assert together.get(topic, ()) == topic_references(topic)
    assert list(together) == sorted(together)
    assert all(together.values())
