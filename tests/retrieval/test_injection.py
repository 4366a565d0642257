"""Router injection: who is asked first, and that explicit retrieval follows all failures (supervisor.md 25)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from manual_clock import ManualClock
from qdrant_client import QdrantClient
from retrieval_fakes import KEYS, LIBRARY, AsyncClient, call_tool, details, payload_of, runtime

from docmind_lab.core.deadlines import Deadline, current_deadline
from docmind_lab.core.errors import ConfigurationError, EndpointRefused
from docmind_lab.network import current_call
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.base.results import RetrievedDocument
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.injection import check_endpoints
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, create_retrieve_documents

ROUTED = RetrievedDocument("routed#1", "Said by the router.", {"topic": "routed", "path": "/srv/secret.md"}, 0.7)


@dataclass
class Router:
    """Does `act` when it is asked, and notes what was in force; async too if it is an `AsyncRouter`."""

    act: Callable[[], Any] = lambda: SimpleNamespace(source_nodes=[ROUTED])
    queries: list[str] = field(default_factory=list)
    deadlines: list[Deadline | None] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    states: list[Mapping[str, Any]] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def placed_at(self, state: Mapping[str, Any]) -> Router:
        self.states.append(state)
        return self

    def query(self, query: str) -> Any:
        self.queries.append(query)
        self.deadlines.append(current_deadline())
        self.calls.append(current_call())
        self.threads.append(threading.current_thread().name)
        return self.act()


class AsyncRouter(Router):
    async def aquery(self, query: str) -> Any:
        return Router.query(self, query)


@pytest.fixture
def resources(local: QdrantClient, clock: ManualClock) -> RetrievalResources:
    index = SearchIndex.build(local, LIBRARY)
    return RetrievalResources(index, local, AsyncClient(local), clock, router_injection=True)  # type: ignore[arg-type]


@pytest.fixture
def ask(door: str, resources: RetrievalResources) -> Callable[..., dict[str, Any]]:
    """The payload of a search for locks, by either door; `router` is injected by the runtime context."""

    def asked(router: Any = None, state: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        context = more.pop("context", None if router is None else {"router_engine": router})
        found_in, run_time = more.pop("resources", resources), runtime(state, context)
        return payload_of(call_tool(door, found_in, query="  The secret lock? ", runtime=run_time, **more))

    return asked


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


# ---- found and used


@pytest.mark.parametrize("kind", [Router, AsyncRouter])
def test_the_documents_of_an_injected_router_are_the_result(ask, noted: Recorder, kind: type[Router]):
    router = kind()
    payload = ask(router)
    assert set(payload) == KEYS
    assert payload["router_used"] is True
    assert payload["strategy_used"] == "router"
    assert payload["documents"] == [
        {"id": "routed#1", "content": "Said by the router.", "metadata": {"topic": "routed"}, "score": 0.7}
    ]
    assert router.queries == ["The secret lock"]
    (found,) = details(noted, "retrieved")
    assert (found["router_used"], found["topics"]) == (True, ["routed"])
    assert details(noted, "router_fallback") == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda router: {"context": {"router_engine": router}},
        lambda router: {"context": SimpleNamespace(router_engine=router)},
        lambda router: {"context": {"tools_data": {"router_engine": router}}},
        lambda router: {"context": SimpleNamespace(tools_data={"router_engine": router})},
        lambda router: {"state": {"tools_data": {"router_engine": router}}},
    ],
)
def test_a_router_is_found_in_context_and_state(ask, wrap: Callable[[Any], dict[str, Any]]):
    assert ask(**wrap(Router()))["router_used"] is True


def test_a_router_of_the_resources_is_used_when_nothing_else_is_injected(ask, resources: RetrievalResources):
    held, nearer = Router(), Router()
    held_resources = replace(resources, router_engine=held)
    assert ask(resources=held_resources)["router_used"] is True
    assert ask(nearer, resources=held_resources)["router_used"] is True
    assert (len(held.queries), len(nearer.queries)) == (1, 1)


def test_with_injection_off_a_router_is_never_touched(ask, resources: RetrievalResources, noted: Recorder):
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"touched: {name}")

    payload = ask(Untouchable(), resources=replace(resources, router_injection=False))
    assert (payload["router_used"], payload["documents"][0]["id"]) == (False, "lock#1")
    assert "router_error_type" not in payload
    assert details(noted, "router_fallback") == []


def test_with_injection_on_and_nothing_injected_retrieval_is_explicit(ask, noted: Recorder):
    payload = ask(context={"tools_data": {}}, state={"tools_data": None})
    assert (payload["router_used"], payload["documents"][0]["id"]) == (False, "lock#1")
    assert set(payload) == KEYS
    assert details(noted, "router_fallback") == []


def test_a_strategy_that_is_one_of_ours_is_named(ask):
    answer = SimpleNamespace(source_nodes=[ROUTED], metadata={"strategy": "graph"})
    assert ask(Router(lambda: answer))["strategy_used"] == "graph"
    answer.metadata["strategy"] = "what the user asked, word for word"
    assert ask(Router(lambda: answer))["strategy_used"] == "router"


def test_no_more_documents_than_asked_for(ask):
    nodes = [replace(ROUTED, id=f"r#{number}") for number in range(9)]
    assert ask(Router(lambda: SimpleNamespace(source_nodes=nodes)), limit=2)["document_count"] == 2


# ---- falling open

FAILURES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "raises": (raising(ZeroDivisionError("secret")), "error", "ZeroDivisionError"),
    "stops": (raising(StopIteration()), "error", "StopIteration"),
    "times out": (raising(TimeoutError("secret")), "timeout", "TimeoutError"),
    "cancelled inside": (raising(asyncio.CancelledError()), "error", "CancelledError"),
    "empty": (lambda: SimpleNamespace(source_nodes=[]), "empty", "empty"),
    "nothing": (lambda: None, "error", "ServiceError"),
}


@pytest.mark.parametrize("deadline", [{}, {"deadline_ts": 105.0}], ids=["no deadline", "deadline"])
@pytest.mark.parametrize("kind", [Router, AsyncRouter])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_router_that_fails_is_empty_or_lies_falls_open_to_explicit_retrieval(
    ask, door: str, noted: Recorder, failure: str, kind: type[Router], deadline: dict[str, float]
):
    act, reason, error_type = FAILURES[failure]
    if failure == "stops" and door == "async" and kind is AsyncRouter:
        error_type = "RuntimeError"  # what Python makes of it when a coroutine raises it
    payload = ask(kind(act), state=deadline)
    assert set(payload) == KEYS | {"router_error_type"}
    assert (payload["router_used"], payload["router_error_type"]) == (False, error_type)
    assert payload["documents"][0]["id"] == "lock#1"
    assert payload["strategy_used"] == "hybrid"
    assert details(noted, "router_fallback") == [{"reason": reason, "error_type": error_type}]
    assert "secret" not in str(noted.snapshot().events)


@pytest.mark.parametrize("engine", [object(), SimpleNamespace(query=3), "http://127.0.0.1"])
def test_an_object_that_is_no_router_falls_open(ask, engine: Any):
    payload = ask(engine)
    assert payload["router_used"] is False
    assert payload["documents"][0]["id"] == "lock#1"


def test_an_aquery_with_nothing_to_await_falls_open(ask, door: str):
    router = Router()
    router.aquery = lambda query: SimpleNamespace(source_nodes=[ROUTED])  # type: ignore[attr-defined]
    payload = ask(router)
    assert payload["router_used"] is (door == "sync")
    assert payload.get("router_error_type") == (None if door == "sync" else "ServiceError")


# ---- the budget


@pytest.mark.parametrize("kind", [Router, AsyncRouter])
def test_a_router_gets_its_share_of_what_is_left_of_the_deadline(ask, noted: Recorder, kind: type[Router]):
    router = kind()
    ask(router, state={"deadline_ts": 105.0, "handoff_ordinal": 3, "fan_out_index": 1})
    (deadline,), (call,), (state,) = router.deadlines, router.calls, router.states
    assert deadline is not None
    assert deadline.at_s == pytest.approx(102.5)
    assert (call.call_id, call.cap_from_deadline) == ("retrieval/router_engine/3.1.1", True)
    assert state == {"handoff_ordinal": 3, "fan_out_index": 1, "deadline_ts": deadline.at_s}


def test_without_a_deadline_a_router_is_called_directly_and_nothing_bounds_it(ask, door: str, noted: Recorder):
    router = AsyncRouter()
    ask(router)
    assert router.deadlines == [None]
    assert router.states == [{}]
    assert router.threads == [threading.current_thread().name]
    assert router.calls[0].cap_from_deadline is False


def test_in_async_code_a_router_without_aquery_never_runs_in_the_loops_thread(ask, door: str):
    router = Router()
    ask(router)
    assert (router.threads == [threading.current_thread().name]) == (door == "sync")


def test_explicit_retrieval_after_a_router_is_held_to_the_same_deadline(ask, clock: ManualClock, noted: Recorder):
    # The router takes all there is (a clock by hand cannot be waited for): nothing is searched any more.
    def act() -> Any:
        clock.now_s = 105.0
        raise ConnectionError

    payload = ask(AsyncRouter(act), state={"deadline_ts": 105.0})
    assert (payload["router_error_type"], payload["error_type"]) == ("ConnectionError", "BudgetRefused")
    assert details(noted, "router_fallback") == [{"reason": "timeout", "error_type": "ConnectionError"}]
    assert details(noted, "refused") == [{"kind": "retrieval"}]


@pytest.mark.parametrize("left_s", [0.008, 0.0, -1.0])
def test_a_router_is_not_asked_with_too_little_left_for_its_share(ask, noted: Recorder, left_s: float):
    router = Router()
    payload = ask(router, state={"deadline_ts": 100.0 + left_s})
    assert router.queries == []
    assert payload["router_error_type"] == "BudgetRefused"
    assert details(noted, "router_fallback") == [{"reason": "budget", "error_type": "BudgetRefused"}]
    assert ("error" in payload) == (left_s < 0.005)


@dataclass
class Sleeper(Router):
    """Waits for ten seconds or until the test is over; a deadline can only be met by not waiting for it."""

    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.act = lambda: self.over.wait(10.0)


class AsyncSleeper(Router):
    async def aquery(self, query: str) -> Any:
        await asyncio.sleep(10.0)


@pytest.mark.wall
@pytest.mark.parametrize("kind", [Sleeper, AsyncSleeper])
def test_a_slow_router_is_left_at_its_share_and_explicit_retrieval_ends_inside_the_budget(
    ask, door: str, resources: RetrievalResources, kind: type[Router]
):
    if kind is AsyncSleeper and door == "sync":
        pytest.skip("sync code never calls aquery")
    router, budget_s = kind(), 1.0
    wall = replace(resources, clock=SimpleNamespace(name="wall", now=time.monotonic, sleep=time.sleep))
    started_at = time.monotonic()
    recorder = Recorder("run", 1, Deadline.after(budget_s))
    with recording(recorder):
        payload = ask(router, state={"deadline_ts": started_at + budget_s}, resources=wall)
    took_s = time.monotonic() - started_at
    assert payload["documents"][0]["id"] == "lock#1"
    assert payload["router_error_type"] == "TimeoutError"
    # The share is half of the budget; a local search and a new event loop take some hundredths of a second.
    assert 0.5 <= took_s < budget_s
    assert details(recorder, "router_fallback") == [{"reason": "timeout", "error_type": "TimeoutError"}]
    if isinstance(router, Sleeper):
        # What is abandoned keeps running, and is known to.
        assert details(recorder, "router_abandoned") == [{"share": 0.5}]
        assert not recorder.quiet()
        router.over.set()
        assert recorder.wait_quiet(5.0)
    else:
        assert details(recorder, "router_abandoned") == []
        assert recorder.quiet()
    # A thread that ends when nobody waits for it any more adds nothing to the story.
    assert len(details(recorder, "router_fallback")) == 1


@pytest.mark.wall
def test_a_cancellation_reaches_an_async_router_and_is_no_failure_of_it(resources: RetrievalResources):
    reached: list[str] = []

    class Waiting(Router):
        async def aquery(self, query: str) -> Any:
            reached.append("asked")
            try:
                await asyncio.sleep(10.0)
            except asyncio.CancelledError:
                reached.append("cancelled")
                raise

    async def run() -> None:
        tool: Any = create_retrieve_documents(replace(resources, router_engine=Waiting()))
        task = asyncio.create_task(tool.coroutine(query="lock", runtime=runtime()))
        while not reached:
            await asyncio.sleep(0.001)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(run())
    assert reached == ["asked", "cancelled"]


# ---- endpoints


@pytest.mark.parametrize(
    "declared",
    [
        {"endpoint": "http://models.example/v1"},
        {"url": "https://203.0.113.9"},
        {"base_url": httpx.URL("http://models.example/v1")},
        {"endpoints": ["http://127.0.0.1:1", "http://models.example"]},
        {"endpoints": {"a": ("http://models.example",)}},
        {"endpoint": "not an address"},
        {"endpoint": 3},
    ],
)
def test_a_router_that_declares_an_endpoint_off_the_allowlist_is_refused(
    ask, resources: RetrievalResources, noted: Recorder, declared: dict[str, Any]
):
    router = Router()
    vars(router).update(declared)
    with pytest.raises(EndpointRefused):
        replace(resources, router_engine=router)
    payload = ask(router)
    assert router.queries == []
    assert (payload["router_used"], payload["router_error_type"]) == (False, "EndpointRefused")
    assert payload["documents"][0]["id"] == "lock#1"
    assert details(noted, "router_refused") == [{"error_type": "EndpointRefused"}]
    assert details(noted, "router_fallback") == [{"reason": "refused", "error_type": "EndpointRefused"}]


@pytest.mark.parametrize(
    "declared",
    [{}, {"url": None}, {"endpoint": "http://127.0.0.1:6333"}, {"endpoints": ["http://localhost", "http://[::1]:1"]}],
)
def test_a_router_on_this_machine_or_without_an_endpoint_is_used(ask, declared: dict[str, Any]):
    router = Router()
    vars(router).update(declared)
    assert ask(router)["router_used"] is True


def test_an_attribute_that_raises_keeps_a_router_from_being_used(ask, noted: Recorder):
    class Broken(Router):
        @property
        def url(self) -> str:
            raise RuntimeError("secret")

    router = Broken()
    assert ask(router)["router_error_type"] == "RuntimeError"
    assert router.queries == []


def test_a_method_named_like_an_endpoint_is_none():
    assert check_endpoints(SimpleNamespace(url=lambda: "http://models.example"), None) is None
    with pytest.raises(EndpointRefused):
        check_endpoints(SimpleNamespace(url="http://models.example"), None)


# ---- resources


def test_an_engine_without_query_is_refused_when_the_resources_are_made(resources: RetrievalResources):
    with pytest.raises(ConfigurationError, match="query"):
        replace(resources, router_engine=object())
