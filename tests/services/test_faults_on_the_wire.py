"""Each fault as the official clients meet it, and the row that the service keeps of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from often import often
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse
from service_doors import MODEL, QUESTION, Here, new_run, openai_at, streamed_text, tags

from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.network import HttpClients
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.statistics.latency.profile import LatencyProfile

QUICK = LatencyProfile.named("typical/100")
MODEL_KINDS = [kind for kind in FAULT_KINDS if not kind.startswith("retrieval_") and kind != "none"]


def ask(client: openai.OpenAI, run_id: str, *, stream: bool, role: str = "router") -> str:
    """What the model says, whole."""
    reply = client.chat.completions.create(
        model=MODEL, messages=QUESTION, stream=stream, extra_headers=tags(run_id, role=role)
    )
    return streamed_text(reply) if stream else reply.choices[0].message.content


def faulty(serve_here: Any, *faults: str, profile: LatencyProfile = QUICK, **options: Any) -> Here:
    return serve_here(profile=profile, faults=tuple(Fault.parse(fault) for fault in faults), **options)


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


# ---- rows

ENDS_AS = {
    "hang": {"client_gone"},
    "trickle": {"ok"},
    "stall": {"ok"},
    "slow_first_token": {"ok"},
    "http_500": {"error"},
    "rate_limit": {"error"},
    "disconnect": {"error"},
    "empty": {"ok"},
    "brownout": {"ok"},
}
# Seconds small enough for a test of every kind.
SHORT = {"trickle": "=0.01", "stall": "=0.05", "slow_first_token": "=0.05"}


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("stream", often([False, True], True))
def test_every_fault_leaves_one_closed_row_that_names_it_and_its_tokens(stream, stops, serve_here):
    each_in_its_role = [f"{kind}{SHORT.get(kind, '')}:{kind}" for kind in MODEL_KINDS]
    here = faulty(serve_here, *each_in_its_role, behaviour=STOPS if stops else GOES_ON)
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
