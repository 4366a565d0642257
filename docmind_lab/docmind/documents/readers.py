"""The readers of documents, and which suffix each is for.

    read_document("guide/setup.md", data)    # Document, or UnreadableDocument says why not

A reader (text_files, markdown_files, html_files, pdf_files) takes bytes and returns a `Document`, or raises
`UnreadableDocument` with the reason and the remedy. It knows neither the file's name nor its place.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable
from pathlib import PurePosixPath

from docmind_lab.docmind.documents.document import Document, UnreadableDocument
from docmind_lab.docmind.retrieval.corpus import CHUNK_CHARACTERS

SUFFIXES = (".html", ".md", ".pdf", ".rst", ".txt")
"""Of the files that are read, in lower case; a file's own may be in any."""

READER_VERSION = 1
"""To be raised with every change of what a reader makes of a file, so that indexed files are read again."""

_LIBRARIES = {".html": "beautifulsoup4", ".md": "markdown-it-py", ".pdf": "pypdf"}


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name, which selects the reader."""
    return PurePosixPath(name).suffix.lower()


@functools.cache
def reader_name(suffix: str) -> str:
    """Return what determines a file's chunks besides its bytes: versions of reader and parser, size of chunks."""
    library = _LIBRARIES.get(suffix)
    parts = [suffix.lstrip("."), str(READER_VERSION), str(CHUNK_CHARACTERS)]
    return "/".join(parts + ([f"{library} {importlib.metadata.version(library)}"] if library else []))


def read_document(name: str, data: bytes) -> Document:
    """Read a file with the reader for its suffix. Raises: UnreadableDocument, and nothing else."""
    try:
        return _reader(suffix_of(name))(data)
    except UnreadableDocument:
        raise
    except Exception as error:
        # A parser fails in many ways on a broken file, and one file must not end the run for the others.
        raise UnreadableDocument(
            f"cannot be read as {suffix_of(name)} ({type(error).__name__})", "open it, mend it and save it again"
        ) from error


def _reader(suffix: str) -> Callable[[bytes], Document]:
    # Function-level: each parser takes a tenth of a second to import, and most folders need one of them.
    if suffix == ".pdf":
        from docmind_lab.docmind.documents.pdf_files import read_pdf  # noqa: PLC0415 - as above

        return read_pdf
    if suffix == ".html":
        from docmind_lab.docmind.documents.html_files import read_html  # noqa: PLC0415 - as above

        return read_html
    if suffix == ".md":
        from docmind_lab.docmind.documents.markdown_files import read_markdown  # noqa: PLC0415 - as above

        return read_markdown
    from docmind_lab.docmind.documents.text_files import read_rst, read_text  # noqa: PLC0415 - beside the others

    return read_rst if suffix == ".rst" else read_text
