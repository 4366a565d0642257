"""What a cut leaves in the threads of other frameworks, and whether one can go on with it.

    for row in probe_threads(read_cases(Path("surveys/cases"), ["openai-agents"]), cache=Path(".cases")):
        print(row.framework, row.way, row.fault, row.open_tool_calls, row.next_outcome)

A run is cut four seconds after its start, by `asyncio.timeout` or by SIGKILL. Another process then opens what was
stored and sends the next message. The model refuses what its provider would (services/conversation_rules.py).
"""

from __future__ import annotations

import contextlib
import datetime
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from docmind_lab.core.errors import ServiceError
from docmind_lab.core.progress import Progress
from docmind_lab.services.server import LogClient
from surveys.agent_services import AgentFault, AgentServices
from surveys.agents import LIMIT_S, START_LIMIT_S, CaseRun, Serve, case_variables, in_a_process
from surveys.case_files import Case, made_environment
from surveys.case_process import TEXT_LIMIT, CaseProcess, Event

THREAD_FAULTS: Final[tuple[AgentFault, ...]] = ("ordinary", "sync_tool", "async_tool")
STORES: Final = {
    "openai-agents": "SQLiteSession",
    "pydantic-ai": "capture_run_messages, saved as JSON",
    "google-adk": "SqliteSessionService",
}
"""Case with a program thread.py → where it keeps its threads."""
# Who is killed cannot save its messages, where nothing but the program itself saves them.
THREAD_WAYS: Final = {
    name: ("asyncio.timeout", "kill") if name != "pydantic-ai" else ("asyncio.timeout",) for name in STORES
}
# What a cut falls into begins within a second or two, as long as it takes to import a client, and lasts six.
CUT_AFTER_S: Final = 4.0
_TRIES: Final = 3
_NEXT_MESSAGE: Final = "And what does it do to a call that waits?"


class ThreadRow(BaseModel):
    """What one cut left in a thread.

    Args:
        case: Its name.
        framework: How its users call it.
        version: Of the framework.
        store: Where the thread is kept.
        way: What cut the run.
        fault: What the cut fell into.
        repeat: Number of the run, from 1.
        cut_outcome: What the caller got from the run that was cut; "killed" where there is no caller any more.
        messages: Messages or items that the store has after the cut.
        open_tool_calls: Tool calls without a result among them.
        next_outcome: What became of the user's next message.
        next_error: Its error, in the framework's words.
        measured_on: Day, as YYYY-MM-DD.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: str
    framework: str
    version: str
    store: str
    way: str
    fault: AgentFault
    repeat: int
    cut_outcome: Literal["timeout", "killed", "error"]
    messages: int
    open_tool_calls: int
    next_outcome: Literal["answer", "error"]
    next_error: str = ""
    measured_on: str


@dataclass(frozen=True)
class _Step:
    """A process of a case, the log of its services, and the line with which it started."""

    process: CaseProcess
    log: LogClient
    started: Event

    def end(self, case: Case) -> dict[str, str]:
        """The line with which it ends. Raises: ServiceError when it does not end."""
        ended = self.process.event("end", self.started.at_s + CUT_AFTER_S + 2 * LIMIT_S)
        if ended is None:
            raise ServiceError(f"{case.name} did not end: {self.process.last_words('it printed nothing')}")
        return ended.data


def probe_threads(
    cases: Sequence[Case],
    *,
    cache: Path,
    repeats: int = 3,
    progress: Progress | None = None,
    serve: Serve = in_a_process,
) -> Iterator[ThreadRow]:
    """Cut runs, go on with what they left, and yield a row for each.

    Args:
        cases: Cases of STORES.
        cache: Folder of their environments.
        repeats: Runs of each way and fault.
        progress: Called with (runs done, all runs).
        serve: Starts the services for one run.

    Raises: NotMeasured when an environment cannot be made; ServiceError for a program that does not start or end.
    """
    cells = [
        (case, way, fault, repeat)
        for case in cases
        for way in THREAD_WAYS[case.name]
        for fault in THREAD_FAULTS
        for repeat in range(1, repeats + 1)
    ]
    for number, (case, way, fault, repeat) in enumerate(cells):
        if progress is not None:
            progress(number, len(cells))
        environment = made_environment(case, cache)
        tries = (_cut_and_go_on(case, way, fault, repeat, environment, serve) for _ in range(_TRIES))
        row = next(filter(None, tries), None)
        if row is None:
            raise ServiceError(f"{case.name}: {_TRIES} cuts missed what they are to fall into; use a quiet machine")
        yield row
    if progress is not None:
        progress(len(cells), len(cells))


def _cut_and_go_on(
    case: Case, way: str, fault: AgentFault, repeat: int, environment: Path, serve: Serve
) -> ThreadRow | None:
    """Cut a run and go on; None when the cut missed what it is to fall into, as on a slow machine."""
    run = CaseRun(case, next(iter(case.ways)), fault, repeat)
    with tempfile.TemporaryDirectory(prefix="thread-") as folder:
        tool = "sync" if fault == "sync_tool" else "async"
        thread = {"CASE_THREAD": str(Path(folder, "thread")), "CASE_WAY": way, "CASE_TOOL": tool}

        @contextlib.contextmanager
        def step(name: str, question: dict[str, str]) -> Iterator[_Step]:
            with (
                serve(AgentServices(fault)) as addresses,
                contextlib.closing(LogClient(addresses.log_url)) as log,
                tempfile.TemporaryDirectory(prefix="probe-") as scratch,
            ):
                variables = case_variables(run, addresses, environment, scratch)
                variables |= thread | question | {"CASE_STEP": name, "CASE_TIMEOUT_S": f"{CUT_AFTER_S:g}"}
                command = [str(environment / "bin" / "python"), str(case.folder / "thread.py")]
                with CaseProcess(command, variables, scratch, threading.Event()) as process:
                    started = process.event("start", time.monotonic() + START_LIMIT_S)
                    if started is None:
                        raise ServiceError(f"{case.name} did not start: {process.last_words('it printed nothing')}")
                    yield _Step(process, log, started)

        with step("cut", {}) as cut:
            if way == "kill":
                time.sleep(max(0.0, cut.started.at_s + CUT_AFTER_S - time.monotonic()))
                cut_outcome = "answer" if cut.process.has_exited else "killed"
            else:
                cut_outcome = cut.end(case)["outcome"]
            begun = Counter(row.kind for row in cut.log.rows(""))
        if cut_outcome == "answer" or (begun["llm"] < 2 and not (begun["tool"] and fault.endswith("_tool"))):
            return None
        with step("next", {"CASE_QUESTION": _NEXT_MESSAGE}) as following:
            left, ended = following.started.data, following.end(case)
    return ThreadRow(
        case=case.name,
        framework=case.framework,
        version=case.version,
        store=STORES[case.name],
        way=way,
        fault=fault,
        repeat=repeat,
        cut_outcome=cut_outcome,  # type: ignore[arg-type]  # checked by the model
        messages=left["messages"],
        open_tool_calls=left["open_tool_calls"],
        next_outcome="answer" if ended["outcome"] == "answer" else "error",
        next_error=" ".join(str(ended.get("error") or "").split())[:TEXT_LIMIT],
        measured_on=datetime.date.today().isoformat(),
    )
