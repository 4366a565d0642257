"""The checkpointer that a user's function makes for one trial, and what becomes of it when the process is killed.

A function without a parameter makes one that lives in the process, such as one in memory. A function with a parameter
is given a folder of the trial's own and opens a store outside the process there, such as a file. That store is opened
anew by the process that goes on after a kill, so it has what was committed and nothing else.
"""

from __future__ import annotations

import contextlib
import inspect
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.crash_test.probes import ProbeSaver
from docmind_lab.virtual_time import outside_simulation
from docmind_lab.workloads.own.outside_saver import OutsideSaver

# Virtual seconds; a connection on an event loop that is held up is not waited for.
_CLOSE_S = 1.0
_GIVEN_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class OpenedSaver:
    """Opens the checkpointer of one trial below what watches it.

    make: the user's function; None where the graph has its checkpointer already.
    """

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self._make = make
        self._is_outside = make is not None and _needs_a_folder(make)
        # Before virtual time begins, so that it is no temporary file of the run.
        self._folder = tempfile.mkdtemp(prefix="docmind-crash-") if self._is_outside else ""
        self._made: BaseCheckpointSaver[Any] | None = None

    def open(self, probe: ProbeSaver) -> None:
        """Make the checkpointer and put it below the probe. Raises: ConfigurationError for what is none."""
        if self._make is None:
            return
        if inspect.iscoroutinefunction(self._make):
            made = shared_loop().run(self._make(*self._arguments))
        elif self._is_outside:
            with outside_simulation():
                made = self._make(*self._arguments)
        else:
            made = self._make()
        if not isinstance(made, BaseCheckpointSaver):
            raise ConfigurationError(
                f"checkpointer: the function makes a {type(made).__name__}, not a checkpointer of LangGraph"
            )
        self._made = made
        is_reached_in_real_time = self._is_outside and not inspect.iscoroutinefunction(self._make)
        probe.put_above(OutsideSaver(made) if is_reached_in_real_time else made)

    def open_again(self, probe: ProbeSaver) -> None:
        """Open a store outside the process anew, as a process does that goes on after a kill."""
        if self._is_outside:
            _drop_connection(self._connection)
            self.open(probe)

    def close(self, thread_id: str) -> None:
        """Delete the thread and close the connection of a store outside the process, in the run that opened it."""
        if self._is_outside and not inspect.iscoroutinefunction(self._make) and self._made is not None:
            with contextlib.suppress(Exception), outside_simulation():
                self._made.delete_thread(thread_id)
        close = getattr(self._connection, "close", None) if self._is_outside else None
        with contextlib.suppress(Exception):
            if inspect.iscoroutinefunction(close):
                shared_loop().submit(close()).result(timeout=_CLOSE_S)
            elif close is not None:
                with outside_simulation():
                    close()

    def remove(self) -> None:
        """Remove the folder of the store."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _connection(self) -> Any:
        return getattr(self._made, "conn", None)  # as LangGraph's own checkpointers call it

    @property
    def _arguments(self) -> tuple[str, ...]:
        return (self._folder,) if self._is_outside else ()


def _needs_a_folder(make: Callable[..., Any]) -> bool:
    """Whether a function has to be given something: one of Python's own, or one with defaults, has not."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:
        return False
    return any(each.default is each.empty and each.kind in _GIVEN_BY_PLACE for each in parameters)


def _drop_connection(connection: Any) -> None:
    """Let a connection go as a process does that is killed: what was not committed is discarded."""
    with contextlib.suppress(Exception), outside_simulation():
        if hasattr(connection, "_connection"):
            # One of aiosqlite, whose thread has ended with its run. Without anything below it, it asks it for nothing.
            connection._connection = None
        else:
            connection.close()
