"""Libraries: a folder of the user's documents as a searchable index, and the handbook that comes with the package.

    index_folder("papers")                      # papers/.docmind: incremental, survives being killed
    library = open_library("papers")            # chunks, references, fingerprint
    read_questions("questions.jsonl", topics=library.topics)

document.py        the content of a file: sections, links, passages
readers.py         the reader for each suffix
text_files.py      .txt and .rst; bytes to text
markdown_files.py  .md
html_files.py      .html
pdf_files.py       .pdf
folder.py          the documents of a folder, what is left out, and their topics, which citations name
store.py           the index folder: passages and manifest, each there whole or not at all; one writer at a time
indexing.py        index_folder
library.py         open_library, load_project_docs; LibraryPlace names a library for other processes
own_questions.py   the user's questions, with the documents that answers rest on
"""

from docmind_lab.docmind.documents.folder import Problem
from docmind_lab.docmind.documents.indexing import (
    INDEX_FOLDER,
    MAX_FILE_BYTES,
    IndexProgress,
    LibraryReport,
    index_folder,
)
from docmind_lab.docmind.documents.library import Library, LibraryPlace, load_project_docs, open_library
from docmind_lab.docmind.documents.own_questions import read_questions
from docmind_lab.docmind.documents.readers import SUFFIXES

__all__ = [
    "INDEX_FOLDER",
    "MAX_FILE_BYTES",
    "SUFFIXES",
    "IndexProgress",
    "Library",
    "LibraryPlace",
    "LibraryReport",
    "Problem",
    "index_folder",
    "load_project_docs",
    "open_library",
    "read_questions",
]
