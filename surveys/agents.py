"""Does an agent stop when its timeout fires? Cases are run as processes, and judged by the log of the services.

    for row in probe_agents(read_cases(Path("surveys/cases")), cache=Path(".cases")):
        print(row.case, row.way, row.fault, row.mark)

Each run has services of its own. A case says when it starts and when its caller has an answer or an error. All else is
measured from outside.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceProcess
from docmind_lab.systems.own.programs.program import SILENT, service_variables
from surveys.agent_services import AGENT_FAULTS, COMMAND, LASTS_S, TOOL_PATH, AgentFault, AgentServices
from surveys.agent_table import AgentRow, Outcome, mark_of
from surveys.case_files import Case, NotMeasured, command_of, made_environment
from surveys.case_process import LOOK_S, TEXT_LIMIT, CaseProcess

TIMEOUT_S: Final = 2.0
QUESTION: Final = "What does a timeout do to the work that goes on?"

# A large framework takes 10 s to import on a slow core.
START_LIMIT_S = 120.0
# What a timeout falls into ends 4 s after it, and so does a client's wait for its next attempt. A client may do all
# of it three times.
LIMIT_S: Final = 20.0
# Between the end of a call and the next step of a framework are milliseconds.
_QUIET_S = 1.5

Serve = Callable[[AgentServices], AbstractContextManager[ServiceAddresses]]
"""Starts the services for one run, and ends them."""

Progress = Callable[[int, int, str], None]
"""Called with (cells done, all cells, name of the next)."""


@contextlib.contextmanager
def in_a_process(options: AgentServices) -> Iterator[ServiceAddresses]:
    """The services in a process of their own."""
    with ServiceProcess(options, COMMAND) as process:
        yield process.addresses


@dataclass(frozen=True)
class CaseRun:
    """One run of a case: a way to set the timeout, what it falls into, and which repeat it is."""

    case: Case
    way: str
    fault: AgentFault
    repeat: int

    @property
    def name(self) -> str:
        """Its parts, for a line of progress."""
        return f"{self.case.name} {self.way} {self.fault}"

    @property
    def run(self) -> tuple[str, ...]:
        """What no two runs of a table share, as `AgentRow.run`."""
        return self.case.name, self.case.version, self.way, self.fault, str(self.repeat)

    @property
    def command(self) -> str:
        """What repeats it."""
        return shlex.join(
            ["python", "-m", "surveys", "agents", self.case.name, f"--way={self.way}", f"--fault={self.fault}"]
        )

    def row(self, **measured: Any) -> AgentRow:
        """The row of its run, with what was measured."""
        way = self.case.ways[self.way]
        of_way = {"way": self.way, "title": way.title, "means": way.means, "fault": self.fault, "repeat": self.repeat}
        return _row(self.case, command=self.command, **of_way, **measured)


def _row(case: Case, **more: Any) -> AgentRow:
    return AgentRow(
        case=case.name,
        framework=case.framework,
        version=case.version,
        language=case.language,
        measured_on=f"{datetime.date.today():%Y-%m-%d}",
        **more,
    )


def cells_of(cases: Sequence[Case], ways: Sequence[str], faults: Sequence[str], repeats: int) -> list[CaseRun]:
    """The cells of a probe, in the order of the cases.

    Args:
        cases: The cases.
        ways: Names of the ways that are wanted; all when empty.
        faults: Names of the faults that are wanted; all when empty.
        repeats: Runs of each.

    Raises: ConfigurationError for a way or a fault that there is none of, and for repeats below 1.
    """
    known = sorted({way for case in cases for way in case.ways})
    for option, wanted, there_are in (("--way", ways, known), ("--fault", faults, AGENT_FAULTS)):
        unknown = sorted(set(wanted) - set(there_are))
        if unknown:
            raise ConfigurationError(
                f"{option} {', '.join(unknown)}: there is no such; there are {', '.join(there_are)}"
            )
    if repeats < 1:
        raise ConfigurationError(f"--repeats must be 1 or more, not {repeats}")
    return [
        CaseRun(case, name, fault, repeat)
        for case in cases
        if not case.not_measured
        for name, way in case.ways.items()
        if not ways or name in ways
        for fault in way.faults
        if not faults or fault in faults
        for repeat in range(1, repeats + 1)
    ]


def probe_agents(
    cases: Sequence[Case],
    *,
    cache: Path,
    ways: Sequence[str] = (),
    faults: Sequence[str] = (),
    repeats: int = 1,
    side_by_side: int = 1,
    known: Collection[tuple[str, ...]] = (),
    progress: Progress | None = None,
    serve: Serve = in_a_process,
) -> Iterator[AgentRow]:
    """Run cases, and yield the row of each run as it ends.

    Args:
        cases: The cases.
        cache: Folder of their environments.
        ways: Names of the ways that are wanted; all when empty.
        faults: Names of the faults that are wanted; all when empty.
        repeats: Runs of each cell.
        side_by_side: Runs at a time.
        known: Runs that are not made again, as `AgentRow.run`.
        progress: Called with (cells done, all cells, name of the next).
        serve: Starts the services for one run.

    Raises: ConfigurationError for options that cannot be used.
    """
    tell = progress or (lambda done, total, name: None)
    cells = [cell for cell in cells_of(cases, ways, faults, repeats) if cell.run not in known]
    environments: dict[str, Path] = {}
    for case in cases:
        tell(0, len(cells), f"packages of {case.name}")
        try:
            environments[case.name] = made_environment(case, cache)
            command_of(case, environments[case.name])
        except NotMeasured as error:
            environments.pop(case.name, None)
            yield _row(case, mark="not measured", error=str(error), command=f"python -m surveys agents {case.name}")
    cells = [cell for cell in cells if cell.case.name in environments]
    stop = threading.Event()
    with ThreadPoolExecutor(max(1, side_by_side), thread_name_prefix="probe") as pool:
        try:
            waiting = list(cells)
            running: dict[Future[AgentRow], CaseRun] = {}
            done = 0
            while waiting or running:
                while waiting and len(running) < max(1, side_by_side):
                    cell = waiting.pop(0)
                    tell(done, len(cells), cell.name)
                    running[pool.submit(_run, cell, environments[cell.case.name], stop, serve)] = cell
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    done += 1
                    yield future.result()
            tell(done, len(cells), "")
        finally:
            # Also when whoever asks for rows wants no more of them: what runs is ended at its next look.
            stop.set()


def _run(cell: CaseRun, environment: Path, stop: threading.Event, serve: Serve) -> AgentRow:
    try:
        return run_cell(cell, environment, stop, serve)
    except ServiceError:
        # Services that did not start, or ended, say nothing of the case: it is run once more.
        return run_cell(cell, environment, stop, serve)


def run_cell(
    cell: CaseRun, environment: Path, stop: threading.Event | None = None, serve: Serve = in_a_process
) -> AgentRow:
    """Run a case once, and return what it did.

    Args:
        cell: The case, the way, the fault and the repeat.
        environment: Folder with the packages of the case.
        stop: Ends the run early when it is set.
        serve: Starts the services.
    """
    stop = stop or threading.Event()
    with (
        serve(AgentServices(cell.fault)) as addresses,
        tempfile.TemporaryDirectory(prefix="probe-") as scratch,
        contextlib.closing(LogClient(addresses.log_url)) as log,
        CaseProcess(
            command_of(cell.case, environment), case_variables(cell, addresses, environment, scratch), scratch, stop
        ) as process,
    ):
        started = process.event("start", time.monotonic() + START_LIMIT_S)
        if started is None:
            return cell.row(mark="error", timeout_s=TIMEOUT_S, error=process.last_words("it did not start"))
        ended = process.event("end", started.at_s + TIMEOUT_S + LIMIT_S)
        rows = _rows_when_quiet(log, started.at_s, stop)
        read_at_s = time.monotonic()
        has_died = process.has_exited
        exit_s = process.leave()
        timeout_at_s = counts_from(cell, started.at_s, rows) + TIMEOUT_S
        after = _After.of(rows, timeout_at_s, read_at_s)
        outcome = None if ended is None else _outcome(ended.data)
        late_s = None if ended is None else ended.at_s - timeout_at_s
        mark, odd = mark_of(
            late_s=late_s,
            outcome=outcome,
            begun_after=after.model_calls + after.tools,
            longest_after_s=after.longest_s,
        )
        words = "" if ended is None else " ".join(str(ended.data.get("error") or "").split())[:TEXT_LIMIT]
        if ended is None and has_died:
            mark, words = "error", process.last_words("it ended without an answer")
        return cell.row(
            mark=mark,
            timeout_s=TIMEOUT_S,
            ended_after_s=None if ended is None else round(ended.at_s - started.at_s, 3),
            late_s=_rounded(late_s),
            outcome=outcome,
            error="; ".join(filter(None, (odd, words))),
            model_calls_after=after.model_calls,
            model_s_after=_rounded(after.model_s),
            tokens_after=after.tokens,
            tools_after=after.tools,
            tool_s_after=_rounded(after.tool_s),
            exit_s=_rounded(exit_s),
            exited=exit_s is not None,
            left="" if ended is None or ended.data.get("left") is None else json.dumps(ended.data["left"]),
        )


def counts_from(cell: CaseRun, started_at_s: float, rows: Sequence[RequestRow]) -> float:
    """The instant from which the timeout of a cell counts: the start, or where the step or the request began."""
    way = cell.case.ways[cell.way]
    if way.counts_from == "start":
        return started_at_s
    # The first model call decides for the tool or the sub-agent. The slow model call follows the first tool.
    before = "tool" if way.counts_from == "request" or not cell.fault.endswith(("_tool", "_agent")) else "llm"
    step_at_s = min((row.ended_at for row in rows if row.kind == before and row.ended_at is not None), default=None)
    if step_at_s is None:
        return started_at_s
    if way.counts_from == "step":
        return step_at_s
    return min(
        (row.received_at for row in rows if row.kind == "llm" and row.received_at >= step_at_s), default=step_at_s
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _outcome(data: dict[str, Any]) -> Outcome:
    outcome = data.get("outcome")
    return cast("Outcome", outcome) if outcome in ("answer", "timeout") else "error"


def case_variables(cell: CaseRun, addresses: ServiceAddresses, environment: Path, scratch: str) -> dict[str, str]:
    """The environment of a case: nothing of this process's own but where programs are."""
    way = cell.case.ways[cell.way]
    # Where an async tool cannot be had, as in plain synchronous code, the tool is a plain function in every cell.
    has_async_tool = cell.fault != "sync_tool" and "async_tool" in way.faults
    # This package is on no index: a way that needs it finds it where it is.
    own = {"PYTHONPATH": str(Path(__file__).parents[1])} if way.means == "enforce" else {}
    return {
        **SILENT,
        **own,
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **service_variables(addresses.openai_base_url.removesuffix("/v1")),
        "CASE_QUESTION": QUESTION,
        "CASE_WAY": cell.way,
        "CASE_TIMEOUT_S": f"{TIMEOUT_S:g}",
        "CASE_TOOL_URL": addresses.log_url.removesuffix("/log") + TOOL_PATH,
        "CASE_TOOL": "async" if has_async_tool else "sync",
        "CASE_AGENT": "sub" if cell.fault == "sub_agent" else "single",
        "CASE_STREAM": "1" if cell.fault == "stream" else "0",
    }


def _rows_when_quiet(log: LogClient, started_at_s: float, stop: threading.Event) -> list[RequestRow]:
    """The rows of the services, when nothing has gone on for a while and nothing can come any more, or at the limit."""
    # A client that was refused just before the timeout comes again so long after it.
    no_earlier_s = started_at_s + TIMEOUT_S + LASTS_S
    limit_at_s = started_at_s + TIMEOUT_S + LIMIT_S
    while True:
        rows = log.rows("")
        now = time.monotonic()
        last_s = max((now if row.ended_at is None else row.ended_at for row in rows), default=started_at_s)
        is_quiet = now >= max(no_earlier_s, last_s + _QUIET_S)
        if is_quiet or now >= limit_at_s or stop.wait(LOOK_S):
            return rows


@dataclass(frozen=True)
class _After:
    """What the log of the services has after a timeout. longest_s: of the call or execution that went on longest."""

    model_calls: int
    model_s: float
    tokens: int
    tools: int
    tool_s: float
    longest_s: float

    @classmethod
    def of(cls, rows: Sequence[RequestRow], timeout_at_s: float, read_at_s: float) -> Self:
        """Count it. read_at_s: When the rows were read; what was open then went on at least until then."""
        begun = {"llm": 0, "tool": 0}
        seconds = {"llm": 0.0, "tool": 0.0}
        longest_s = 0.0
        tokens = 0
        for row in rows:
            if row.kind not in begun:
                continue
            ended_at_s = read_at_s if row.ended_at is None else row.ended_at
            after_s = max(0.0, ended_at_s - max(row.received_at, timeout_at_s))
            begun[row.kind] += row.received_at > timeout_at_s
            seconds[row.kind] += after_s
            longest_s = max(longest_s, after_s)
            tokens += sum(_tokens_after(span, timeout_at_s) for span in row.token_spans)
        return cls(begun["llm"], seconds["llm"], tokens, begun["tool"], seconds["tool"], longest_s)


def _tokens_after(span: tuple[float, float, int], at_s: float) -> int:
    """Tokens of a span after an instant; token i of n comes at its beginning + its length × i / n."""
    begun_s, ended_s, tokens = span
    if ended_s <= at_s:
        return 0
    return tokens - int(tokens * max(0.0, at_s - begun_s) / (ended_s - begun_s))
