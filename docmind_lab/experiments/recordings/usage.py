"""What a response says of its tokens, and its text."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from docmind_lab.network.taps import Traffic

# What OpenAI gives as a rule of thumb for English; used only where a server says nothing, and then called an estimate.
_BYTES_PER_TOKEN = 4
_DATA, _END = "data:", "[DONE]"
# 47: gzip or zlib, as the first bytes say.
_ANY_ZLIB = 47


@dataclass(frozen=True)
class Usage:
    """Tokens of one attempt, both ways. is_estimate: the server did not say, so they follow from the bytes."""

    tokens: int
    is_estimate: bool


def usage_of(traffic: Traffic) -> Usage:
    """The tokens of an attempt: as its server counts them, else a quarter of the bytes that went both ways.

    A call that was cut is never told of its tokens, and has cost some.
    """
    for payload in _payloads(text_of(traffic) or ""):
        said = payload.get("usage")
        if isinstance(said, dict) and isinstance(said.get("total_tokens"), int):
            return Usage(said["total_tokens"], is_estimate=False)
    size = len(traffic.sent) + sum(map(len, traffic.received))
    return Usage(-(-size // _BYTES_PER_TOKEN), is_estimate=True)


def text_of(traffic: Traffic) -> str | None:
    """The body of the response as text; None for one that is no text or is compressed in a way not known here."""
    data = b"".join(traffic.received)
    encoding = traffic.headers.get("content-encoding", "").lower()
    try:
        if encoding in ("gzip", "deflate"):
            data = zlib.decompressobj(_ANY_ZLIB).decompress(data)
        elif encoding not in ("", "identity"):
            return None
        return data.decode("utf-8")
    except (zlib.error, UnicodeDecodeError):
        return None


def _payloads(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a reply: one, or those of an event stream, the last first."""
    lines = [line.removeprefix(_DATA).strip() for line in text.splitlines() if line.startswith(_DATA)]
    for part in reversed([line for line in lines if line != _END] or [text]):
        try:
            payload = json.loads(part)
        except ValueError:
            continue
        if isinstance(payload, dict):
            yield payload
