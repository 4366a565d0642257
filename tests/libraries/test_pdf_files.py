"""PDF: text by page, and what is said of files without any."""

from __future__ import annotations

import io
import logging

import pytest
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter

from docmind_lab.docmind.documents.document import UnreadableDocument
from docmind_lab.docmind.documents.readers import read_document


def pdf(*pages: str) -> bytes:
    document = FPDF()
    for text in pages:
        document.add_page()
        document.set_font("helvetica", size=12)
        if text:
            document.multi_cell(0, text=text)
        else:
            document.rect(10, 10, 50, 50)
    return bytes(document.output())


def encrypted(data: bytes, user_password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password, owner_password="owner", algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def read(data: bytes) -> list[tuple[str, str]]:
    return list(read_document("a.pdf", data).passages("a"))


def test_each_page_is_a_section_and_pages_without_text_have_none():
    assert read(pdf("The pump is primed.", "", "The valve is shut.")) == [
        ("page 1", "The pump is primed."),
        ("page 3", "The valve is shut."),
    ]


def test_a_file_that_only_restricts_its_use_is_read():
    assert read(encrypted(pdf("The pump is primed."), "")) == [("page 1", "The pump is primed.")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encrypted(pdf("Secret."), "password"), r"^is encrypted: save a copy without a password$"),
        (pdf("", ""), r"^has no text on its 2 pages, only images: run text recognition \(OCR\) on it$"),
        (pdf("Text.")[:200], r"^is a broken PDF \(.*\): open it in a viewer and export it again$"),
        (b"not a PDF at all", r"^is a broken PDF \(.*\): open it in a viewer and export it again$"),
        (b"", r"^is a broken PDF \(.*\): open it in a viewer and export it again$"),
    ],
    ids=["encrypted", "images", "cut", "junk", "empty"],
)
def test_a_file_without_readable_text_is_named_with_its_reason(data: bytes, reason: str):
    with pytest.raises(UnreadableDocument, match=reason):
        read(data)


def test_repairs_of_a_damaged_file_are_not_logged(caplog: pytest.LogCaptureFixture):
    level = logging.getLogger("pypdf").level
    data = pdf("The pump is primed.")
    start = data.rindex(b"startxref")
    damaged = data[:start] + b"startxref\n7\n%%EOF\n"
    with caplog.at_level(logging.DEBUG):
        assert read(damaged) == [("page 1", "The pump is primed.")]
    assert not caplog.records
    assert logging.getLogger("pypdf").level == level
