"""Libraries: a folder of the user's documents as passages, and the handbook that comes with the package.

    library = read_library("papers")            # chunks, references, fingerprint
    read_questions("questions.jsonl", topics=library.topics)

document.py        the content of a file: sections, links, passages
readers.py         .md and .txt: bytes to text, headings and links
folder.py          the documents of a folder, what is left out, and their topics, which citations name
library.py         read_library, library_of_documents, load_project_docs; LibraryPlace names one for other processes
own_questions.py   the user's questions, with the documents that answers rest on
"""

from docmind_lab.docmind.documents.folder import Problem
from docmind_lab.docmind.documents.library import (
    Library,
    LibraryPlace,
    library_of_documents,
    load_project_docs,
    read_library,
)
from docmind_lab.docmind.documents.own_questions import read_questions
from docmind_lab.docmind.documents.readers import SUFFIXES

__all__ = [
    "SUFFIXES",
    "Library",
    "LibraryPlace",
    "Problem",
    "library_of_documents",
    "load_project_docs",
    "read_library",
    "read_questions",
]
