"""Whether the work of an MCP tool stops when its caller gives up: a timeout, a cancelled task, a closed session.

    probe_mcp("http://127.0.0.1:8000/mcp", tool="fetch", arguments={"url": "{work}"})
    probe_mcp("python examples/mcp_server.py", tool="fetch_async", arguments={"url": "{work}"})

`{work}` stands for an address of the lab's own service, which takes six seconds to answer and logs when whoever asked
has left. So the tool's work is seen from outside, whatever the MCP server says of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import shlex
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import pandas as pd

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.numbers import require_count
from docmind_lab.core.progress import Progress
from docmind_lab.core.server_behaviour import WorkEnds
from docmind_lab.core.text import markdown_table
from docmind_lab.services.endpoints import ENDPOINTS_PATH
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess

WORK: Final = "{work}"
"""What stands for the address of the work in the arguments of a tool."""

GivingUp = Literal["timeout", "cancelled task", "closed session"]
"""How the caller gives up: by the client's own timeout of the request, by cancelling its task, or by leaving."""

_WAITS_S: Final = 2.0
_LASTS_S: Final = 6.0
_CALLER_LIMIT_S: Final = 2 * _LASTS_S
_WORK_ROW: Final = f'[[endpoint]]\nhost = "work"\ntext = "The work is done."\nlatency = {_LASTS_S}\n'


@dataclass(frozen=True)
class ToolTrial:
    """One call of a tool whose caller gave up. Durations in seconds.

    transport: "stdio" or "http". way: how the caller gave up. repeat: number of the trial of this way, from 1 on.
    caller_after_s: from giving up until the caller could go on. cancel_sent: whether the client sent
    `notifications/cancelled`. work_after_s: from giving up until the tool's work ended. work_ends: whether it was ended
    before its end, or went on to it. error: what the caller got.
    """

    server: str
    transport: str
    tool: str
    way: GivingUp
    repeat: int
    caller_after_s: float
    cancel_sent: bool
    work_after_s: float
    work_ends: WorkEnds
    error: str


def probe_mcp(
    server: str,
    *,
    tool: str,
    arguments: Mapping[str, Any],
    repeats: int = 3,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Call a tool of an MCP server, give up in each way, and see when its work ends.

    server: address of an MCP server (Streamable HTTP), or the command that starts one on stdio. tool: a tool that asks
    an address that it is given. arguments: its arguments; a text that is or contains `{work}` gets the address.
    repeats: trials of each way. progress: called with (trials done, all trials).

    Returns: A row for each trial: `measured_on` and the fields of `ToolTrial`.

    Raises: ConfigurationError for arguments without `{work}`, or where the package mcp is missing; ServiceError when
        the server cannot be used, or its tool does not ask the address.
    """
    if WORK not in json.dumps(dict(arguments)):
        raise ConfigurationError(f"arguments must hold {WORK}, the address that the tool is to ask: got {arguments}")
    require_count("repeats", repeats)
    ways = [(way, repeat) for way in get_args(GivingUp) for repeat in range(1, repeats + 1)]
    trials = []
    with _served_work() as (address, log):
        filled = json.loads(json.dumps(dict(arguments)).replace(WORK, address))
        for number, (way, repeat) in enumerate(ways):
            if progress is not None:
                progress(number, len(ways))
            try:
                trials.append(asyncio.run(_trial(server, tool, filled, way, repeat, log)))
            except BaseExceptionGroup as group:
                # The client's task group wraps what is raised while its session is open.
                raise _first_of(group) from group
        if progress is not None:
            progress(len(ways), len(ways))
    frame = pd.DataFrame([asdict(trial) for trial in trials])
    frame.insert(0, "measured_on", datetime.datetime.now(datetime.UTC).date().isoformat())
    return frame


@contextlib.contextmanager
def _served_work() -> Iterator[tuple[str, LogClient]]:
    """Yield the address of the work, and the log that has when whoever asked for it has left."""
    with tempfile.TemporaryDirectory(prefix="docmind-probe-") as folder:
        rows = Path(folder, "work.toml")
        rows.write_text(_WORK_ROW, encoding="utf-8")
        with ServiceProcess(ServiceOptions(endpoints=str(rows))) as service:
            root = service.addresses.openai_base_url.removesuffix("/v1")
            with contextlib.closing(LogClient(service.addresses.log_url)) as log:
                yield f"{root}{ENDPOINTS_PATH}work/?query=work", log


@contextlib.asynccontextmanager
async def _watched(transport: Any, methods: list[str]) -> AsyncIterator[tuple[Any, Any]]:
    """Open a transport that notes the method of each message to the server."""
    # Function-level: of the extra `mcp`.
    from docmind_lab.alternatives.enforcement.wire.mcp import DeadlineStream  # noqa: PLC0415

    class NotingStream(DeadlineStream):
        async def send(self, item: Any, /) -> None:
            methods.append(str(getattr(item.message, "method", "")))
            await super().send(item)

    async with transport as (read, write):
        yield read, NotingStream(write)


def _transport(server: str) -> tuple[str, Any]:
    try:
        # Function-level: of the extra `mcp`.
        from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "probing MCP tools needs the package mcp; install docmind_lab with the extra mcp"
        ) from error
    if server.startswith(("http://", "https://")):
        return "http", streamable_http_client(server)
    program, *words = shlex.split(server)
    return "stdio", stdio_client(StdioServerParameters(command=program, args=words))


async def _trial(
    server: str, tool: str, arguments: Mapping[str, Any], way: GivingUp, repeat: int, log: LogClient
) -> ToolTrial:
    """One call of the tool, in a session of its own."""
    name, transport = _transport(server)
    from mcp import Client  # noqa: PLC0415 - as above

    methods: list[str] = []
    async with contextlib.AsyncExitStack() as session:
        try:
            client = await session.enter_async_context(Client(_watched(transport, methods)))
        except Exception as error:
            raise ServiceError(f"{server} does not answer as an MCP server: {_words_of(error)}") from error
        info = client.server_info
        begun_s = time.monotonic()
        call = asyncio.ensure_future(
            client.call_tool(tool, dict(arguments), read_timeout_seconds=_WAITS_S if way == "timeout" else None)
        )
        left_s = begun_s + _WAITS_S
        await asyncio.wait([call], timeout=left_s - time.monotonic())
        if way == "closed session":
            call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            left_s = time.monotonic()
            # In this task, which has opened it.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CALLER_LIMIT_S):
                    await session.aclose()
        elif way == "cancelled task":
            left_s = time.monotonic()
            call.cancel()
        reached_caller = await _error_of(call)
        caller_after_s = time.monotonic() - left_s
        row = await asyncio.to_thread(_work_row, log, begun_s)
        if row is None or row.ended_at is None:
            text = reached_caller or " ".join(str(getattr(part, "text", "")) for part in call.result().content)
            raise ServiceError(
                f"{tool} did not ask the address that {WORK} stands for within {_WAITS_S:g} s; its caller got: {text}"
            )
    after_s = max(0.0, row.ended_at - left_s)
    return ToolTrial(
        "unnamed" if info is None else f"{info.name} {info.version}",
        name,
        tool,
        way,
        repeat,
        caller_after_s,
        "notifications/cancelled" in methods,
        after_s,
        "at_its_end" if row.outcome == "ok" else "at_once",
        reached_caller,
    )


async def _error_of(call: asyncio.Future[Any]) -> str:
    """What the caller of the tool got; empty for an ordinary result. Raises: ServiceError where it got nothing."""
    done, _ = await asyncio.wait([call], timeout=_CALLER_LIMIT_S)
    if not done:
        call.cancel()
        raise ServiceError(f"the caller of the tool still waited {_CALLER_LIMIT_S:.0f} s after it had given up")
    if call.cancelled():
        return "CancelledError"
    error = call.exception()
    return "" if error is None else _words_of(error)


def _work_row(log: LogClient, since_s: float) -> RequestRow | None:
    """The row of the tool's work, when that is over; None where the tool did not ask for any."""
    rows = log.rows("", 2 * _LASTS_S)
    # A tool may ask for other things first, such as robots.txt.
    work = [row for row in rows if row.kind == "tool" and row.received_at >= since_s and row.status != 404]
    return work[-1] if work else None


def _first_of(error: BaseException) -> BaseException:
    return _first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _words_of(error: BaseException) -> str:
    first = _first_of(error)
    return f"{type(first).__name__}: {first}".strip(": ")


def as_markdown(trials: pd.DataFrame) -> str:
    """A table with a row for each tool and way of giving up.

    trials: as `probe_mcp` returns them, of one tool or several.
    """
    columns = ["server", "transport", "tool", "way", "the work", "the caller goes on after", "cancellation sent"]
    cells = []
    for names, rows in trials.groupby(columns[:4], sort=False):
        after_s, caller_s = rows["work_after_s"].max(), rows["caller_after_s"].max()
        ends = set(rows["work_ends"])
        verb = {frozenset({"at_once"}): "stops within", frozenset({"at_its_end"}): "goes on to its end,"}
        work = f"{verb.get(frozenset(ends), 'stops or goes on, up to')} {max(after_s, 0.01):.2f} s"
        sent = {frozenset({True}): "yes", frozenset({False}): "no"}.get(frozenset(rows["cancel_sent"]), "at times")
        cells.append([*names, work, f"{max(caller_s, 0.01):.2f} s", sent])
    return markdown_table(columns, cells, range(len(columns))) + "\n"
