"""Readers: what text, Markdown, reStructuredText and HTML give, and which bytes are refused."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.docmind.documents.document import UnreadableDocument, clean_text
from docmind_lab.docmind.documents.readers import SUFFIXES, read_document, reader_name
from docmind_lab.docmind.documents.text_files import decode
from docmind_lab.docmind.retrieval.corpus import CHUNK_CHARACTERS


def passages(name: str, text: str | bytes) -> list[tuple[str, str]]:
    data = text.encode() if isinstance(text, str) else text
    return list(read_document(name, data).passages("stem"))


def links(name: str, text: str) -> tuple[str, ...]:
    return read_document(name, text.encode()).links


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe".encode(), "Größe"),
        (codecs.BOM_UTF8 + "Größe".encode(), "Größe"),
        (codecs.BOM_UTF16_LE + "Größe".encode("utf-16-le"), "Größe"),
        (codecs.BOM_UTF16_BE + "Größe".encode("utf-16-be"), "Größe"),
        (codecs.BOM_UTF32_LE + "Größe".encode("utf-32-le"), "Größe"),
        ("Größe – “weit”".encode("windows-1252"), "Größe – “weit”"),
        (b"caf\xe9 \x81", "café \x81"),
    ],
    ids=["utf-8", "marked", "utf-16-le", "utf-16-be", "utf-32", "windows-1252", "latin-1"],
)
def test_text_is_decoded_by_its_mark_or_as_utf_8_or_as_western(data: bytes, text: str):
    assert decode(data) == text


@pytest.mark.parametrize(
    "data", [b"\x7fELF\0\1\2", bytes(range(256)) * 4, codecs.BOM_UTF16_LE + b"\x00\xd8\x00", "Text".encode("utf-16-le")]
)
def test_bytes_that_are_not_text_are_refused_with_a_remedy(data: bytes):
    with pytest.raises(UnreadableDocument, match=r"^is not .*: save it as UTF-8"):
        decode(data)


def test_a_page_is_decoded_as_it_declares_and_an_unknown_declaration_is_ignored():
    page = '<html><head><meta charset="koi8-r"></head><p>Привет</p>'
    assert passages("a.html", page.encode("koi8-r")) == [("stem", "Привет")]
    assert passages("a.html", page.replace("koi8-r", "no-such").encode()) == [("stem", "Привет")]


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


def test_html_gives_the_seen_text_under_its_headings():
    page = """<!doctype html><html><head><title>Site &amp; page</title><style>p{}</style></head><body>
    <nav><a href="all.html">Everything</a></nav><p>Before.</p>
    <h1>Top <em>one</em></h1><p>A &lt;b&gt;<br>next   line</p><ul><li>one</li> <li>two<li>three</ul>
    <script>var x = 1</script><!-- unseen --><h2>Sub</h2><div>B <b>bold</b>, <a href="c.html#x">C</a>.</div>tail
    <pre>def f():
        return  1</pre><table><tr><td>k</td><td>v</td></tr></table></body></html>"""
    assert passages("a.html", page) == [
        ("Site & page", "Before."),
        ("Top one", "A <b>\nnext line\n\none\ntwo\nthree"),
        ("Top one > Sub", "B bold, C.\n\ntail\n\ndef f():\n        return  1\n\nk v"),
    ]
    assert links("a.html", page) == ("c.html#x",)


def test_xhtml_fragments_and_deep_nesting_are_read_without_a_warning():
    xhtml = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>One.</p></body></html>'
    assert passages("a.html", xhtml) == [("stem", "One.")]
    assert passages("a.html", "just words") == [("stem", "just words")]
    assert passages("a.html", "<div>" * 3000 + "deep") == [("stem", "deep")]


def test_rst_sections_follow_underlines_and_overlines_leave_no_trace():
    text = "=====\n Top\n=====\n\nA.\n\nSub\n---\n\nB.\n\n.. note:: kept as text\n"
    assert passages("a.rst", text) == [("Top", "A."), ("Top > Sub", "B.\n\n.. note:: kept as text")]


def test_links_of_rst_are_targets_and_doc_roles():
    assert links("a.rst", "See `the part <part.rst>`_, :doc:`guide/x` and :doc:`Y <y>`.") == (
        "part.rst",
        "guide/x.rst",
        "y.rst",
    )


def test_no_passage_is_longer_than_a_chunk_even_without_a_space():
    texts = [text for _, text in passages("a.txt", "x" * 3000 + " end")]
    assert "".join(texts).replace(" ", "") == "x" * 3000 + "end"
    assert max(map(len, texts)) <= CHUNK_CHARACTERS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "\n " * 100_000 + "end"),
        ("a.txt", "\n" + " " * 200_000 + "end"),
        ("a.md", "---\n" + "-a: b\n" * 5_000 + "end"),
        ("a.md", "[" * 20_000),
        ("a.rst", "====\n" * 50_000 + "`x" * 50_000),
        ("a.html", "<br>" * 50_000 + "end"),
        ("a.html", "<p>one</p>" * 10_000 + "<pre>" + "\n" * 100_000 + "end"),
    ],
    ids=["blank lines", "spaces", "front matter", "brackets", "underlines", "breaks", "siblings"],
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


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=200))
def test_plain_text_loses_no_word(text: str):
    kept = " ".join(body for _, body in passages("a.txt", text))
    assert kept.split() == clean_text(text).split()


def test_what_determines_the_chunks_names_the_library_and_its_version():
    assert reader_name(".txt") == f"txt/1/{CHUNK_CHARACTERS}"
    assert reader_name(".pdf").split()[0] == f"pdf/1/{CHUNK_CHARACTERS}/pypdf"
