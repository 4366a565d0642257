"""Observe the requests of a run of a user's graph: which call each belongs to, where it goes, and when it is cut.

The hooks below HTTP clients are in place while runs are observed. They ask which run the calling code belongs to.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from langchain_core.runnables.config import var_child_runnable_config

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.deadlines import Deadline, PropagationPolicy, current_policy
from docmind_lab.core.errors import NotSimulated, RunCut
from docmind_lab.core.holds import current_hold
from docmind_lab.network.attempts import HEADER_PREFIX, Attempt, CallKind, LogicalCall
from docmind_lab.network.call_limits import asks_for_generation
from docmind_lab.network.clients.installing import LabAdapters
from docmind_lab.network.clients.watching import Passage, add_finder
from docmind_lab.network.recorder import Recorder, current_recorder
from docmind_lab.services.dialects import is_answered
from docmind_lab.services.endpoint_shape import PROVISIONAL, Unanswered
from docmind_lab.services.endpoints import ENDPOINTS_PATH, EndpointTable
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.own.graph_calls import (
    NOWHERE,
    OpenCall,
    Place,
    RunCalls,
    innermost_call,
    latest_request,
    note_request,
)
from docmind_lab.systems.own.tokenizer import provide_vocabularies
from docmind_lab.systems.own.unsimulated import REMEDY, refuse_unsimulated
from docmind_lab.virtual_time import VirtualClock, current_clock

Services = Literal["simulated", "own"]

_STORE_PATHS = ("/collections", "/points", "/embeddings")
_QDRANT_PORT = 6333

ANSWERED_BY_A_ROW = (
    "a table of endpoints can, --endpoints FILE (endpoints=...), which docmind-lab doctor --write-endpoints FILE "
    f"begins; {REMEDY}"
)
# A loop that asks until an answer comes which an empty object is not ends with this request.
_MOST_MADE_UP = 200
_KEPT_ONCE = "run the program once without the lab, so that it keeps the file on this machine"
# Weights and vocabularies of a model that runs in the program itself, and archives of them.
_FILE_OF_A_MODEL = re.compile(
    r"\.(onnx|safetensors|gguf|pt|pth|ckpt|bin|tflite|tar\.gz|tgz|tar|zip|whl)$|/resolve/", re.I
)


def kind_of(url: str) -> CallKind:
    """Return the kind of call that a request makes, judged by its URL's path."""
    path = urlsplit(url).path.rstrip("/")
    route = is_answered("POST", url)
    if route is not None:
        return {"generate": "llm", "embed": "retrieval"}.get(route.operation, "tool")  # type: ignore[return-value]
    if asks_for_generation(path):
        return "llm"
    return "retrieval" if any(part in path for part in _STORE_PATHS) else "tool"


@dataclass(frozen=True)
class SimulatedDestinations:
    """Sends requests to simulated services, whatever host they name: a model server, a vector store, endpoints.

    A request to a model keeps its path, by which the model server knows in which dialect it is.
    """

    openai_base_url: str
    qdrant_url: str
    endpoints: EndpointTable = field(default_factory=EndpointTable)

    @classmethod
    def at(cls, addresses: ServiceAddresses, endpoints: EndpointTable) -> Self:
        """Return those of services that are at these addresses."""
        return cls(addresses.openai_base_url, addresses.qdrant_url, endpoints)

    def of(self, method: str, url: str) -> str:
        """Return the simulated URL for a request. Raises: NotSimulated if neither service has the path."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        query = f"?{parts.query}" if parts.query else ""
        host = (parts.hostname or "").lower()
        endpoint = self.endpoint(url)
        if self.endpoints.of_user(method, host, parts.path or "/"):
            return endpoint
        if is_answered(method, url) is not None:
            # Of a query, which may hold a key, only what the shape of the answer depends on.
            shape = "?alt=sse" if "alt=sse" in parts.query.split("&") else ""
            return f"{self._root}{path}{shape}"
        if path.startswith("/collections") and _is_of_vectors(method, path):
            return f"{self.qdrant_url.rstrip('/')}{path}{query}"
        if not path and parts.port == _QDRANT_PORT:
            return f"{self.qdrant_url.rstrip('/')}/"
        if self.endpoints.row(method, host, parts.path or "/"):
            return endpoint
        raise NotSimulated(f"{method} {redact_url(url)}: no simulated service answers this")

    def endpoint(self, url: str) -> str:
        """Return the URL at which the simulated endpoints answer a request, whether a row fits it or not."""
        parts = urlsplit(url)
        query = f"?{parts.query}" if parts.query else ""
        return f"{self._root}{ENDPOINTS_PATH}{(parts.hostname or '').lower()}{parts.path or '/'}{query}"

    @property
    def _root(self) -> str:
        return self.openai_base_url.rstrip("/").removesuffix("/v1")


Destinations = SimulatedDestinations | None
"""Where requests go; None for the hosts that the graph's code names."""


@dataclass(frozen=True)
class SentRequest:
    """What one number of a node's requests stands for, as it was first sent.

    address: method and URL, without a query and without credentials. kind: "retrieval" for what the faults of searches
    strike. at_s: in seconds since the run's start. call_id: of the call that sent it.
    """

    address: str
    kind: CallKind
    at_s: float
    call_id: str


class RunObserver:
    """Observes and limits the requests of one run.

    is_enforced: whether requests are held as production holds them, and this only records. missing: the error for
    the first thing that has no simulated counterpart and ended the run. unanswered: how often each request was made
    that no service answers, and that got a made-up answer. answered: how often each other request was made, by method,
    address and node; an address may hold a key, so it is redacted before anybody reads it. sent: the numbered requests
    of each node, see `services.faults`.
    """

    records = True

    def __init__(self, recorder: Recorder, destinations: Destinations) -> None:
        self.recorder, self.destinations = recorder, destinations
        self.calls = RunCalls(recorder)
        self.clock = current_clock()
        self.is_enforced = False
        self.missing: NotSimulated | None = None
        self.unanswered: Counter[Unanswered] = Counter()
        self.answered: Counter[tuple[str, str, str]] = Counter()
        self.sent: dict[str, dict[int, SentRequest]] = {}
        # Number by node, address and place among the calls of a visit that ask the address.
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._calls_of: dict[tuple[str, str, str], dict[str, int]] = {}

    def let_deadline_travel(self, at_s: float) -> tuple[Deadline, PropagationPolicy]:
        """Hold the run's calls to an instant on its clock; return that as its deadline, and the policy in force."""
        recorder, calls = self.recorder, self.calls
        calls.deadline = Deadline(at_s, recorder.deadline.limit_s, recorder.clock)
        calls.policy = current_policy()
        return calls.deadline, calls.policy

    # ---- requests: `network.clients.watching.Observer`

    @property
    def is_simulated(self) -> bool:
        """Whether what answers is simulated, so that httpx sends the requests of other libraries."""
        return self.destinations is not None

    def passage(self, method: str, url: str, is_retry: bool = False) -> Passage:
        """Let a request through, with its call and URL.

        One that no service answers gets a made-up answer, so that the run comes to the others; whoever reads the run
        looks into `unanswered`.

        Raises: RunCut if no budget is left, or for a file that a made-up answer would damage.
        """
        call = innermost_call()
        place = self.place()
        kind = kind_of(url)
        headers = {}
        try:
            to = None if self.destinations is None else self.destinations.of(method, url)
            self.answered[method, url, place.role] += 1
        except NotSimulated as error:
            to, headers = self._made_up_destination(method, url, place, error), {f"{HEADER_PREFIX}{PROVISIONAL}": "1"}
        if to is not None and ENDPOINTS_PATH in to:
            kind = "tool"
        # No deadline reaches a thread that was started without the context of the run, here as in production.
        calls, reaches = self.calls, current_recorder() is not None
        if reaches:
            calls.refuse_if_spent(kind if call is None else call.call.kind, place)
        hold = current_hold()
        if hold is not None:
            hold.refuse_if_over()
        if call is None or call.call.kind == "tool":
            call = self._separate_call(kind, place, is_retry)
            call.call.cap_from_deadline &= reaches
        deadline, policy = calls.deadline if reaches else None, calls.policy
        total = policy.cap == "total"
        # Nobody's real service is told the lab's number.
        numbered = {} if to is None else {f"{HEADER_PREFIX}request": str(self._number(call.call, method, url, kind))}
        return Passage(
            call.call,
            to=to,
            deadline=deadline if total and not self.is_enforced else None,
            read_timeout_s=None if total or deadline is None else deadline.cap(None),
            headers={**headers, **numbered},
            limits=policy.policies.limits if reaches else None,
        )

    def _made_up_destination(self, method: str, url: str, place: Place, error: NotSimulated) -> str:
        """Return where a request goes that no service answers, and note it."""
        # Whoever asks for a file may keep it on this machine.
        if method == "GET" and _FILE_OF_A_MODEL.search(urlsplit(url).path):
            raise self.not_simulated(str(error), place, _KEPT_ONCE) from error
        if self.unanswered.total() >= _MOST_MADE_UP:
            raise self.not_simulated(str(error), place, ANSWERED_BY_A_ROW) from error
        self.unanswered[Unanswered(method, redact_url(url), _in_words(place))] += 1
        assert self.destinations is not None, "only simulated services lack an answer"
        return self.destinations.endpoint(url)

    def _number(self, call: LogicalCall, method: str, url: str, kind: CallKind) -> int:
        """Return the number of a request among those of its node; its retries have the same."""
        address = f"{method} {redact_url(url)}"
        visit = call.step.rpartition(".")[0]
        with _lock:
            calls = self._calls_of.setdefault((call.role, visit, address), {})
            place = call.role, address, calls.setdefault(call.call_id, len(calls))
            requests = self.sent.setdefault(call.role, {})
            number = self._numbers.setdefault(place, len(requests) + 1)
            at_s = self.recorder.clock.now() - self.recorder.started_at
            requests.setdefault(number, SentRequest(address, kind, at_s, call.call_id))
        return number

    def _separate_call(self, kind: CallKind, place: Place, is_retry: bool) -> OpenCall:
        """Return a call for one request outside every reported call; the previous one if this is its retry."""
        opened = latest_request() if is_retry else None
        if opened is None or opened.call.observer.run_observer is not self:  # type: ignore[attr-defined]
            opened = self.calls.begin(kind, place)
            opened.call.observer = _SingleAttempt(self, opened)
            note_request(opened)
        return opened

    def cut(self, attempt: Attempt | None, deadline: Deadline | None) -> RunCut:
        """Record that the deadline cut a request, and return the error to raise in its client."""
        assert attempt is not None, "each request of a recorded run is an attempt"
        role, hold = attempt.call.role, current_hold()
        self.recorder.event("deadline_cut", role, kind=attempt.call.kind, source="network")
        error = None if deadline is None else deadline.exceeded(role, "network")
        if hold is not None:
            run_cut = hold.cut(None if hold.was_cancelled else error)
        else:
            assert error is not None, "a deadline cuts a request, or whoever cancels its hold"
            run_cut = RunCut(error)
        self.calls.cut(run_cut)
        return run_cut

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its execution in a thread is recorded as work of the run."""
        hold = current_hold()
        if hold is not None and not hold.every_client:
            function = hold.as_thread_work(function)
        opened, place = innermost_call(), self.place()

        def work(*arguments: Any) -> Any:
            with self.recorder.thread_work(place.role, str(place)), self.calls.in_a_thread(opened):
                return function(*arguments)

        return work

    # ---- where, and what cannot be

    def where(self, thread_id: int | None = None) -> str:
        """Say in words which node a thread is in. thread_id: None for the calling thread."""
        at = self.place()
        return _in_words(self.calls.tree.latest_in(thread_id) if at is NOWHERE and thread_id is not None else at)

    def place(self) -> Place:
        """Return the node that the calling code belongs to."""
        config = var_child_runnable_config.get() or {}
        return self.calls.tree.place_of(getattr(config.get("callbacks"), "parent_run_id", None))

    def not_simulated(self, what: str, place: Place | None = None, remedy: str = REMEDY) -> RunCut:
        """Return the error to raise for something that is not simulated; the first one is kept in `missing`."""
        at = self.place() if place is None else place
        error = NotSimulated(f"{what} ({_in_words(at)}); {remedy}")
        self.missing = self.missing or error
        return RunCut(error)


def _in_words(place: Place) -> str:
    return "outside every node" if place is NOWHERE else f"in node {place}"


class _SingleAttempt:
    """Observes the only attempt of a call, and ends the call with it."""

    def __init__(self, run_observer: RunObserver, opened: OpenCall) -> None:
        self.run_observer, self._opened = run_observer, opened

    def attempt_started(self, attempt: Attempt) -> None:
        self.run_observer.recorder.attempt_started(attempt)

    def attempt_ended(self, attempt: Attempt) -> None:
        self.run_observer.recorder.attempt_ended(attempt)
        self.run_observer.calls.end(self._opened, attempt.outcome)


# ---- which runs are observed, and the hooks while any is

_lock = threading.Lock()
_observed: dict[int, RunObserver] = {}
_keepers: dict[VirtualClock | None, int] = {}
_hooks: dict[VirtualClock | None, LabAdapters] = {}


def observer_of_calling_code(host: str = "") -> RunObserver | None:
    """Return the observer of the run that the calling code belongs to, whatever host it asks; None outside every run.

    Code in a thread that was started without the run's context is known in virtual time only, where a run is alone.
    """
    clock, recorder = current_clock(), current_recorder()
    if recorder is not None:
        observer = _observed.get(id(recorder))
        return None if observer is None or observer.clock is not clock else observer
    if clock is None:
        return None
    return next((observer for observer in list(_observed.values()) if observer.clock is clock), None)


def begin_observing(observer: RunObserver) -> None:
    """Start to observe the requests of a run."""
    with _lock:
        _observed[id(observer.recorder)] = observer
    keep_hooks(observer.clock)
    if observer.clock is not None:
        observer.clock.where, observer.clock.remedy = observer.where, REMEDY
        # A run that was given up does not come to its own end.
        observer.clock.at_end(functools.partial(end_observing, observer))


def end_observing(observer: RunObserver) -> None:
    """Stop observing the requests of a run."""
    with _lock:
        if _observed.pop(id(observer.recorder), None) is None:
            return
    drop_hooks(observer.clock)


def keep_hooks(clock: VirtualClock | None) -> None:
    """Install the hooks for one clock, and keep them installed until `drop_hooks` is called as often."""
    with _lock:
        _keepers[clock] = _keepers.get(clock, 0) + 1
        if _keepers[clock] > 1:
            return
        hooks = _hooks[clock] = LabAdapters()
        hooks.install()
        hooks.at_removal(add_finder(observer_of_calling_code))
        provide_vocabularies(hooks, _is_simulated)
        if clock is not None:
            refuse_unsimulated(hooks, lambda: None if current_clock() is None else observer_of_calling_code())


def _is_simulated() -> bool:
    """Whether the calling code is of a run that simulated services answer."""
    observer = observer_of_calling_code()
    return observer is not None and observer.destinations is not None


def drop_hooks(clock: VirtualClock | None) -> None:
    """Undo one `keep_hooks`; the last one removes the hooks."""
    with _lock:
        _keepers[clock] -= 1
        if _keepers[clock]:
            return
        del _keepers[clock]
        hooks = _hooks.pop(clock)
        hooks.remove()
    if clock is None:
        # The clients are somebody's, who may have another event loop; a virtual network closes its connections itself.
        hooks.close_idle()
        shared_loop().run(hooks.aclose_idle())


def _is_of_vectors(method: str, path: str) -> bool:
    try:
        # Function-level: it is slow, and many graphs ask no vector store.
        from docmind_lab.services.vector_service import serves  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise NotSimulated(f"the simulated Qdrant needs {error.name}: pip install 'docmind_lab[systems]'") from error
    return serves(method, path)
