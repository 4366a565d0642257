"""An ASGI application behind a socket, served by the event loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import uvicorn


@contextlib.asynccontextmanager
async def served(app: Any, *, lifespan: bool = False) -> AsyncIterator[str]:
    """Serve an application during the block, and give its address.

    The server runs in a context of its own: what is in force around the block is not in force in the application.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level="critical", lifespan="on" if lifespan else "off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]), context=contextvars.Context())
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def called(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Serve an application during the block, and give a client of it."""
    async with served(app) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
        yield client


def caller_of(app: Any) -> httpx.AsyncClient:
    """A client of an application in this process, without a socket."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://service.test")


async def asked(app: Any, path: str, headers: Any = None) -> httpx.Response:
    """What an application in this process answers."""
    async with caller_of(app) as client:
        return await client.get(path, headers=headers)
