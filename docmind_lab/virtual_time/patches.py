"""Replaces names of the standard library during a run, and restores every one of them.

A replacement checks which thread calls it: an actor gets virtual time, any other thread the original. So other threads
do not notice the replacements, and two clocks may run at once in two threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import operator
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from docmind_lab.virtual_time import refusals, threads, times
from docmind_lab.virtual_time.kernel import Actor, Kernel, outside_simulation, this_thread
from docmind_lab.virtual_time.locks import (
    ImportLock,
    SimulatedLock,
    SimulatedSimpleQueue,
    init_import_lock,
)
from docmind_lab.virtual_time.real_primitives import RealLock
from docmind_lab.virtual_time.times import for_actors
from docmind_lab.virtual_time.virtual_event_loop import VirtualEventLoop

_PythonRLock: Any = threading._RLock
# Wherever a module has one of these under any name, the name is replaced.
_REPLACEMENTS: list[tuple[Any, Any]] = [
    *times.replacements(),
    *refusals.replacements(),
    (threading.Lock, SimulatedLock),
    # Python's own in Python, whose lock inside is a simulated one.
    (threading.RLock, for_actors(lambda actor: _PythonRLock(), threading.RLock)),
    (queue.SimpleQueue, SimulatedSimpleQueue),
    (asyncio.new_event_loop, for_actors(lambda actor: VirtualEventLoop(actor.kernel), asyncio.new_event_loop)),
]
_allocate_lock = threading._allocate_lock  # type: ignore[attr-defined]
# The same object as Lock up to 3.12. One replacement stands for one real thing, or it could not be put back.
if _allocate_lock is not threading.Lock:
    _REPLACEMENTS.append((_allocate_lock, for_actors(lambda actor: SimulatedLock(), _allocate_lock)))
_VIRTUAL_FOR = {id(real): virtual for real, virtual in _REPLACEMENTS}
_REAL_FOR = {id(virtual): real for real, virtual in _REPLACEMENTS}

# These are replaced where they are, and nowhere else; whatever was there (a tracer's own, say) is put back.
_METHODS: list[tuple[Any, str, Callable[..., Any]]] = [
    (threading.Thread, "start", threads.start),
    (threading.Thread, "join", threads.join),
    (threading.Thread, "is_alive", threads.is_alive),
    (ImportLock, "__init__", init_import_lock),
]
_FUTURES = concurrent.futures._base

# Where the real ones live, and the kernel, which needs them.
_SKIPPED_MODULES = ("_thread", "_queue", "_frozen_importlib", "importlib._bootstrap", "posix", "nt")
_OWN_PACKAGE = __name__.rpartition(".")[0]


class _Places:
    """The places in loaded modules that hold replaceable names. Searches only modules that changed."""

    def __init__(self) -> None:
        self._modules: list[Any] = []
        self._namespaces: list[dict[str, Any]] = []
        self._sizes: list[int] = []
        self._known: set[tuple[int, str]] = set()
        self.spots: list[tuple[dict[str, Any], str]] = []

    def look(self) -> None:
        """Add the places that appeared since the last look."""
        modules = list(sys.modules.values())
        # Compared by identity, since a module-like object may compare as it likes.
        if len(modules) != len(self._modules) or not all(map(operator.is_, modules, self._modules)):
            sizes = {id(space): size for space, size in zip(self._namespaces, self._sizes, strict=True)}
            self._namespaces = [
                _namespace(module) for name, module in sys.modules.copy().items() if _is_searched(name, module)
            ]
            # -1 is no size, so that a new module is searched.
            self._sizes = [sizes.get(id(space), -1) for space in self._namespaces]
            kept = {id(space) for space in self._namespaces}
            self._known = {place for place in self._known if place[0] in kept}
            self.spots = [place for place in self.spots if id(place[0]) in kept]
            # Last, so that a look that fails is made again.
            self._modules = modules
        sizes_now = list(map(len, self._namespaces))
        if sizes_now != self._sizes:
            for space, size, before in zip(self._namespaces, sizes_now, self._sizes, strict=True):
                if size != before:
                    self._search(space)
            self._sizes = sizes_now
        # A notebook's cells bind names anew, which does not show in the size.
        self._search(_namespace(sys.modules.get("__main__")))

    def _search(self, space: dict[str, Any]) -> None:
        for name, value in list(space.items()):
            identity = id(value)
            if (identity in _VIRTUAL_FOR or identity in _REAL_FOR) and (id(space), name) not in self._known:
                self._known.add((id(space), name))
                self.spots.append((space, name))


def _namespace(module: object) -> dict[str, Any]:
    # Past a module's own __getattribute__, which may load what is to be loaded later.
    try:
        return object.__getattribute__(module, "__dict__") if isinstance(module, ModuleType) else {}
    except AttributeError:  # compiled libraries that pass for modules, as cffi's do
        return {}


def _is_searched(name: str, module: object) -> bool:
    own = name == _OWN_PACKAGE or name.startswith(_OWN_PACKAGE + ".")
    return isinstance(module, ModuleType) and name not in _SKIPPED_MODULES and not own


_INHERITED = object()
_places = _Places()
_lock = RealLock()
_open_blocks = 0
_originals: list[tuple[Any, str, Any]] = []


@contextmanager
def virtual_primitives() -> Iterator[None]:
    """Replace the primitives by virtual ones during a block. Blocks may nest and overlap; the last restores.

    All names are replaced or none: if one cannot be, all originals are restored before the error is raised.
    """
    global _open_blocks
    with _lock:
        if not _open_blocks:
            _install()
        _open_blocks += 1
    try:
        yield
    finally:
        with _lock:
            _open_blocks -= 1
            if _open_blocks == 0:
                _restore()


def _install() -> None:
    refusals.watch_sockets()
    try:
        _places.look()
        _rebind(_VIRTUAL_FOR)
        _replace(_FUTURES, "Future", threads.SimulatedFuture)
        for owner, name, virtual in [*_METHODS, *refusals.methods()]:
            _replace(owner, name, for_actors(virtual, getattr(owner, name)))
    except BaseException:
        # A process that failed once must not have a clock of its own for every run after that.
        _restore_all()
        raise


def _replace(owner: Any, name: str, virtual: Any) -> None:
    # What a class inherits is put back by taking away what hides it.
    real = vars(owner).get(name, _INHERITED)
    setattr(owner, name, virtual)
    _originals.append((owner, name, real))


def _restore() -> None:
    try:
        # What was imported meanwhile may have taken hold of a replacement.
        _places.look()
    finally:
        _restore_all()


def _restore_all() -> None:
    while _originals:
        owner, name, real = _originals.pop()
        if real is _INHERITED:
            delattr(owner, name)
        else:
            setattr(owner, name, real)
    _rebind(_REAL_FOR)


def _rebind(replacement_for: dict[int, Any]) -> None:
    for space, name in _places.spots:
        replacement = replacement_for.get(id(space.get(name)))
        if replacement is not None:
            space[name] = replacement


def virtual_for(value: Any) -> Any:
    """Return the virtual replacement of a value such as `time.sleep`, or the value itself if it has none."""
    return _VIRTUAL_FOR.get(id(value), value)


# ---- names that belong to one run, such as a door below the HTTP clients


_of_kernels: dict[tuple[Any, str], tuple[Any, dict[Kernel, Callable[..., Any]]]] = {}


@contextmanager
def patched_for(kernel: Kernel, owner: Any, name: str, virtual: Callable[..., Any]) -> Iterator[None]:
    """Make `owner.name` be `virtual(actor, ...)` for the actors of one run, and leave it for all other threads."""
    with _lock:
        if (owner, name) not in _of_kernels:
            replacement: tuple[Any, dict[Kernel, Callable[..., Any]]] = vars(owner)[name], {}
            setattr(owner, name, _dispatcher(*replacement))
            _of_kernels[owner, name] = replacement
        real, virtuals = _of_kernels[owner, name]
        virtuals[kernel] = virtual
    try:
        yield
    finally:
        with _lock:
            del virtuals[kernel]
            if not virtuals:
                del _of_kernels[owner, name]
                setattr(owner, name, real)


def _dispatcher(real: Any, virtuals: dict[Kernel, Callable[..., Any]]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        actor = this_thread.actor
        virtual = None if actor is None else virtuals.get(actor.kernel)
        return real(*args, **kwargs) if virtual is None else virtual(actor, *args, **kwargs)

    call.__name__ = getattr(real, "__name__", call.__name__)
    return call


@contextmanager
def flush_jupyter_in_real_time(kernel: Kernel) -> Iterator[None]:
    """Let a notebook's output stream flush in real time: it waits for a thread outside the simulation."""
    stream = getattr(sys.modules.get("ipykernel.iostream"), "OutStream", None)
    if stream is None:
        yield
        return
    real = vars(stream)["flush"]

    def flush(actor: Actor, *args: Any, **kwargs: Any) -> Any:
        with outside_simulation():
            return real(*args, **kwargs)

    with patched_for(kernel, stream, "flush", flush):
        yield
