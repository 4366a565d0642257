"""Answers of models that stream: what each has said so far, should its call be cut; and how bodies are read.

Their bytes are kept only while they come, and only in a run that somebody will ask. They are read when it was cut.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

# After these events nothing more is said. A client may close the stream without reading it to its end.
_LAST_EVENT: Final = re.compile(
    rb'data: ?\[DONE\]|"type": ?"(message_stop|response\.(completed|incomplete|failed))"|"done": ?true'
)
_STREAMS: Final = (b"text/event-stream", b"application/x-ndjson")
# Of gzip and of zlib, told by their first bytes.
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS


class StreamedAnswer:
    """One answer under way.

    Args:
        work: The node that asked for it, as a path of names.
        headers: Of the response, by lower-case names.
    """

    def __init__(self, work: str, headers: Mapping[bytes, bytes]) -> None:
        self.work = work
        self._encoding = headers.get(b"content-encoding", b"identity")
        self._parts: list[bytes] = []

    @staticmethod
    def is_one(headers: Mapping[bytes, bytes]) -> bool:
        """Whether the response with these headers, by lower-case names, is an answer that streams."""
        return headers.get(b"content-type", b"").startswith(_STREAMS)

    def feed(self, part: bytes) -> None:
        """Take bytes of the body."""
        self._parts.append(part)

    @property
    def is_whole(self) -> bool:
        """Whether the server has said that nothing more comes."""
        return _LAST_EVENT.search(self._body) is not None

    @property
    def text(self) -> str:
        """What the model has said so far, without its reasoning and its tool calls; empty for what cannot be read."""
        return "".join(map(_text_in, events_in(self._body)))

    @property
    def _body(self) -> bytes:
        body = b"".join(self._parts)
        return decompressed(body, self._encoding.decode("latin-1")) or b""


def decompressed(body: bytes, encoding: str) -> bytes | None:
    """Return a body, or what has come of it, without the compression that its headers name; None for an unknown one."""
    if encoding in ("", "identity"):
        return body
    try:
        return zlib.decompressobj(_ANY_HEADER).decompress(body)
    except zlib.error:
        return None


def events_in(body: bytes) -> Iterator[Any]:
    """Yield the events of a stream that have come whole, of any provider; the last line may be half of one."""
    for line in body.split(b"\n"):
        try:
            yield json.loads(line.removeprefix(b"data:"))
        except ValueError:
            continue


def _text_in(event: Any) -> str:
    """Return what an event adds to the answer, in the interface of any provider; of several answers, the first."""
    match event:
        case {"choices": [{"index": int(number)}, *_]} if number:
            return ""
        # OpenAI's chat completions, and its older completions.
        case {"choices": [{"delta": {"content": str(text)}} | {"text": str(text)}, *_]}:
            return text
        # OpenAI's responses.
        case {"type": "response.output_text.delta", "delta": str(text)}:
            return text
        # Anthropic.
        case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
            return text
        # Gemini.
        case {"candidates": [{"content": {"parts": [*parts]}}, *_]}:
            return "".join(part.get("text", "") for part in parts if not part.get("thought"))
        # Ollama: its chat, and its older interface.
        case {"message": {"content": str(text)}} | {"response": str(text)}:
            return text
    return ""
