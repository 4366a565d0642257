"""Each fault as the official clients meet it, and the row that the service keeps of it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest
from often import often
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from service_doors import MODEL, QUESTION, TOKENS, Here, Untold, new_run, openai_at, streamed_text, tags

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.network import HttpClients, LogicalCall, call_scope
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.statistics.latency.profile import LatencyProfile

QUICK = LatencyProfile.named("typical/100")
# Two shared cores pause for tens of milliseconds.
LATE_S = 0.25
MODEL_KINDS = [kind for kind in FAULT_KINDS if not kind.startswith("retrieval_") and kind != "none"]


def ask(client: openai.OpenAI, run_id: str, *, stream: bool, role: str = "router") -> str:
    """What the model says, whole."""
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, stream=stream, extra_headers=tags(run_id, role=role)
    )
    return streamed_text(reply) if stream else reply.choices[0].message.content


def faulty(serve_here: Any, *faults: str, profile: LatencyProfile = QUICK, **options: Any) -> Here:
    return serve_here(profile=profile, faults=tuple(Fault.parse(fault) for fault in faults), **options)


# What stands below one body and a stream is the same: one of them has the seconds.
often_streamed = pytest.mark.parametrize("stream", often([False, True], True))


# ---- turned away


@pytest.mark.wall
def test_a_client_that_obeys_retry_after_is_served_when_the_fault_has_passed(serve_here):
    here, run_id, http = faulty(serve_here, "rate_limit=1@1"), new_run(), HttpClients()
    call = LogicalCall(run_id, "llm/synthesis/4.0.1", "synthesis", "4.0.1", "llm", 7, Untold())
    with openai_at(here.addresses, max_retries=2, http_client=http.openai) as client, call_scope(call):
        assert client.chat.completions.create(model=MODEL, messages=QUESTION)
    first, second = here.log.rows(run_id, wait_quiet_s=5)
    assert [(row.attempt, row.status, row.fault) for row in (first, second)] == [(1, 429, "rate_limit"), (2, 200, "")]
    # The client's own first wait would be half a second at most.
    assert 1.0 <= second.received_at - first.ended_at <= 1.0 + LATE_S


# ---- late


# A read that times out in the middle of a stream surfaces as the HTTP library has it.
TIMEOUTS = (openai.APITimeoutError, httpx2.ReadTimeout)
# Signs of life come every 0.3 s; the reply is complete after 1.2 s and a little.
SILENT_S, READ_TIMEOUT_S = 1.2, 0.7


@pytest.mark.wall
@often_streamed
def test_signs_of_life_defeat_a_timeout_for_each_read(stream, serve_here):
    run_ids = new_run(), new_run()
    here = faulty(serve_here, f"keep_alive={SILENT_S}:router")
    with openai_at(here.addresses, timeout=READ_TIMEOUT_S) as client:
        begun_at = time.monotonic()
        assert len(ask(client, run_ids[0], stream=stream)) > 10
        assert time.monotonic() - begun_at >= SILENT_S
    row = here.row(run_ids[0])
    assert (row.outcome, row.fault, row.output_tokens) == ("ok", "keep_alive", TOKENS)
    assert row.first_byte_at - row.received_at < READ_TIMEOUT_S
    silent = faulty(serve_here, f"stall={SILENT_S}:*")
    with openai_at(silent.addresses, timeout=READ_TIMEOUT_S) as client, pytest.raises(openai.APITimeoutError):
        ask(client, run_ids[1], stream=stream)
    assert silent.row(run_ids[1]).outcome == "client_gone"


@pytest.mark.wall
@often_streamed
def test_signs_of_life_do_not_defeat_a_total_deadline(stream, serve_here):
    here, run_id, http = faulty(serve_here, "keep_alive=5:router"), new_run(), HttpClients()
    call = LogicalCall(run_id, "llm/router/1.0.1", "router", "1.0.1", "llm", 7, Untold())
    with openai_at(here.addresses, http_client=http.openai) as client:
        options: Any = {"model": MODEL, "messages": QUESTION, "stream": stream}
        # No call is in force, so the service does not know the role, and spares it.
        list(client.chat.completions.create(**options))
        begun_at = time.monotonic()
        with call_scope(call), deadline_scope(Deadline.after(READ_TIMEOUT_S)), pytest.raises(TIMEOUTS):
            list(client.chat.completions.create(**options))
        took_s = time.monotonic() - begun_at
    assert READ_TIMEOUT_S - 0.01 <= took_s <= READ_TIMEOUT_S + LATE_S
    row = here.row(run_id)
    assert (row.outcome, row.fault, row.output_tokens) == ("client_gone", "keep_alive", 0)


# ---- searches

SCHEMA: Any = {"vectors_config": {"lsa": models.VectorParams(size=2, distance=models.Distance.COSINE)}}
POINTS = [models.PointStruct(id=1, vector={"lsa": [0.6, 0.8]}, payload={"name": "one"})]
SEARCH: Any = {"query": [0.6, 0.8], "using": "lsa"}


@contextlib.contextmanager
def filled(here: Here, http: HttpClients | None = None) -> Iterator[QdrantClient]:
    """A client of a collection with one point, set up in spite of the faults."""
    url = here.addresses.qdrant_url
    with contextlib.closing((http or HttpClients()).qdrant(url)) as store:
        store.create_collection("c", **SCHEMA)
        store.upsert("c", POINTS, wait=True)
        assert store.count("c").count == 1
        assert len(store.retrieve("c", [1])) == 1
        yield store


def searches(store: QdrantClient) -> dict[str, Any]:
    return {
        "query": lambda: store.query_points("c", **SEARCH),
        "query/batch": lambda: store.query_batch_points("c", [models.QueryRequest(**SEARCH)]),
        "scroll": lambda: store.scroll("c"),
    }


@pytest.mark.parametrize("search", ["query", "query/batch", "scroll"])
def test_a_search_that_is_unavailable_is_the_qdrant_clients_own_error_and_nothing_else_is_struck(search, serve_here):
    with filled(faulty(serve_here, "retrieval_503")) as store:
        with pytest.raises(UnexpectedResponse) as caught:
            searches(store)[search]()
        assert caught.value.status_code == 503
        assert "Service unavailable" in json.loads(caught.value.content)["status"]["error"]
        assert store.count("c").count == 1


def search_call(run_id: str) -> LogicalCall:
    return LogicalCall(run_id, "retrieval/retrieval/2.0.1", "retrieval", "2.0.1", "retrieval", 7, Untold())


@pytest.mark.wall
def test_a_slow_search_finds_the_same_later(serve_here):
    here, run_id = faulty(serve_here, "retrieval_slow=0.4"), new_run()
    with filled(here) as store, call_scope(search_call(run_id)):
        (point,) = store.query_points("c", **SEARCH).points
    assert point.payload == {"name": "one"}
    row = here.row(run_id)
    assert (row.outcome, row.status, row.fault, row.kind) == ("ok", 200, "retrieval_slow", "retrieval")
    assert 0.4 <= row.ended_at - row.received_at <= 0.4 + LATE_S


@pytest.mark.wall
def test_a_search_that_hangs_ends_with_the_deadline(serve_here):
    here, run_id = faulty(serve_here, "retrieval_hang"), new_run()
    with filled(here) as store, call_scope(search_call(run_id)):
        begun_at = time.monotonic()
        with deadline_scope(Deadline.after(0.3)), pytest.raises(ResponseHandlingException) as caught:
            store.query_points("c", **SEARCH)
        took_s = time.monotonic() - begun_at
    assert isinstance(caught.value.source, httpx.ReadTimeout)
    assert 0.3 - 0.01 <= took_s <= 0.3 + LATE_S
    row = here.row(run_id)
    assert (row.outcome, row.status, row.fault) == ("client_gone", None, "retrieval_hang")


# ---- rows

ENDS_AS = {
    "hang": {"client_gone"},
    "trickle": {"ok"},
    "stall": {"ok"},
    "slow_first_token": {"ok"},
    "keep_alive": {"ok"},
    "http_500": {"error"},
    "rate_limit": {"error"},
    "rate_limit_above": {"error"},
    "disconnect": {"error"},
    "malformed": {"ok", "client_gone"},
    "empty": {"ok"},
    "brownout": {"ok"},
}
# Seconds small enough for a test of every kind.
SHORT = {
    "trickle": "=0.01",
    "stall": "=0.05",
    "slow_first_token": "=0.05",
    "keep_alive": "=0.05",
    "rate_limit_above": "=0",
}


@pytest.mark.parametrize("stops", [True, False])
@often_streamed
def test_every_fault_leaves_one_closed_row_that_names_it_and_its_tokens(stream, stops, serve_here):
    each_in_its_role = [f"{kind}{SHORT.get(kind, '')}:{kind}" for kind in MODEL_KINDS]
    here = faulty(serve_here, *each_in_its_role, stops_on_disconnect=stops)
    for kind in MODEL_KINDS:
        run_id = new_run()
        # A busy machine needs some tenths of a second until the server has seen the request that is to hang.
        with openai_at(here.addresses, timeout=1.0 if kind == "hang" else 10) as client:
            with contextlib.suppress(openai.OpenAIError, json.JSONDecodeError):
                ask(client, run_id, stream=stream, role=kind)
        if kind == "hang" and not stops:
            # Only the end of its run ends it, and then the row is gone with the run.
            assert here.row(run_id, wait_quiet_s=0).outcome == "open"
            here.log.forget(run_id)
            assert here.log.rows(run_id) == []
            continue
        row = here.row(run_id)
        assert (row.fault, row.outcome in ENDS_AS[kind]) == (kind, True), row
        assert row.output_tokens == sum(tokens for _, _, tokens in row.token_spans), kind
        assert (row.status is None) == (kind == "hang"), kind
        assert row.received_at <= row.ended_at, kind
        assert row.queue_wait_s == 0.0, kind
