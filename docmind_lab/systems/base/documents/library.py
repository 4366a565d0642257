"""A library: documents as chunks with the links between them, from a folder, from LangChain, or the handbook.

    library = read_library("papers")                     # its .md and .txt files
    library = library_of_documents(loader.load())        # of any loader of LangChain's
    library = handbook()
    place = LibraryPlace.of("papers")                    # for other processes: `place.open()` is equal or an error

The handbook is the same text in every Python.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Self

from langchain_core.documents import Document as LoadedDocument

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.text import count_of
from docmind_lab.systems.base.corpus import HANDBOOK, Chunk
from docmind_lab.systems.base.documents.folder import (
    Document,
    UnreadableDocument,
    find_documents,
    linked_topics,
    read_document,
    resolve_link,
    topic_of,
    unreadable,
)
from docmind_lab.systems.base.questions import require_handbook


@dataclass(frozen=True)
class Library:
    """Documents that can be searched: their chunks, and the links between them.

    chunks: by topic, then in document order. collection: its name in Qdrant. references: topic → topics that its links
    lead to, in order, each once; topics without such links are left out.
    """

    chunks: tuple[Chunk, ...]
    collection: str = ""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of chunks and references, equal for equal libraries in every process."""
        digest = hashlib.blake2b(digest_size=16)
        for chunk in self.chunks:
            digest.update("\x1f".join(("", chunk.id, chunk.topic, chunk.section, chunk.text)).encode())
        for topic in sorted(self.references):
            digest.update("\x1e".join(("", topic, *self.references[topic])).encode())
        return digest.hexdigest()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the documents, sorted."""
        return tuple(sorted({chunk.topic for chunk in self.chunks}))


@dataclass(frozen=True)
class Passages:
    """One document of a library. links: topics it may point to. passages: (section, text), in order."""

    topic: str
    links: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]


def library_of(documents: Iterable[Passages]) -> Library:
    """Build the library of these documents, in the order of their topics."""
    ordered = sorted(documents, key=lambda document: document.topic)
    topics = {document.topic for document in ordered}
    chunks = tuple(
        Chunk(id=f"{document.topic}#{ordinal}", topic=document.topic, section=section, text=text)
        for document in ordered
        for ordinal, (section, text) in enumerate(document.passages, start=1)
    )
    references = {}
    for document in ordered:
        targets = dict.fromkeys(resolve_link(link, topics) for link in document.links)
        if linked := tuple(target for target in targets if target is not None and target != document.topic):
            references[document.topic] = linked
    library = Library(chunks, references=references)
    return replace(library, collection=_name_of(library.fingerprint))


def _name_of(fingerprint: str) -> str:
    return f"library-{fingerprint[:12]}"


def read_library(directory: str | os.PathLike[str]) -> Library:
    """Read the library of a folder: its .md and .txt files, subfolders included.

    Raises: ConfigurationError: there is no such folder, it holds no document, or one of them cannot be read; the first
    is named with the reason and the remedy.
    """
    source = Path(directory)
    files, problems = find_documents(source)
    documents = []
    for path in sorted(files, key=topic_of):
        try:
            documents.append(_read(path, (source / path).read_bytes()))
        except UnreadableDocument as problem:
            problems[path] = problem
        except OSError as error:
            problems[path] = unreadable(error)
    if problems:
        path, first = min(problems.items())
        others = f"; {count_of(len(problems) - 1, 'other file')} cannot be used either" if len(problems) > 1 else ""
        # A file's name may hold what is no text (os.fsdecode's surrogates), or a line end.
        name = path.encode("utf-8", "replace").decode()
        name = name if name.isprintable() else repr(name)
        raise ConfigurationError(f"documents {directory}: {name} {first}{others}")
    return library_of(documents)


def _read(path: str, data: bytes) -> Passages:
    document = read_document(path, data)
    passages = document.passages(PurePosixPath(path).stem)
    if not passages:
        raise UnreadableDocument("holds no text", "move it out of the folder")
    return Passages(topic_of(path), linked_topics(path, document.links), passages)


def library_of_documents(documents: Sequence[LoadedDocument]) -> Library:
    """Return the library of LangChain's documents, as any of its loaders gives them.

    documents: their `metadata["source"]` names them in citations, below the folder that all of them are in; one without
    has its number. Several of one source, such as the pages of a PDF, are its sections.
    Raises: ConfigurationError: none of them has a text.
    """
    sources = [PurePosixPath(each.metadata.get("source") or "").parts for each in documents]
    folders = [source[:-1] for source in sources if source]
    # What all have in common is a place on this machine, and tells none of them apart.
    shared = sum(1 for _ in itertools.takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False)))
    sections: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for number, (source, document) in enumerate(zip(sources, documents, strict=True), start=1):
        topic = topic_of("/".join(source[shared:])) if source else f"document-{number}"
        sections.setdefault(topic, []).append(((), document.page_content))
    passages = [Passages(topic, (), Document(tuple(parts)).passages(topic)) for topic, parts in sections.items()]
    if not any(each.passages for each in passages):
        raise ConfigurationError("documents: none of them has a text (page_content)")
    return library_of(each for each in passages if each.passages)


@dataclass(frozen=True)
class LibraryPlace:
    """A library by its absolute folder and its fingerprint. Equal places mean equal libraries."""

    fingerprint: str
    documents: int
    passages: int
    folder: str = field(compare=False)

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Self:
        """Return the place of the library in a folder of documents. Raises: ConfigurationError as `read_library`."""
        library = read_library(folder)
        return cls(library.fingerprint, len(library.topics), len(library.chunks), str(Path(folder).resolve()))

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Name of the library, by its content: different libraries never share a name in a store."""
        return _name_of(self.fingerprint)

    def open(self) -> Library:
        """Open the library. Raises: RecordError if the folder holds other documents by now; as `read_library`."""
        library = read_library(self.folder)
        if library.fingerprint != self.fingerprint:
            raise RecordError(
                f"the documents of {self.folder} have changed meanwhile, and are no longer those that were asked; "
                "begin again"
            )
        return library


@functools.cache
def handbook() -> Library:
    """Load the project's handbook: the same text in every Python, with topics such as "budget.md"."""
    folder = importlib.resources.files("docmind_lab.core.data").joinpath(HANDBOOK)
    pages = (_read(page.name, page.read_bytes()) for page in folder.iterdir() if page.name.endswith(".md"))
    return replace(library_of(pages), collection=HANDBOOK)


def named_corpus(name: str | LibraryPlace) -> Library:
    """Return the handbook, or the library at this place. Raises: as `require_handbook` and `LibraryPlace.open`."""
    if isinstance(name, LibraryPlace):
        return name.open()
    require_handbook(name)
    return handbook()
