"""A program as a system under a deadline: its question on standard input, its answer on standard output.

Its process is, with all that it starts, a process group of its own, which is signalled and ended as one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.settings import DEADLINE_VARIABLE
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.asgi_messages import RUN_PATH
from docmind_lab.services.openai_service import MODEL_NAME

# What is not a member's own business: how soon the end of the last one is seen.
_LOOK_S = 0.02
_GONE = frozenset("ZX")

_running: set[ProcessGroup] = set()


class ProcessGroup:
    """A process in a session of its own, with all that it starts and that stays in its group.

    command: the program and its arguments; no shell reads them. folder: its working directory; None for the caller's.
    streams: stdin, stdout and stderr, as `subprocess` takes them.

    Raises: OSError when it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        folder: str | None = None,
        **streams: int | IO[Any],
    ) -> None:
        own_session: dict[str, Any] = {"start_new_session": True, **streams}
        self.process = subprocess.Popen(list(command), env=dict(variables), cwd=folder, **own_session)
        self._killed = threading.Event()
        _running.add(self)

    def signal(self, number: int) -> None:
        """Send a signal to every process of the group; a group that has ended gets none."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def is_alive(self) -> bool:
        """Return whether some process of the group is still at work."""
        if self.process.poll() is None:
            return True
        try:
            os.killpg(self.process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        # One that has ended stays in the group until its parent asks for its exit code.
        return not sys.platform.startswith("linux") or _has_member(self.process.pid)

    def wait_until_over(self) -> None:
        """Return when the last process of the group has ended, or `kill` was called."""
        self.process.wait()
        while self.is_alive() and not self._killed.wait(_LOOK_S):
            pass

    def kill(self) -> None:
        """End every process of the group at once, and wait for the first of them."""
        self._killed.set()
        self.signal(signal.SIGKILL)
        self.process.wait()
        _running.discard(self)


def _has_member(group: int) -> bool:
    """Return whether a process of the group is there that has not ended, from Linux's /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            # The name of a program, in parentheses, may hold spaces.
            state, _, of = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if of == str(group) and state not in _GONE:
                return True
    return False


@atexit.register
def kill_all() -> None:
    """End every process group that is still there."""
    for group in list(_running):
        group.kill()


ROLE = "program"
"""The role of a program in the tables, and in faults (`hang:program`)."""

TIMEOUT_WORD = "{timeout}"
TIMEOUT_VARIABLE = "DECISION_TIMEOUT_S"
# Under an alternative that leaves a program without a timeout, one that it never reaches.
_NO_TIMEOUT_S = 86_400
_LEAST_S = 0.001
_MOST_TEXT = 1_000_000

# A port that nothing listens on: what tries to leave the machine fails at once.
_NOWHERE = "http://127.0.0.1:9"
SILENT: Final = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MASTRA_TELEMETRY_DISABLED": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}
"""Variables with which frameworks send nothing of what they do."""

ANY_KEY: Final = "none-is-needed"


def service_variables(root: str) -> dict[str, str]:
    """Return the variables by which clients of models find the simulated services, with a key that is none.

    root: address in front of `/v1`, without a slash at its end.
    """
    keys = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    return {
        **dict.fromkeys(keys, ANY_KEY),
        "OPENAI_BASE_URL": f"{root}/v1",
        "OPENAI_API_BASE": f"{root}/v1",
        "OPENAI_MODEL": MODEL_NAME,
        "AZURE_OPENAI_ENDPOINT": root,
        "ANTHROPIC_BASE_URL": root,
        "GOOGLE_GEMINI_BASE_URL": root,
        "OLLAMA_HOST": root,
        "QDRANT_URL": root,
    }


@dataclass(frozen=True)
class Program:
    """A command that answers one question.

    command: the program and its arguments. `{timeout}` in one of them stands for its own timeout, in seconds.
    """

    command: tuple[str, ...]

    @classmethod
    def of(cls, command: str | Sequence[str]) -> Program:
        """Return the program of a command. Raises: ConfigurationError for one that cannot be started."""
        try:
            words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)
        except ValueError as error:
            raise ConfigurationError(f"command {command!r} cannot be read: {error}") from error
        if not words or not all(isinstance(word, str) for word in words):
            raise ConfigurationError('command must be a list of texts, such as ["node", "agent.mjs"]')
        if os.name != "posix":
            raise ConfigurationError(
                "command needs process groups, which this system does not have; use Linux or macOS"
            )
        if shutil.which(words[0]) is None:
            raise ConfigurationError(
                f"command: no program {words[0]!r} is found; check its path, and that it may be run"
            )
        return cls(words)

    @property
    def has_timeout(self) -> bool:
        """Whether its command has a place for its own timeout."""
        return any(TIMEOUT_WORD in word for word in self.command)

    def words(self, own_timeout_s: float | None) -> list[str]:
        """Return the command with its own timeout in its place; None for none."""
        seconds = f"{_NO_TIMEOUT_S if own_timeout_s is None else own_timeout_s:g}"
        return [word.replace(TIMEOUT_WORD, seconds) for word in self.command]


class ProgramFailed(Exception):
    """Raised by nobody: the error of a run whose program ended without an answer."""


class ProgramRun:
    """One run of a program: a process that answers one question, once it is started.

    root: address of the services. count_requests: returns how many requests of the run have reached them. `exited` is
    set when the process has ended, whatever it has started goes on.
    """

    def __init__(self, program: Program, recorder: Recorder, root: str, count_requests: Callable[[], int]) -> None:
        self.program, self.recorder, self.root = program, recorder, root
        self.requests = 0
        self.exited = threading.Event()
        self._count_requests = count_requests
        self._group: ProcessGroup | None = None
        self._end: threading.Timer | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="docmind-program-")
        self._files = {name: Path(self._scratch.name, name) for name in ("stdin", "stdout", "stderr")}

    def start(
        self, inputs: Mapping[str, Any], own_timeout: Deadline | None = None, told: Deadline | None = None
    ) -> None:
        """Start the process.

        inputs: the question, and further keys. own_timeout: what its own timeout is to keep; None for none. told: what
        its environment says of a deadline; None for nothing.

        Raises: ConfigurationError when it cannot be started.
        """
        root = f"{self.root}{RUN_PATH}/{quote(self.recorder.run_id, safe='')}/{self.recorder.seed}/{ROLE}"
        variables = {**os.environ, **SILENT, **service_variables(root)}
        # That of a program around this one is not for it.
        variables.pop(DEADLINE_VARIABLE, None)
        own_timeout_s = None if own_timeout is None else max(_LEAST_S, own_timeout.remaining())
        if own_timeout_s is not None:
            variables[TIMEOUT_VARIABLE] = f"{own_timeout_s:g}"
        if told is not None:
            variables[DEADLINE_VARIABLE] = f"{max(_LEAST_S, told.remaining()):.3f}"
        self._files["stdin"].write_text(_question_text(inputs), encoding="utf-8")
        self.recorder.event("node_started", ROLE, node=ROLE)
        # Files, and no pipes: what the process started may hold a pipe open when the process itself has ended.
        with (
            self._files["stdin"].open("rb") as stdin,
            self._files["stdout"].open("wb") as stdout,
            self._files["stderr"].open("wb") as stderr,
        ):
            try:
                words = self.program.words(own_timeout_s)
                self._group = ProcessGroup(words, variables, stdin=stdin, stdout=stdout, stderr=stderr)
            except OSError as error:
                raise ConfigurationError(f"command: {self.program.command[0]!r} cannot be started: {error}") from error
        self.recorder.work_started(self, "program")
        threading.Thread(target=self._watch, name="docmind-program", daemon=True).start()

    @property
    def group(self) -> ProcessGroup:
        """The process, with all that it has started."""
        assert self._group is not None, "the program was started"
        return self._group

    def _watch(self) -> None:
        recorder = self.recorder
        self.group.process.wait()
        ended_at = recorder.clock.now()
        self.exited.set()
        goes_on = self.group.is_alive()
        # Services that are gone have no run to look into.
        with contextlib.suppress(ServiceError):
            self.requests = self._count_requests()
        if goes_on:
            self.group.wait_until_over()
            ended_at = recorder.clock.now()
        outcome = "ok" if self.code == 0 else self.error_type
        recorder.event("node_ended", ROLE, at=ended_at, node=ROLE, outcome=outcome)
        recorder.work_ended(self)

    def kill_rest_at(self, deadline: Deadline) -> None:
        """Have what the process has started, and what is still there at the deadline, end then. Returns at once."""
        if self.group.is_alive():
            self._end = threading.Timer(max(0.0, deadline.remaining()), self.group.signal, (signal.SIGKILL,))
            self._end.daemon = True
            self._end.start()

    def close(self) -> None:
        """End the process and all that it has started, and remove its files."""
        if self._end is not None:
            self._end.cancel()
        if self._group is not None:
            self._group.kill()
        self._scratch.cleanup()

    @property
    def code(self) -> int:
        """Its exit code; the negative number of the signal that ended it."""
        return self.group.process.wait()

    @property
    def error_type(self) -> str:
        """How a failure of it is called in the tables."""
        return f"ExitCode{self.code}" if self.code else "NoAnswer"

    def text(self) -> str:
        """Return what it has written to standard output so far."""
        return _read(self._files["stdout"])

    def failure(self) -> ProgramFailed:
        """Return its failure in words, with the last line of its standard error."""
        lines = [line.strip() for line in _read(self._files["stderr"]).splitlines() if line.strip()]
        how = f"exit code {self.code}" if self.code else "nothing on standard output"
        return ProgramFailed(f"{how}{f': {lines[-1]}' if lines else ''}")


def _question_text(inputs: Mapping[str, Any]) -> str:
    """Return what a program reads: the question, or a JSON object if there are further keys."""
    keywords = inputs.get("keywords") or {}
    question = str(inputs["question"])
    return json.dumps({"question": question, **keywords}) + "\n" if keywords else f"{question}\n"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_TEXT).decode("utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""
