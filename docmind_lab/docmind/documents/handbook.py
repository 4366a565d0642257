"""The handbook: a small corpus that is the same in every Python, and explains this project's own words.

    library = load_project_docs()
    questions = load_questions("handbook")      # retrieval/questions.py

The language reference differs between Python versions; what has to be equal across them uses this instead. The pages
are docmind_lab/data/handbook/*.md, read by the reader that reads a user's Markdown.
"""

from __future__ import annotations

import functools
import importlib.resources

from docmind_lab.docmind.documents.opening import Library, library_of
from docmind_lab.docmind.documents.readers import read_document
from docmind_lab.docmind.documents.store import Passages
from docmind_lab.docmind.documents.topics import linked_topics


@functools.cache
def load_project_docs() -> Library:
    """The handbook's chunks and the links between its pages; topics such as "budget.md". The same object every time."""
    folder = importlib.resources.files("docmind_lab.core.data").joinpath("handbook")
    pages = []
    for page in folder.iterdir():
        if page.name.endswith(".md"):
            document = read_document(page.name, page.read_bytes())
            links = linked_topics(page.name, document.links)
            pages.append(Passages(page.name, links, document.passages(page.name.removesuffix(".md"))))
    return library_of(pages)
