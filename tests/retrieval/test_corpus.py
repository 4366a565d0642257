"""Where a text is cut into chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.systems.base.corpus import split_text

PARAGRAPHS = st.lists(st.text(alphabet="ab cd.", min_size=1, max_size=60).filter(str.strip), max_size=12)


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
