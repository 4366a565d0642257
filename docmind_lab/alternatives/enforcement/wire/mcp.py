"""The deadline in MCP requests: a transport that sends it, and a middleware that puts it in force around tools.

    server = MCPServer("search", middleware=[ToolDeadline(at_most_s=20)])
    async with Client(with_deadlines(streamable_http_client(url))) as client: ...
    await client.call_tool("search", {"query": "x"}, meta=deadline_meta())      # by hand

Needs the package mcp, which comes with the extra of that name. Clients may be of mcp 1, which langchain-mcp-adapters
needs, or 2. `ToolDeadline` needs mcp 2, since servers of mcp 1 have no middleware.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from docmind_lab.alternatives.enforcement.wire.request import request_deadline
from docmind_lab.alternatives.enforcement.wire.server_limits import (
    ServerLimits,
    read_metadata_s,
    remaining_metadata,
)
from docmind_lab.core.errors import BudgetRefused, ConfigurationError, DeadlineError
from docmind_lab.core.holds import hold_scope

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp.types import RequestParamsMeta

# The requests that run code of the server's author.
_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


class ToolDeadline:
    """Hold each tool, prompt and resource of an MCP server to what its request says and what the server allows.

    The smaller of the two is in force. A request that cannot be met is answered with the error "request timed out"
    (-32001) before the tool sees it, and so is one that the deadline cuts. A plain `def` tool runs in a thread, which
    is not cancelled: it is held at its next request.

    Args:
        at_most_s: Seconds that a request may take; None for what it says only.
        transit_s: Seconds taken off what the request says, for the way here and back.
        least_s: Seconds that a request needs at least.

    Raises:
        ConfigurationError: A value cannot be used, or the package mcp is older than 2.
    """

    def __init__(
        self,
        *,
        at_most_s: float | None = None,
        transit_s: float = 0.0,
        least_s: float = ServerLimits.least_s,
    ) -> None:
        if importlib.util.find_spec("mcp.server.context") is None:
            raise ConfigurationError(
                "ToolDeadline needs mcp 2, since servers of mcp 1 have no middleware; put "
                "`async with dl.deadline(20):` into each tool"
            )
        self._limits = ServerLimits(at_most_s, transit_s, least_s)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Handle one message of a client.

        Raises:
            MCPError: The time was over, or is over now.
        """
        if ctx.request_id is None or ctx.method not in _METHODS:
            return await call_next(ctx)
        label = f"{ctx.method} {(ctx.params or {}).get('name', '')}".strip()
        try:
            limit_s = self._limits.admitted_s(read_metadata_s(cast(Mapping[str, object], ctx.meta)), label)
        except BudgetRefused as error:
            raise _timed_out("deadline_refused", error) from error
        try:
            async with contextlib.nullcontext() if limit_s is None else request_deadline(limit_s, label=label):
                return await call_next(ctx)
        except DeadlineError as error:
            raise _timed_out("deadline_exceeded", error) from error


def _timed_out(kind: str, error: DeadlineError) -> MCPError:
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - only mcp 2 has it
    from mcp.types import REQUEST_TIMEOUT  # noqa: PLC0415 - as above

    return MCPError(REQUEST_TIMEOUT, str(error), {"type": kind})


def deadline_meta(meta: Mapping[str, object] | None = None) -> RequestParamsMeta:
    """Return the `_meta` of a request with the time that is left, for `call_tool(..., meta=deadline_meta())`.

    Args:
        meta: What else the request says.
    """
    return cast("RequestParamsMeta", remaining_metadata(meta))


@contextlib.asynccontextmanager
async def with_deadlines(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, Any]]:
    """Write the time that is left into each request that a client sends over a transport.

    Outside every deadline requests are sent as they are. The session outlives a deadline: a call is cut where it is
    awaited, by `async with deadline(...)` or `enforce`. The server hears of the cancellation from a client of mcp 2.

    Args:
        transport: A transport of the MCP SDK, such as `streamable_http_client(url)` or `stdio_client(parameters)`.
            What it gives beside its two streams, as one of mcp 1 does, is left out.
    """
    async with transport as (read, write, *_):
        yield read, DeadlineStream(write)


class DeadlineStream:
    """The stream of messages to a server. Each is written by the code that waits for its answer, so under its hold."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message to the server, with the time that is left if it is a request."""
        # mcp 1 has the message in a wrapper.
        message: Any = item.message
        request = getattr(message, "root", message)
        if isinstance(request, JSONRPCRequest) and request.method in _METHODS:
            params = request.params or {}
            meta = remaining_metadata(params.get("_meta"))
            if meta:
                timed = request.model_copy(update={"params": {**params, "_meta": meta}})
                item = replace(item, message=timed if request is message else type(message)(timed))
        # The SDK sends in a task of the session, in the context of this call. A request that was cut there would end
        # the session, and one that was refused there would keep the cancellation from the server.
        with hold_scope(None):
            await self._stream.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return bool(await self._stream.__aexit__(kind, error, trace))
