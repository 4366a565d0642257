"""Readers: what text and Markdown give, and which bytes are refused."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.systems.base.corpus import CHUNK_CHARACTERS
from docmind_lab.systems.base.documents.folder import SUFFIXES, UnreadableDocument, clean_text, decode, read_document


def passages(name: str, text: str | bytes) -> list[tuple[str, str]]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_document(name, data).passages("stem"))


def links(name: str, text: str) -> tuple[str, ...]:
    return read_document(name, text.encode()).links


def test_text_is_utf_8_with_or_without_its_mark():
    assert decode("Größe".encode()) == decode(codecs.BOM_UTF8 + "Größe".encode()) == "Größe"


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\0\1\2", bytes(range(256)), "Text".encode("utf-16"), "Text".encode("utf-16-le"), b"caf\xe9"],
    ids=["program", "bytes", "utf-16", "unmarked utf-16", "latin-1"],
)
def test_bytes_that_are_not_utf_8_are_refused_with_a_remedy(data: bytes):
    with pytest.raises(UnreadableDocument, match=r"^is not .*: save it as UTF-8"):
        decode(data)


def test_text_without_headings_goes_by_the_name_of_its_file():
    assert passages("a.txt", "One.\r\n\r\nTwo.\x0c") == [("stem", "One.\n\nTwo.")]


def test_markdown_sections_carry_the_headings_of_both_styles():
    text = "Intro.\n\n# Top `x` *y*\n\nA.\n\nSub\n---\n\nB.\n\n#### Deep\n\nC.\n\n## Next\n\nD.\n"
    assert passages("a.md", text) == [
        ("stem", "Intro."),
        ("Top x y", "A."),
        ("Top x y > Sub", "B."),
        ("Top x y > Sub > Deep", "C."),
        ("Top x y > Next", "D."),
    ]


def test_headings_inside_code_quotes_and_lists_are_text():
    text = "# Top\n\n```sh\n# comment\n```\n\n> # quoted\n\n- # listed\n\n    # indented\n"
    ((section, body),) = passages("a.md", text)
    assert section == "Top"
    assert body == text.removeprefix("# Top\n\n").rstrip()


def test_front_matter_is_text_and_not_a_heading():
    text = "---\ntitle: Pumps\ntags:\n  - water\n---\n# Top\n\nA.\n"
    assert passages("a.md", text) == [("stem", "title: Pumps\ntags:\n  - water"), ("Top", "A.")]
    assert passages("a.md", "---\n\nA rule, then text.\n\n---\n\nB.\n")[0][0] == "stem"


def test_links_of_markdown_are_those_a_reader_can_click():
    text = "[a](b.md) `[c](d.md)` ![e](f.png) [g][1] <https://example.org>\n\n| [t](u.md) |\n|---|\n\n[1]: h.md\n"
    assert links("a.md", text) == ("b.md", "h.md", "https://example.org", "u.md")


def test_no_passage_is_longer_than_a_chunk_even_without_a_space():
    texts = [text for _, text in passages("a.txt", "x" * 3000 + " end")]
    assert "".join(texts).replace(" ", "") == clean_text("x" * 3000 + "end")
    assert max(map(len, texts)) <= CHUNK_CHARACTERS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "\n " * 100_000 + "end"),
        ("a.txt", "\n" + " " * 200_000 + "end"),
        ("a.md", "---\n" + "-a: b\n" * 5_000 + "end"),
        ("a.md", "[" * 20_000),
    ],
    ids=["blank lines", "spaces", "front matter", "brackets"],
)
def test_hostile_repetition_is_read_in_one_pass(name: str, text: str):
    # What grows with the square of the length takes minutes here, a pass a second or two; CPU time, so
    # that a busy machine does not matter.
    started_s = time.process_time()
    assert passages(name, text)
    assert time.process_time() - started_s < 10


@given(st.binary(max_size=300), st.sampled_from(SUFFIXES))
def test_any_bytes_give_a_document_or_a_reason_and_what_is_given_can_be_stored(data: bytes, suffix: str):
    try:
        found = list(read_document(f"a{suffix}", data).passages("stem"))
    except UnreadableDocument as error:
        found = [(error.reason, error.remedy)]
    for section, text in found:
        assert section.strip()
        assert text.strip()
        assert "\n" not in section
        f"{section}{text}".encode()
