"""Where a library is, and which one: what is told to other processes in place of its text.

place = LibraryPlace.of("papers")
place.open().chunks                     # the same in every process, or an error
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from docmind_lab.core.errors import RecordError
from docmind_lab.docmind.documents.opening import Library, open_library


@dataclass(frozen=True)
class LibraryPlace:
    """A library by its place. Equal places are equal libraries.

    fingerprint: as `Library.fingerprint`. documents, passages: how many. folder: absolute.
    """

    fingerprint: str
    documents: int
    passages: int
    folder: str = field(compare=False)

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Self:
        """The place of the library of a folder that has been indexed.

        Raises: RecordError when there is no index, it is damaged, not finished or without a document; with the remedy.
        """
        library = open_library(folder)
        if not library.complete:
            raise RecordError(
                f"the index of {folder} was interrupted and lacks documents; finish it: `docmind-lab index {folder}`"
            )
        if not library.chunks:
            raise RecordError(
                f"the index of {folder} holds no document; `docmind-lab index {folder}` says why of each file"
            )
        return cls(library.fingerprint, len(library.topics), len(library.chunks), str(Path(folder).resolve()))

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Of the library, by what is in it: two libraries never take each other's place in one store."""
        return self.named(self.fingerprint)

    @staticmethod
    def named(fingerprint: str) -> str:
        """The name of a library with this fingerprint."""
        return f"library-{fingerprint[:12]}"

    def open(self) -> Library:
        """The library. Raises: RecordError when another one is there now, or none."""
        library = open_library(self.folder)
        if library.fingerprint != self.fingerprint:
            raise RecordError(
                f"the index of {self.folder} was brought up to date meanwhile, and its documents are no longer those "
                "that were asked; begin again"
            )
        return library
