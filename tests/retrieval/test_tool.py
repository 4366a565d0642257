"""The `retrieve_documents` tool: one payload whatever happens (supervisor.md 24)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from manual_clock import ManualClock
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from retrieval_fakes import CHUNKS, KEYS, LIBRARY, AsyncClient, call_tool, details, payload_of, runtime

from docmind_lab.core.deadlines import Deadline, PropagationPolicy, current_deadline, policy_scope
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.network import current_call
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.strategies import STRATEGIES
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, create_retrieve_documents, optimised_query

QUERY = "  Where is the  secret lock?  "


@dataclass
class Client:
    """Both clients at once: takes `takes_s`, fails with `error` or asks the real one; notes what is in force."""

    real: QdrantClient
    clock: ManualClock
    error: Exception | None = None
    takes_s: float = 0.0
    deadlines: list[Deadline | None] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    payload: Mapping[str, Any] = field(default_factory=dict)
    fails_late: bool = False

    def scroll(self, **arguments: Any) -> Any:
        self._asked()
        return self.real.scroll(**arguments)

    def _asked(self) -> None:
        deadline = current_deadline()
        self.deadlines.append(deadline)
        self.calls.append(current_call())
        self.clock.now_s += self.takes_s
        if self.fails_late and deadline is not None and deadline.passed():
            raise ResponseHandlingException(httpx.ReadTimeout("secret lock"))
        if self.error is not None:
            raise self.error

    def query_points(self, **arguments: Any) -> Any:
        self._asked()
        response = self.real.query_points(**arguments)
        for point in response.points:
            point.payload = {**(point.payload or {}), **self.payload}
        return response


@pytest.fixture(scope="module")
def index(local: QdrantClient) -> SearchIndex:
    return SearchIndex.build(local, LIBRARY)


@pytest.fixture
def client(local: QdrantClient, clock: ManualClock) -> Client:
    return Client(local, clock)


@pytest.fixture
def resources(index: SearchIndex, client: Client, clock: ManualClock) -> RetrievalResources:
    return RetrievalResources(index, client, AsyncClient(client), clock)  # type: ignore[arg-type]


Call = Callable[..., Command[Any]]


@pytest.fixture
def call(door: str, resources: RetrievalResources) -> Call:
    """Calls the tool of the resources."""

    def made(query: str = QUERY, state: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
        return call_tool(door, resources, query=query, runtime=runtime(state), **arguments)

    return made


def message_of(command: Command[Any]) -> ToolMessage:
    (message,) = command.update["messages"]  # type: ignore[index]
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.name) == ("c1", "retrieve_documents")
    return message


# ---- the payload


@pytest.mark.parametrize(("strategy", "took_ms"), [("hybrid", 250.0), ("hierarchical", 500.0)])
def test_a_search_returns_the_payload_and_puts_the_documents_into_the_state(
    call: Call, client: Client, strategy: str, took_ms: float
):
    client.takes_s = 0.25
    command = call(strategy=strategy, limit=2)
    payload = payload_of(command)
    assert set(payload) == KEYS
    assert message_of(command).status == "success"
    assert [set(document) for document in payload["documents"]] == [{"id", "content", "metadata", "score"}] * 2
    first = payload["documents"][0]
    assert first["id"].startswith("lock#")
    assert first["metadata"] == {"topic": "lock", "section": "Locks"}
    assert payload["strategy_used"] == strategy
    assert (payload["query_original"], payload["query_optimized"]) == (QUERY, "Where is the secret lock")
    assert (payload["document_count"], payload["processing_time_ms"]) == (2, took_ms)
    assert payload["router_used"] is False


def test_graph_over_a_corpus_without_references_says_that_it_is_hybrid(call: Call, noted: Recorder):
    assert payload_of(call(strategy="graph"))["strategy_used"] == "hybrid"
    assert [detail["strategy"] for detail in details(noted, "retrieved")] == ["hybrid"]


def test_a_strategy_of_two_requests_is_one_call_under_one_deadline(call: Call, client: Client, noted: Recorder):
    client.takes_s = 2.0
    assert payload_of(call(strategy="hierarchical", state={"deadline_ts": 105.0}))["strategy_used"] == "hierarchical"
    assert len(client.calls) == 2
    assert client.calls[0] is client.calls[1]
    assert [deadline.at_s for deadline in client.deadlines if deadline] == [105.0, 105.0]


def test_a_strategy_of_two_requests_is_cut_in_its_second(call: Call, client: Client, noted: Recorder):
    client.takes_s, client.fails_late = 3.0, True
    payload = payload_of(call(strategy="hierarchical", state={"deadline_ts": 105.0}))
    assert payload["error_type"] == "DeadlineExceeded"
    assert len(client.calls) == 2


def test_hybrid_and_five_documents_are_the_default(call: Call):
    payload = payload_of(call("lock generator"))
    assert payload["strategy_used"] == "hybrid"
    assert payload["document_count"] == len(CHUNKS)


@pytest.mark.parametrize("query", ["", " ?! ", "zzz qqq"])
def test_nothing_found_is_the_same_payload_without_documents(call: Call, query: str):
    command = call(query, strategy="hybrid")
    payload = payload_of(command)
    assert set(payload) == KEYS
    assert (payload["documents"], payload["document_count"]) == ([], 0)
    assert message_of(command).status == "success"


def test_no_path_and_no_blob_leaves_in_metadata(call: Call, client: Client):
    client.payload = {
        "path": "/srv/private/file.md",
        "nested": {"where": r"C:\private", "kept": 1},
        "blob": "QUJD" * 100,
        "raw": b"\x00\x01",
    }
    command = call()
    assert "private" not in message_of(command).text
    for document in payload_of(command)["documents"]:
        assert set(document["metadata"]) == {"topic", "section", "nested"}
        assert document["metadata"]["nested"] == {"kept": 1}


@pytest.mark.parametrize(
    ("query", "optimised"), [("  a\n b ", "a b"), ("What is a lock?", "What is a lock"), ("f(x)...", "f(x)"), ("", "")]
)
def test_a_query_loses_its_white_space_and_the_mark_at_its_end(query: str, optimised: str):
    assert optimised_query(query) == optimised


# ---- failures

FAILURES: dict[str, Exception] = {
    "UnexpectedResponse": UnexpectedResponse(500, "no", b"where is the secret lock", httpx.Headers()),
    "ResponseHandlingException": ResponseHandlingException(httpx.ReadTimeout("secret lock")),
    "ConnectError": httpx.ConnectError("secret lock"),
    "TimeoutError": TimeoutError("secret lock"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_is_the_same_payload_with_error_and_error_type(
    call: Call, client: Client, noted: Recorder, kind: str
):
    client.error = FAILURES[kind]
    command = call()
    payload = payload_of(command)
    assert set(payload) == KEYS | {"error", "error_type"}
    assert (payload["documents"], payload["document_count"], payload["error_type"]) == ([], 0, kind)
    assert message_of(command).status == "error"
    assert "secret" not in payload["error"]
    assert payload["error"]
    assert details(noted, "retrieved") == []


def test_an_unknown_collection_is_a_failure_in_local_qdrant_too(door: str, resources: RetrievalResources):
    empty, empty_async = QdrantClient(":memory:"), AsyncQdrantClient(":memory:")
    elsewhere = dataclasses.replace(resources, client=empty, async_client=empty_async)
    payload = payload_of(call_tool(door, elsewhere, query="secret lock", runtime=runtime()))
    assert set(payload) == KEYS | {"error", "error_type"}
    assert payload["error_type"] == "ValueError"
    assert "secret" not in payload["error"]
    empty.close()
    asyncio.run(empty_async.close())


def test_points_that_are_not_chunks_are_a_failure_that_says_so(call: Call, client: Client):
    class Foreign(Client):
        def query_points(self, **arguments: Any) -> Any:
            response = super().query_points(**arguments)
            response.points[0].payload = {}
            return response

    client.__class__ = Foreign
    payload = payload_of(call())
    assert payload["error_type"] == "ServiceError"
    assert "not built by docmind_lab" in payload["error"]


def test_a_defect_is_raised(call: Call, client: Client):
    client.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        call()


# ---- the deadline


def test_a_search_is_held_to_the_deadline(call: Call, client: Client, noted: Recorder):
    payload = payload_of(call(state={"deadline_ts": 105.0}))
    assert "error" not in payload
    (deadline,) = client.deadlines
    assert deadline is not None
    assert deadline.at_s == 105.0
    assert client.calls[0].cap_from_deadline is True


def test_a_per_read_cap_is_a_bound_of_each_read(call: Call, client: Client, noted: Recorder):
    with policy_scope(PropagationPolicy(cap="per_read")):
        call(state={"deadline_ts": 105.0})
    assert client.deadlines == [None]
    assert client.calls[0].read_timeout_s == 5.0


def test_without_a_deadline_nothing_bounds_the_search(call: Call, client: Client, noted: Recorder):
    call(state={"handoff_ordinal": 3, "fan_out_index": 1})
    assert client.deadlines == [None]
    (one,) = client.calls
    assert (one.call_id, one.cap_from_deadline, one.read_timeout_s) == ("retrieval/retrieval/3.1.1", False, None)
    (found,) = details(noted, "retrieved")
    assert found["ids"][0].startswith("lock#")
    assert "secret" not in str(found)


@pytest.mark.parametrize("error", [ResponseHandlingException(httpx.ReadTimeout("x")), TimeoutError("x")])
def test_a_search_that_the_deadline_cuts_says_so(call: Call, client: Client, noted: Recorder, error: Exception):
    client.error, client.takes_s = error, 5.0
    payload = payload_of(call(state={"deadline_ts": 105.0}))
    assert set(payload) == KEYS | {"error", "error_type"}
    assert payload["error_type"] == "DeadlineExceeded"
    assert "secret" not in payload["error"]
    assert details(noted, "deadline_cut") == [{"kind": "retrieval", "source": "network"}]


def test_an_error_before_the_deadline_is_not_taken_for_a_cut(call: Call, client: Client, noted: Recorder):
    client.error = TimeoutError("x")
    assert payload_of(call(state={"deadline_ts": 105.0}))["error_type"] == "TimeoutError"
    assert details(noted, "deadline_cut") == []


@pytest.mark.parametrize("left_s", [0.005, 0.0, -1.0])
def test_too_little_left_is_refused_before_anything_is_sent(call: Call, client: Client, noted: Recorder, left_s: float):
    payload = payload_of(call(state={"deadline_ts": 100.0 + left_s}))
    assert payload["error_type"] == "BudgetRefused"
    assert client.deadlines == []
    (attempt,) = noted.snapshot().attempts
    assert (attempt.outcome, attempt.call.kind) == ("refused", "retrieval")
    assert details(noted, "refused") == [{"kind": "retrieval"}]


# ---- resources


def test_an_async_search_without_an_async_client_says_what_is_missing(resources: RetrievalResources):
    sync_only = create_retrieve_documents(dataclasses.replace(resources, async_client=None))
    with pytest.raises(ConfigurationError, match="async_client"):
        asyncio.run(sync_only.coroutine(query=QUERY, runtime=runtime()))  # type: ignore[attr-defined]


def test_the_model_sees_query_strategy_and_limit_only(resources: RetrievalResources):
    schema = create_retrieve_documents(resources).tool_call_schema.model_json_schema()  # type: ignore[union-attr]
    assert list(schema["properties"]) == ["query", "strategy", "limit"]
    assert schema["required"] == ["query"]
    assert schema["properties"]["strategy"]["enum"] == list(STRATEGIES)
