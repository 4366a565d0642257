"""A library: documents as chunks with the links between them, from an index folder or the handbook.

    library = open_library("papers")                     # as index_folder("papers") left it
    SearchIndex.build(client, library.chunks, collection="papers")
    place = LibraryPlace.of("papers")                    # for other processes: `place.open()` is equal or an error
    library = load_project_docs()                        # the handbook: the same text in every Python

The language reference differs between Python versions; what has to be equal across them uses the handbook instead.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from docmind_lab.core.errors import NoSuchRecord, RecordError
from docmind_lab.docmind.documents import store
from docmind_lab.docmind.documents.folder import linked_topics, resolve_link
from docmind_lab.docmind.documents.indexing import INDEX_FOLDER
from docmind_lab.docmind.documents.readers import read_document
from docmind_lab.docmind.documents.store import Manifest, Passages
from docmind_lab.docmind.retrieval.corpus import Chunk

_TRIES = 3


@dataclass(frozen=True)
class Library:
    """Documents that can be searched: their chunks, and the links between them.

    chunks: by topic, then in document order. references: topic → topics that its links lead to, in order, each once;
    topics without such links are left out. fingerprint: of both, equal for equal libraries in every process.
    complete: False when the index was interrupted; index the folder again to finish it.
    """

    chunks: tuple[Chunk, ...]
    references: Mapping[str, tuple[str, ...]]
    fingerprint: str
    complete: bool = True

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the documents, sorted."""
        return tuple(sorted({chunk.topic for chunk in self.chunks}))


def library_of(documents: Iterable[Passages], *, complete: bool = True) -> Library:
    """Build the library of these documents, in the order of their topics."""
    ordered = sorted(documents, key=lambda document: document.topic)
    known = {document.topic for document in ordered}
    chunks = tuple(
        Chunk(id=f"{document.topic}#{ordinal}", topic=document.topic, section=section, text=text)
        for document in ordered
        for ordinal, (section, text) in enumerate(document.passages, start=1)
    )
    references = {}
    for document in ordered:
        targets = dict.fromkeys(resolve_link(link, known) for link in document.links)
        if found := tuple(target for target in targets if target is not None and target != document.topic):
            references[document.topic] = found
    return Library(chunks, references, _fingerprint(chunks, references), complete)


def open_library(directory: str | os.PathLike[str]) -> Library:
    """Open the library of an index folder, or of a folder of documents with its index inside.

    It is read as of one instant, also while another process brings the index up to date.
    Raises: RecordError when there is no index, it is damaged, or another version wrote it; with the remedy.
    """
    folder = Path(directory)
    if not (folder / store.MANIFEST).exists() and (folder / INDEX_FOLDER / store.MANIFEST).exists():
        folder /= INDEX_FOLDER
    for _ in range(_TRIES):
        manifest = store.read_manifest(folder)
        if manifest is None:
            raise NoSuchRecord(f"{directory} holds no index; make one with `docmind-lab index {directory}`")
        try:
            return library_of(_stored_passages(folder, manifest), complete=manifest.complete)
        except FileNotFoundError as error:
            missing = error
            # Swept away after a newer manifest took over: that one names what is there.
            if store.read_manifest(folder) == manifest:
                break
    raise RecordError(f"{missing.filename} is missing; index the documents again") from missing


def _stored_passages(folder: Path, manifest: Manifest) -> list[Passages]:
    return [
        store.read_passages(folder, entry.key(topic))
        for topic, entry in manifest.documents.items()
        if entry.problem is None
    ]


def _fingerprint(chunks: Iterable[Chunk], references: Mapping[str, tuple[str, ...]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update("\x1f".join(("", chunk.id, chunk.topic, chunk.section, chunk.text)).encode())
    for topic in sorted(references):
        digest.update("\x1e".join(("", topic, *references[topic])).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class LibraryPlace:
    """A library identified by its folder and fingerprint. Equal places mean equal libraries.

    fingerprint: as `Library.fingerprint`. documents, passages: how many. folder: absolute.
    """

    fingerprint: str
    documents: int
    passages: int
    folder: str = field(compare=False)

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the place of the library in a folder that has been indexed.

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
        """Name of the library, by its content: different libraries never share a name in a store."""
        return self.name_for(self.fingerprint)

    @staticmethod
    def name_for(fingerprint: str) -> str:
        """Return the name of a library with this fingerprint."""
        return f"library-{fingerprint[:12]}"

    def open(self) -> Library:
        """Open the library. Raises: RecordError if the folder now holds another library, or none."""
        library = open_library(self.folder)
        if library.fingerprint != self.fingerprint:
            raise RecordError(
                f"the index of {self.folder} was brought up to date meanwhile, and its documents are no longer those "
                "that were asked; begin again"
            )
        return library


@functools.cache
def load_project_docs() -> Library:
    """Load the handbook: chunks, and links between its pages; topics such as "budget.md". Cached."""
    folder = importlib.resources.files("docmind_lab.core.data").joinpath("handbook")
    pages = []
    for page in folder.iterdir():
        if page.name.endswith(".md"):
            document = read_document(page.name, page.read_bytes())
            links = linked_topics(page.name, document.links)
            pages.append(Passages(page.name, links, document.passages(page.name.removesuffix(".md"))))
    return library_of(pages)
