"""Retrieval through an injected router engine: how it is found, admitted, and limited to its share (ADR-056).

    graph.invoke(inputs, context={"router_engine": engine})       # or {"tools_data": {"router_engine": engine}}
    RetrievalResources(index, client, router_injection=True, router_engine=engine)

The runtime context is the place for it: LangGraph copies and checkpoints what is in a state, and a live engine, with
its connections and locks, can be neither copied nor written down. So `MultiAgentGraphState` does not carry one; the
state of a user's own graph may, under the same keys.

An engine is any object with `query(str)`; `aquery` is awaited in async code if there is one. Its answer has
LlamaIndex's shape: `answer.source_nodes` holds nodes with a score around nodes with an id, a text and metadata; plain
objects with the same attributes serve as well. Any other shape is an error that names what is wrong, never a document.
One with `placed_at(state)` is asked through what that returns; the state has the caller's place in the run, and the
engine's deadline. Whatever goes wrong with it, explicit retrieval follows in what is left of the same budget.

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
import hashlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.core.errors import EndpointRefused, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.core.sync_async import in_daemon_thread
from docmind_lab.network.exchange import Admission
from docmind_lab.network.recorder import current_recorder, note_event, position_of
from docmind_lab.systems.base.bounded_calls import is_spent, recorded_call
from docmind_lab.systems.base.results import RetrievedDocument, clean_metadata, is_clean

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
        # A cancellation is from a loop inside the engine, which is foreign code: a thread cannot be cancelled.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - explicit retrieval follows
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
    """Run the work in a daemon thread, recorded as work; return its future."""
    recorder = current_recorder()

    def run() -> RouterResult:
        with contextlib.nullcontext() if recorder is None else recorder.thread_work(ROUTER_ROLE):
            return work()

    return in_daemon_thread(run, "docmind-router")


_CITABLE = re.compile(r"[^\s\[\]]{1,200}")
# What LlamaIndex answers when it found nothing.
_EMPTY_ANSWERS = frozenset({"", "None", "Empty Response"})


def read_source_nodes(answer: Any, limit: int) -> tuple[RetrievedDocument, ...]:
    """Convert a router's answer to documents, best first, at most `limit`; none for an empty answer.

    Documents of equal score keep the order in which the router has them; of two with one id the better stays.
    Raises: ServiceError for an unusable answer: nodes of another type, or without an id or a text, a
    score that is no number, an answer in words without a source.
    """
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise ServiceError("the router's query() gave an awaitable: an async method is to be called aquery()")
    nodes = getattr(answer, "source_nodes", None)
    if not isinstance(nodes, Sequence) or isinstance(nodes, str | bytes):
        raise ServiceError(f"the router's answer has no list of source_nodes, but {type(nodes).__name__}")
    if not nodes and str(getattr(answer, "response", "") or "").strip() not in _EMPTY_ANSWERS:
        raise ServiceError("the router answered in words and named no source")
    ranked = sorted((_document(node, place) for place, node in enumerate(nodes)), key=lambda one: -one.score)
    best: dict[str, RetrievedDocument] = {}
    for document in ranked:
        best.setdefault(document.id, document)
    return tuple(best.values())[:limit]


def _document(item: Any, place: int) -> RetrievedDocument:
    node = getattr(item, "node", item)
    text = _text(node)
    if text is None or not text.strip():
        raise ServiceError(f"the router's source {place} has no text")
    metadata = getattr(node, "metadata", None) or {}
    if not isinstance(metadata, Mapping):
        raise ServiceError(f"the router's source {place} has metadata that is no mapping")
    return RetrievedDocument(_id(node, place), text, clean_metadata(metadata), _score(item, place))


def _text(node: Any) -> str | None:
    get_content = getattr(node, "get_content", None)
    candidates = (get_content() if callable(get_content) else None, *(getattr(node, n, None) for n in _TEXT_NAMES))
    return next((candidate for candidate in candidates if isinstance(candidate, str)), None)


_TEXT_NAMES = ("text", "content")
_ID_NAMES = ("node_id", "id_", "id")


def _id(node: Any, place: int) -> str:
    node_id = next((value for name in _ID_NAMES if isinstance(value := getattr(node, name, None), str | int)), None)
    if node_id is None or not str(node_id).strip() or isinstance(node_id, bool):
        raise ServiceError(f"the router's source {place} has no id")
    name = str(node_id)
    if _CITABLE.fullmatch(name) and is_clean(name):
        return name
    # An id may be the path of a file, or have words in it: the digest can be cited and says nothing.
    return "source-" + hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()


def _score(item: Any, place: int) -> float:
    value = getattr(item, "score", None)
    if value is None:
        return 0.0
    # Numbers of other libraries, such as numpy's, have the method; text and truth values are not meant.
    if isinstance(value, bool | str) or not hasattr(value, "__float__") or not math.isfinite(float(value)):
        raise ServiceError(f"the router's source {place} has a score that is no finite number")
    return float(value)
