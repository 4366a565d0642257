"""Read PDF: the text of each page, if the file holds text."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import DependencyError, PdfReadError

from docmind_lab.docmind.documents.document import Document, UnreadableDocument


def read_pdf(data: bytes) -> Document:
    """Read one section "page N" for each page with text. A file with an empty password is read as any other.

    Raises: UnreadableDocument for a broken, encrypted or image-only file.
    """
    with _silence_pypdf():
        try:
            reader = PdfReader(io.BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                raise UnreadableDocument("is encrypted", "save a copy without a password")
            texts = [page.extract_text() for page in reader.pages]
        except DependencyError as error:
            # pypdf leaves AES to another package, which would be needed for nothing else here.
            raise UnreadableDocument("is encrypted", "save a copy without a password") from error
        except PdfReadError as error:
            raise UnreadableDocument(f"is a broken PDF ({error})", "open it in a viewer and export it again") from error
    if not any(text.strip() for text in texts):
        raise UnreadableDocument(
            f"has no text on its {len(texts)} pages, only images" if texts else "has no pages",
            "run text recognition (OCR) on it",
        )
    return Document(sections=tuple(((f"page {number}",), text) for number, text in enumerate(texts, start=1)))


@contextlib.contextmanager
def _silence_pypdf() -> Iterator[None]:
    """Silence pypdf's warnings about oddities that it repaired."""
    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
