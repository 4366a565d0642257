"""What a search finds: documents, made of points, without paths and blobs in their metadata."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qdrant_client import models

from docmind_lab.core.errors import ServiceError
from docmind_lab.docmind.retrieval.index import CORPUS_FIELD

# A cosine of 32-bit floats carries seven digits, and its last ones depend on where arrays happen to lie in memory: two
# equal searches could order two passages differently.
_SCORE_DIGITS = 4

Points = Sequence[models.ScoredPoint | models.Record]

# A slash, drive letter or share that starts a word and is followed by a name. "and/or", "f(a, /)", "a / b", "./here"
# and the slashes of a web address are none of it.
_ABSOLUTE_PATH = re.compile(
    r"""  (?<![\w/.)\]]) ~?/ [\w.~]         # /srv/x, ~/x
        | (?<!\w) ~\w* [\\/]               # ~name/x
        | (?<!\w) [A-Za-z]: [\\/] (?!/)    # C:\x, C:/x
        | \\\\ \w                          # \\host\share
        | \b file:                         # file:///srv/x
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Base64 or hex in a string, or a string that is not text.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{256,}|^data:[\w.+-]+/|[\x00-\x08\x0e-\x1f]", re.IGNORECASE)


@dataclass(frozen=True)
class RetrievedDocument:
    """One passage that a search found.

    id: the chunk's, as citations name it. content: its text. metadata: JSON values only, see `clean_metadata`.
    score: BM25 for "sparse", a cosine for "dense", an RRF sum for the others, to four digits; comparable
    within one result only.
    """

    id: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    score: float = 0.0

    @property
    def topic(self) -> str:
        """The page it comes from; empty if its metadata names none."""
        return str(self.metadata.get("topic", ""))

    def to_payload(self) -> dict[str, Any]:
        """The document as JSON: id, content, metadata, score."""
        return {"id": self.id, "content": self.content, "metadata": dict(self.metadata), "score": self.score}


def best_first(documents: Iterable[RetrievedDocument]) -> tuple[RetrievedDocument, ...]:
    """The documents by falling score, ties by id."""
    return tuple(sorted(documents, key=lambda document: (-document.score, document.id)))


def read_documents(
    points: Points, score_of: Callable[[Any], float] = lambda point: point.score
) -> tuple[RetrievedDocument, ...]:
    """Documents of a response's points, best first, ties by id. Raises ServiceError for points without text.

    score_of: what a point scores; points of a scroll have no score of their own.
    """
    documents = []
    for point in points:
        payload = dict(point.payload or {})
        try:
            name, text = payload.pop("chunk_id"), payload.pop("text")
        except KeyError as missing:
            raise ServiceError(
                f"point {point.id} has no {missing} in its payload: the collection was not built by docmind_lab"
            ) from missing
        payload.pop(CORPUS_FIELD, None)
        score = round(float(score_of(point)), _SCORE_DIGITS)
        documents.append(RetrievedDocument(str(name), str(text), clean_metadata(payload), score))
    return best_first(documents)


def clean_metadata(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The metadata that may leave: JSON values without absolute paths and without binary blobs, at any depth.

    Dropped: bytes; strings that hold an absolute path (POSIX, Windows, share, home or file: address), base64 or
    control characters; NaN and infinities; everything that JSON does not know; and keys that are not clean strings.
    """
    return {
        key: _clean(value)
        for key, value in metadata.items()
        if isinstance(key, str) and is_clean(key) and is_clean(value)
    }


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return clean_metadata(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value if is_clean(item)]
    return value


def is_clean(value: Any) -> bool:
    """Whether a value may leave as it is; what a list or mapping holds is not looked at."""
    if isinstance(value, str):
        return not (_ABSOLUTE_PATH.search(value) or _BLOB.search(value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | Mapping | list | tuple)
