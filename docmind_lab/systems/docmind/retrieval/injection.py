"""Retrieval through an injected router engine: how it is found, admitted, and limited to its share (ADR-056).

    graph.invoke(inputs, context={"router_engine": engine})       # or {"tools_data": {"router_engine": engine}}
    RetrievalResources(index, client, router_injection=True, router_engine=engine)

The runtime context is the place for it: LangGraph copies and checkpoints what is in a state, and a live engine, with
its connections and locks, can be neither copied nor written down. So `MultiAgentGraphState` does not carry one; the
state of a user's own graph may, under the same keys.

An engine is any object with `query(str)` whose answer has `source_nodes`; `aquery` is awaited in async code if there
is one. One with `placed_at(state)` is asked through what that returns; the state has the caller's place in the run, and
the engine's deadline. Whatever goes wrong with it, explicit retrieval follows in what is left of the same budget.

Under a propagated deadline an engine gets a share of what is left. Its requests through clients of ours are cut at
the network seam when the share ends; and because it may also compute, or use clients of its own, `query` runs in a
daemon thread that is waited for no longer than the share. **A thread cannot be cancelled: one that was abandoned
keeps running** to its own end, is recorded as work, and its requests through our clients fail at once. `aquery` is
cancelled at the end of its share; one that blocks the loop, or swallows its cancellation, cannot be held by anyone.

Without a propagated deadline nothing bounds an engine: `query` runs in the thread of the tool, and `aquery` in its
task, so that a cancellation reaches it. A `query` without `aquery` in async code runs in a daemon thread (not one of
the loop's own pool, whose end would wait for it), and a cancellation leaves that thread running.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.core.errors import EndpointRefused, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network.exchange import Admission
from docmind_lab.network.recorder import current_recorder, note_event, position_of
from docmind_lab.systems.base.bounded_calls import is_spent, recorded_call
from docmind_lab.systems.base.results import RetrievedDocument
from docmind_lab.systems.docmind.retrieval.source_nodes import read_source_nodes

ROUTER_ROLE = "router_engine"
"""The role of a router's calls: not the retrieval role's, whose draws are then the same with and without injection."""

ROUTER_SHARE = 0.5
"""Of what is left: explicit retrieval takes no longer than a router that searches once, so it can still follow."""

ENGINE_KEY, TOOLS_DATA_KEY = "router_engine", "tools_data"

_ENDPOINT_NAMES = ("endpoint", "endpoints", "url", "base_url")


@dataclass(frozen=True)
class RouterResult:
    """The result of asking a router engine: documents, or the reason why there are none.

    strategy: what it says it followed, empty if it does not say. Without documents, reason: refused (its endpoint),
    budget (too little left to ask), timeout, error or empty; and error_type: the name of an exception, or "empty".
    """

    documents: tuple[RetrievedDocument, ...] = ()
    strategy: str = ""
    reason: str = ""
    error_type: str = ""


def find_router(context: Any, state: Mapping[str, Any], default: Any = None) -> Any:
    """Return the engine that context or state have, as `router_engine` or in their `tools_data`; else `default`."""
    for place in (context, _entry(context, TOOLS_DATA_KEY), state, _entry(state, TOOLS_DATA_KEY)):
        engine = _entry(place, ENGINE_KEY)
        if engine is not None:
            return engine
    return default


def _entry(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, Mapping) else getattr(holder, key, None)


def check_endpoints(engine: Any, admit: Admission | None) -> None:
    """Return if every endpoint that the engine declares may be reached.

    Declared are the attributes endpoint, endpoints, url and base_url: an address, or a collection of them. admit: as
    `Settings.admit`; None for that of the settings in the environment. What an engine reaches through clients of
    ours is checked again at every request; what it reaches by itself and does not declare cannot be checked.

    Raises: EndpointRefused, also for a declaration that cannot be read as an address.
    """
    for name in _ENDPOINT_NAMES:
        for url in _addresses(getattr(engine, name, None), name):
            (admit or Settings().admit)(url)


def _addresses(declared: Any, name: str) -> Iterator[str]:
    if declared is None or callable(declared):
        return
    if isinstance(declared, Mapping):
        declared = declared.values()
    if isinstance(declared, str) or hasattr(declared, "host"):
        yield str(declared)
        return
    try:
        entries = list(declared)
    except TypeError:
        raise EndpointRefused(f"the router's {name} is no address; write it like http://127.0.0.1:6333") from None
    for entry in entries:
        yield from _addresses(entry, name)


@dataclass(frozen=True)
class RouterCall:
    """One question to a router engine, with its limits.

    state: of the agent that asks. deadline: of its search, None if none is propagated. limit: documents at most.
    """

    engine: Any
    query: str
    limit: int
    state: Mapping[str, Any]
    deadline: Deadline | None
    admit: Admission | None = None

    def ask(self) -> RouterResult:
        """Ask the engine, sync; return documents, or why there are none. Raises nothing that the engine raises."""
        return _record_fallback(self._refusal() or self._ask())

    async def ask_async(self) -> RouterResult:
        """`ask`, as a coroutine; a cancellation of the asking task is passed on."""
        return _record_fallback(self._refusal() or await self._ask_async())

    def _refusal(self) -> RouterResult | None:
        """Return why the engine may not be asked; None if it may."""
        try:
            check_endpoints(self.engine, self.admit)
        except Exception as error:  # noqa: BLE001 - an attribute of an injected engine may raise anything
            _event("router_refused", error_type=type(error).__name__)
            return _no_documents("refused", error)
        if self.deadline is not None and is_spent(self._share_deadline()):
            return RouterResult(reason="budget", error_type="BudgetRefused")
        return None

    def _ask(self) -> RouterResult:
        with self._within_share() as until:
            if until is None:
                return self._query_engine(until)
            future = _in_thread(lambda: self._query_engine(until))
            try:
                return future.result(timeout=max(0.0, until.remaining()))
            except TimeoutError as error:
                return self._abandon(error)

    async def _ask_async(self) -> RouterResult:
        in_task = callable(getattr(self.engine, "aquery", None))
        with self._within_share() as until:
            try:
                async with asyncio.timeout(None if until is None else max(0.0, until.remaining())):
                    if in_task:
                        return await self._aquery_engine(until)
                    return await asyncio.wrap_future(_in_thread(lambda: self._query_engine(until)))
            except TimeoutError as error:
                return _no_documents("timeout", error) if in_task else self._abandon(error)
            except asyncio.CancelledError as error:
                if not in_task:
                    self._abandon(error)
                raise

    def _share_deadline(self) -> Deadline:
        assert self.deadline is not None
        return self.deadline.child(max(0.0, self.deadline.remaining()) * (1 - ROUTER_SHARE))

    @contextlib.contextmanager
    def _within_share(self) -> Iterator[Deadline | None]:
        """Record the engine's requests as one retrieval call within its share; yield the share's deadline."""
        until = None if self.deadline is None else self._share_deadline()
        with recorded_call("retrieval", ROUTER_ROLE, position_of(self.state), until):
            yield until

    def _placed_engine(self, until: Deadline | None) -> Any:
        """Return the engine, told of the caller's place in the run and of its own deadline if it takes them."""
        # Of its class: a test's double has every attribute that it is asked for.
        placed_at = getattr(type(self.engine), "placed_at", None)
        if not callable(placed_at):
            return self.engine
        place = {key: self.state[key] for key in ("handoff_ordinal", "fan_out_index") if key in self.state}
        return placed_at(self.engine, place if until is None else {**place, DEADLINE_KEY: until.at_s})

    def _query_engine(self, until: Deadline | None) -> RouterResult:
        try:
            return self._read(self._placed_engine(until).query(self.query))
        except asyncio.CancelledError as error:
            # From a loop inside the engine: a thread cannot be cancelled.
            return _failure(error, until)
        except Exception as error:  # noqa: BLE001 - an injected engine is foreign code; explicit retrieval follows
            return _failure(error, until)

    async def _aquery_engine(self, until: Deadline | None) -> RouterResult:
        try:
            answer = self._placed_engine(until).aquery(self.query)
            if not inspect.isawaitable(answer):
                raise ServiceError("the router's aquery() gave nothing to await")
            return self._read(await answer)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled us: something inside the engine was, which is a failure of the engine.
            return _failure(error, until)
        except Exception as error:  # noqa: BLE001 - as in _query_engine
            return _failure(error, until)

    def _read(self, answer: Any) -> RouterResult:
        documents = read_source_nodes(answer, self.limit)
        metadata = getattr(answer, "metadata", None)
        strategy = metadata.get("strategy") if isinstance(metadata, Mapping) else None
        if not documents:
            return RouterResult(reason="empty", error_type="empty")
        return RouterResult(documents, strategy if isinstance(strategy, str) else "")

    def _abandon(self, error: BaseException) -> RouterResult:
        """Record that the engine's thread is no longer waited for, and return the timeout; the thread keeps running."""
        _event("router_abandoned", share=ROUTER_SHARE)
        return _no_documents("timeout", error)


def _no_documents(reason: str, error: BaseException) -> RouterResult:
    return RouterResult(reason=reason, error_type=type(error).__name__)


def _failure(error: BaseException, until: Deadline | None) -> RouterResult:
    late = isinstance(error, TimeoutError) or (until is not None and until.passed())
    return _no_documents("timeout" if late else "error", error)


def _record_fallback(routed: RouterResult) -> RouterResult:
    # In the asking thread, not in the engine's, which may end when no caller waits for it any more.
    if routed.reason:
        _event("router_fallback", reason=routed.reason, error_type=routed.error_type)
    return routed


def _event(name: str, **detail: Any) -> None:
    note_event(name, ROUTER_ROLE, **detail)


def _in_thread(work: Callable[[], RouterResult]) -> Future[RouterResult]:
    """Run the work in a daemon thread with the caller's context, recorded as work; return its future."""
    future: Future[RouterResult] = Future()
    context, recorder = contextvars.copy_context(), current_recorder()

    def run() -> None:
        # From here on a cancellation of the waiting task no longer touches the future.
        if not future.set_running_or_notify_cancel():
            return
        try:
            with contextlib.nullcontext() if recorder is None else recorder.thread_work(ROUTER_ROLE):
                result = work()
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller, as a pool would
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=context.run, args=(run,), name="docmind-router", daemon=True).start()
    return future
