"""What a source gives back, and by what two results are known to be one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from docmind_lab.docmind.retrieval.questions import normalise
from docmind_lab.docmind.retrieval.results import clean_metadata

# A score carries seven digits of a 32-bit float, the last of which depend on where arrays lie in memory.
_SCORE_DIGITS = 4


@dataclass(frozen=True)
class Item:
    """One result. url, id: as the source gave them, empty if it gave none. topic: for scoring only.

    filtered: whether the filter has accepted it; an item that is kept without is one that the budget ended before.
    """

    text: str
    title: str = ""
    url: str = ""
    id: str = ""
    topic: str = ""
    source: str = ""
    hypothesis: str = ""
    score: float = 0.0
    filtered: bool = True

    @property
    def key(self) -> str:
        """What tells it from others: its web address, else its id within the source, else a hash of its content.

        The hash does not see case, markup and white space, in which copies of one remark differ.
        """
        if self.url:
            return self.url
        if self.id:
            return f"{self.source}:{self.id}"
        return "content:" + hashlib.blake2b(normalise(self.text).encode(), digest_size=12).hexdigest()

    def as_document(self) -> dict[str, Any]:
        """The item as graphs carry documents: id, content, metadata, score."""
        metadata = {
            "topic": self.topic,
            "title": self.title,
            "source": self.source,
            "hypothesis": self.hypothesis,
            "filtered": self.filtered,
        }
        return {"id": self.key, "content": self.text, "metadata": clean_metadata(metadata), "score": self.score}


def items_of(points: Iterable[Any], source: str, hypothesis: str) -> tuple[Item, ...]:
    """The points of a response as items, best first, ties by key. A point without any text is left out."""
    made = [_item(point.payload or {}, point.score, source, hypothesis) for point in points]
    return tuple(sorted((item for item in made if item.text), key=lambda item: (-item.score, item.key)))


def _item(payload: Mapping[str, Any], score: float, source: str, hypothesis: str) -> Item:
    text, title, url, name, topic = (str(payload.get(key) or "") for key in ("text", "title", "url", "id", "topic"))
    return Item(text, title, url, name, topic, source, hypothesis, round(float(score), _SCORE_DIGITS))


def unseen(items: Iterable[Item], seen: Iterable[str]) -> tuple[Item, ...]:
    """Those whose key is not among `seen`, each once, in order."""
    keys = set(seen)
    fresh: dict[str, Item] = {}
    for item in items:
        if item.key not in keys:
            fresh.setdefault(item.key, item)
    return tuple(fresh.values())
