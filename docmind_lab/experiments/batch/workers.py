"""Executors that compute cells: processes that stay warm, or this process."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from multiprocessing import resource_tracker
from typing import Any, Self, TypeVar

from loky import ProcessPoolExecutor, cpu_count, get_reusable_executor
from tqdm.std import tqdm

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_count

Result = TypeVar("Result")

# Linear algebra with a thread for each core would fight over the cores that the workers are on already.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

# Named by a test runner for each test, and read by no graph.
_NAMES_OF_A_MOMENT = {"PYTEST_CURRENT_TEST"}

# A graph that goes by the order of a set has the same order in all workers, and the next time.
_HASH_SEED = "PYTHONHASHSEED"
_SAME_HASHES = "0"

# What semaphores raise where /dev/shm is absent, read-only, full or not ours.
_SHARED_MEMORY_ERRORS = {errno.ENOENT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.ENOSYS}

# A process that has to import the stack first is worth it from about so many runs on.
_FEW_RUNS = 24
# Kept for the next comparison of a notebook or panel; then the memory is given back.
_KEPT_WARM_S = 300
# How often a worker looks whether its parent lives.
_LOOK_S = 1.0


def begin_worker(parent_id: int) -> None:
    """Make this process end within about a second after its parent ends. For the initializer of a pool.

    A parent that was killed cannot tell its workers, which would wait for ever for the next cell. A worker that is
    killed cannot give back a semaphore of the system, so progress bars get an ordinary lock. Ctrl-C is the parent's.
    """
    tqdm.set_lock(threading.RLock())
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_watch, args=(parent_id,), name="docmind-parent-watch", daemon=True).start()


def _watch(parent_id: int) -> None:
    while os.getppid() == parent_id:
        time.sleep(_LOOK_S)
    # Nobody is left to hear of anything that the usual way out would do.
    os._exit(1)


class InThisProcess(Executor):
    """An executor that runs each function at once, inside `submit`; for debugging, or where processes are forbidden."""

    def submit(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Run the function now and return a future that is already done."""
        future: Future[Result] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - an executor hands whatever is raised to the future
            future.set_exception(error)
        return future


def _worker_options() -> dict[str, Any]:
    seed = os.environ.get(_HASH_SEED, "")
    environment = _ENVIRONMENT | {_HASH_SEED: seed if seed.isdecimal() else _SAME_HASHES}
    # Processes kept warm are started anew when anything in here differs: a module may have read it at its import.
    inherited = {name: value for name, value in os.environ.items() if name not in _NAMES_OF_A_MOMENT}
    return {"env": inherited | environment, "initializer": begin_worker, "initargs": (os.getpid(),)}


class Workers:
    """A context manager over an executor, which is made by a factory and remade when one of its workers stalls.

    It is left as it is when the block ends well, for the next user of the same one. window: how many cells are handed
    out at once; None for two for each worker: they keep it busy, and more would only delay a stop.
    """

    def __init__(self, make: Callable[[], Executor], window: int | None = None) -> None:
        self._make = make
        self._executor = self._new_executor()
        if window is None:
            # What is done where it is asked for is done before the next is asked for, and is to be kept by then.
            is_here = isinstance(self._executor, InThisProcess)
            window = 1 if is_here else 2 * getattr(self._executor, "_max_workers", 1)
        self.window = window

    @property
    def is_cold(self) -> bool:
        """Whether processes have to start before anything can be computed."""
        return isinstance(self._executor, ProcessPoolExecutor) and not getattr(self._executor, "_processes", None)

    def submit(self, function: Callable[..., Result], *args: Any) -> Future[Result]:
        """Submit a function to the executor. Raises: ConfigurationError when the system lets no process be started."""
        with _explaining_shared_memory_errors():
            if not isinstance(self._executor, ProcessPoolExecutor):
                return self._executor.submit(function, *args)
            # A process that this starts would print a traceback if Ctrl-C came while it imports. The tracker of
            # resources comes first: it unblocks the signal when it is started.
            resource_tracker.ensure_running()
            heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                future: Future[Result] = self._executor.submit(_in_folder, os.getcwd(), function, *args)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, heard)
            return future

    def _new_executor(self) -> Executor:
        with _explaining_shared_memory_errors():
            return self._make()

    def replace(self) -> None:
        """Replace the executor by a new one; the old processes end, and the cells they had under way are lost."""
        self._end()
        self._executor = self._new_executor()

    def _end(self) -> None:
        if isinstance(self._executor, ProcessPoolExecutor):
            self._executor.shutdown(wait=True, kill_workers=True)
        else:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # An early exit leaves cells under way, which would keep the next comparison waiting.
        if kind is not None:
            self._end()


def _in_folder(folder: str, function: Callable[..., Result], *args: Any) -> Result:
    """Call the function in a working directory. A process kept warm has that of the comparison it was started for."""
    if os.getcwd() != folder:
        os.chdir(folder)
    return function(*args)


@contextlib.contextmanager
def _explaining_shared_memory_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _SHARED_MEMORY_ERRORS:
            raise ConfigurationError(
                f"worker processes need shared memory, which cannot be used ({error.strerror}); make /dev/shm writable "
                "and large enough, in a container by --shm-size=256m, or use a machine where it is"
            ) from error
        raise


def workers_for(runs: int, count: int | None = None) -> Workers:
    """Return workers for this many runs: warm processes, or this process for a single worker or a few runs.

    count: of processes; None for one on each core. Raises: ConfigurationError for a count below 1.
    """
    # A single process would import the stack and build the index a second time, and gain nothing.
    if count == 1 or (count is None and (runs <= _FEW_RUNS or cpu_count() == 1)):
        return Workers(InThisProcess)
    return kept_warm(count)


def kept_warm(count: int | None = None) -> Workers:
    """Return worker processes that stay alive for the next caller that asks for the same number.

    They are started afresh, not forked, and need no guard in the calling script. What a cell refers to may come from a
    notebook. count: of processes; None for one on each core. Raises: ConfigurationError for a count below 1.
    """
    # Those that this process may use, which a container, an affinity or LOKY_MAX_CPU_COUNT can make fewer.
    number = cpu_count() if count is None else require_count("workers", count)
    return Workers(lambda: get_reusable_executor(max_workers=number, timeout=_KEPT_WARM_S, **_worker_options()))
