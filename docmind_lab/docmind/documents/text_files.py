"""Read plain text and reStructuredText: decode bytes, and find headings by their underlines.

reStructuredText is read for its headings and links; directives and roles stay as they are written, which a search
can still find.
"""

from __future__ import annotations

import codecs
import re

from docmind_lab.docmind.documents.document import Document, UnreadableDocument, clean_text
from docmind_lab.docmind.retrieval.corpus import page_sections

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FALLBACKS = ("windows-1252", "latin-1")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\x1b"))

# Text has next to none (a form feed and an escape are not counted), random bytes one in ten.
_MOST_CONTROL_BYTES = 0.01

# An over- and underlined title: the line above it must not end up in the section before.
_OVERLINE = re.compile(r"^([*=\-~^.\"+])\1{2,}[ \t]*\n(?=[ \t]*(\S.*)\n\1{3,}[ \t]*$)", re.MULTILINE)
_OVERLINED_INDENT = re.compile(r"^[ \t]+(?=\S)")
_LINK = re.compile(r"`[^`<]*<([^`<>\s]+)>`__?")
_DOC_ROLE = re.compile(r":doc:`(?:[^`<]*<)?([^`<>]+)>?`")


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a file's text: by its byte order mark, as UTF-8, as `declared`, else as Windows-1252 or Latin-1.

    The order is fixed and nothing is guessed from statistics, so that a file is read alike everywhere.
    Raises: UnreadableDocument for bytes that are not text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data.removeprefix(mark), encoding)
    controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
    if b"\0" in data or controls > _MOST_CONTROL_BYTES * len(data):
        raise UnreadableDocument("is not text", "save it as UTF-8 text, or move it out of the folder")
    for encoding in filter(None, ("utf-8", declared, *_FALLBACKS)):
        try:
            return data.decode(encoding)
        except (UnicodeDecodeError, LookupError):  # LookupError: a page may declare any encoding it likes
            continue
    raise AssertionError("Latin-1 decodes every byte")  # pragma: no cover


def _decode_marked(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableDocument(f"is not the {encoding} its first bytes announce", "save it as UTF-8") from error


def read_text(data: bytes) -> Document:
    """Read a document of one section without a heading. Raises: UnreadableDocument as `decode` does."""
    return Document(sections=(((), decode(data)),))


def read_rst(data: bytes) -> Document:
    """Read sections by underlined headings; links from `text <target>`_ and :doc:`target`.

    A title's level is that of its underline's character in order of appearance; a line above it is ignored.
    Raises: UnreadableDocument as `decode` does.
    """
    text = _without_overlines(clean_text(decode(data)))
    sections = tuple((tuple(headings.split(" > ")), body) for headings, body in page_sections(text))
    documents = [f"{target}.rst" for target in _DOC_ROLE.findall(text)]
    return Document(sections=sections, links=(*_LINK.findall(text), *documents))


def _without_overlines(text: str) -> str:
    lines = text.split("\n")
    kept: list[str] = []
    at = 0
    while at < len(lines):
        if _OVERLINE.match("\n".join(lines[at : at + 3])):
            kept += [_OVERLINED_INDENT.sub("", lines[at + 1]).rstrip(), lines[at + 2].rstrip()]
            at += 3
        else:
            kept.append(lines[at].rstrip())
            at += 1
    return "\n".join(kept)
