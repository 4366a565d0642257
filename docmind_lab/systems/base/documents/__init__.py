"""Libraries: a folder of the user's documents as passages, and the handbook that comes with the package.

    library = read_library("papers")            # chunks, references, fingerprint
    read_questions("questions.jsonl", topics=library.topics)

folder.py          the documents of a folder: bytes to passages, what cannot be read, topics, which citations name
library.py         read_library, library_of_documents, handbook; LibraryPlace names one for other processes
own_questions.py   the user's questions, with the documents that answers rest on
"""

from docmind_lab.systems.base.documents.library import (
    Library,
    LibraryPlace,
    handbook,
    library_of_documents,
    read_library,
)
from docmind_lab.systems.base.documents.own_questions import read_questions

__all__ = ["Library", "LibraryPlace", "handbook", "library_of_documents", "read_library", "read_questions"]
