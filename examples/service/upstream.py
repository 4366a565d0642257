"""An upstream that answers quickly, never (`/hang`) or in small pieces (`/trickle`), and says how busy it was.

GET /log gives the requests under way, and the instant of the monotonic clock at which the last one ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, StreamingResponse

# Longer than anybody waits in the trial.
LONG_S = 30.0

app = FastAPI()
open_requests = 0
begun = 0
last_ended_at_s = 0.0


@app.get("/quick")
async def quick() -> PlainTextResponse:
    """Answer at once."""
    return PlainTextResponse("answered")


@app.get("/hang")
async def hang(request: Request) -> PlainTextResponse:
    """Answer after half a minute, or never, if the client leaves before."""
    _begin()
    try:
        until_s = time.monotonic() + LONG_S
        while time.monotonic() < until_s and not await request.is_disconnected():
            await asyncio.sleep(0.005)
    finally:
        _end()
    return PlainTextResponse("late")


@app.get("/trickle")
async def trickle() -> StreamingResponse:
    """Send a byte now and then, each in time for any timeout of a read."""

    async def pieces() -> AsyncIterator[bytes]:
        _begin()
        try:
            for _ in range(int(LONG_S / 0.05)):
                yield b"."
                await asyncio.sleep(0.05)
        finally:
            _end()

    return StreamingResponse(pieces(), media_type="text/plain")


@app.get("/log")
async def log() -> dict[str, float]:
    """Return how busy the upstream is, and was."""
    return {"open": open_requests, "begun": begun, "last_ended_at_s": last_ended_at_s}


def _begin() -> None:
    global open_requests, begun
    open_requests += 1
    begun += 1


def _end() -> None:
    global open_requests, last_ended_at_s
    open_requests -= 1
    last_ended_at_s = time.monotonic()
