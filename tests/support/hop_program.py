"""A service under the ASGI middleware, in a process whose clocks are off by the seconds of its argument.

Prints its address. `/work` takes 30 s; `/seen` says what became of the last work, and what the clocks show.
"""

from __future__ import annotations

import sys
import time

_OFF_S = float(sys.argv[1])
_monotonic, _time = time.monotonic, time.time
# Before anything that keeps a reference to them is imported.
time.monotonic = lambda: _monotonic() + _OFF_S
time.time = lambda: _time() + _OFF_S

import asyncio  # noqa: E402
import socket  # noqa: E402

import uvicorn  # noqa: E402
from starlette.applications import Starlette  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

from docmind_lab.alternatives.enforcement.scope import remaining_s  # noqa: E402
from docmind_lab.alternatives.enforcement.wire.asgi import DeadlineMiddleware  # noqa: E402

seen: dict[str, object] = {}


async def work(_: Request) -> Response:
    begun_s, limit_s = time.monotonic(), remaining_s()
    ended = "by itself"
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        ended = "cancelled"
        raise
    finally:
        seen.update(limit_s=limit_s, worked_s=time.monotonic() - begun_s, ended=ended)
    return Response("late")


async def tell(_: Request) -> Response:
    return JSONResponse({**seen, "monotonic_s": time.monotonic(), "time_s": time.time()})


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    app = DeadlineMiddleware(Starlette(routes=[Route("/work", work), Route("/seen", tell)]), at_most_s=20)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    asyncio.run(server.serve(sockets=[listener]))
