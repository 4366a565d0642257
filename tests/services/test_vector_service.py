"""The simulated vector store's plans: what a collection holds and finds, when, and errors in Qdrant's shape."""

from __future__ import annotations

import importlib.metadata
import json
import math
from typing import Any

import pytest
from planned_replies import head_of, json_of, tagged
from qdrant_client import models

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Plan, ServiceRequest, Wait
from docmind_lab.services.vector_service import VectorService
from docmind_lab.statistics.latency.profile import LatencyProfile

PROFILE = LatencyProfile.named("typical")
SCHEMA = {
    "vectors": {"lsa": {"size": 2, "distance": "Cosine"}},
    "sparse_vectors": {"bm25": {"modifier": "idf"}},
}
# Word 0 is in every document and word 1 in one: with IDF, a query for both finds that one first.
POINTS = [
    {
        "id": number,
        "vector": {"lsa": dense, "bm25": {"indices": indices, "values": [1.0] * len(indices)}},
        "payload": {"name": f"point {number}", "even": number % 2 == 0},
    }
    for number, dense, indices in [(1, [1.0, 0.0], [0]), (2, [0.8, 0.6], [0, 1]), (3, [0.0, 1.0], [0, 2])]
]


EVEN, ODD = ({"must": [{"key": "even", "match": {"value": value}}]} for value in (True, False))
EAST, NORTH = ({"query": dense, "using": "lsa"} for dense in ([1.0, 0.0], [0.0, 1.0]))


@pytest.fixture
def service() -> VectorService:
    service = VectorService(PROFILE)
    ask(service, "PUT", "/collections/docs", SCHEMA)
    ask(service, "PUT", "/collections/docs/points", {"points": POINTS})
    return service


def plan_of(service: VectorService, method: str, path: str, body: Any = None, **tags: Any) -> Plan:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    return service.plan(ServiceRequest(method, path, tagged(**tags), encoded))


def ask(service: VectorService, method: str, path: str, body: Any = None) -> Any:
    plan = plan_of(service, method, path, body)
    payload = json_of(plan)
    assert (head_of(plan).status, payload["status"]) == (200, "ok"), payload
    return payload["result"]


def ids_in(points: Any) -> list[int]:
    return [point["id"] for point in points]


def count(service: VectorService, **body: Any) -> int:
    return int(ask(service, "POST", "/collections/docs/points/count", body)["count"])


# ---- what it does


def test_a_collection_is_created_filled_counted_and_deleted(service):
    assert ask(service, "GET", "/collections/docs/exists") == {"exists": True}
    assert [c["name"] for c in ask(service, "GET", "/collections")["collections"]] == ["docs"]
    params = ask(service, "GET", "/collections/docs")["config"]["params"]
    assert (params["vectors"]["lsa"]["size"], params["sparse_vectors"]["bm25"]["modifier"]) == (2, "idf")
    assert (count(service, exact=True), count(service, filter=EVEN)) == (3, 1)
    batch = {"ids": [9], "vectors": {"lsa": [[0.5, 0.5]]}, "payloads": [{"name": "batch"}]}
    ask(service, "PUT", "/collections/docs/points", {"batch": batch})
    assert count(service) == 4
    ask(service, "POST", "/collections/docs/points/delete", {"points": [1, 9]})
    assert count(service) == 2
    assert ask(service, "DELETE", "/collections/docs") is True
    assert ask(service, "GET", "/collections/docs/exists") == {"exists": False}


def test_points_come_back_with_their_payload(service):
    (point,) = ask(service, "POST", "/collections/docs/points", {"ids": [2]})
    assert (point["id"], point["payload"]) == (2, {"name": "point 2", "even": True})
    page = ask(service, "POST", "/collections/docs/points/scroll", {"limit": 2})
    assert (ids_in(page["points"]), page["next_page_offset"]) == ([1, 2], 3)


# Point 2 is first and second, point 1 second of one list only.
PREFETCH = [
    {"query": {"indices": [1], "values": [1.0]}, "using": "bm25", "limit": 3},
    {"query": {"nearest": [1.0, 0.0]}, "using": "lsa", "limit": 3},
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"prefetch": PREFETCH, "query": {"fusion": "rrf"}, "limit": 3}, [2, 1, 3]),
        ({**EAST, "limit": 1}, [1]),
        ({**EAST, "filter": ODD}, [1, 3]),
        ({**EAST, "score_threshold": 0.5}, [1, 2]),
        ({**NORTH, "limit": 2}, [3, 2]),
    ],
)
def test_a_query_finds_what_it_is_narrowed_to_in_the_order_of_its_scores(service, query, ids):
    assert ids_in(ask(service, "POST", "/collections/docs/points/query", query)["points"]) == ids


def test_searches_of_other_forms_find_what_a_query_does(service):
    searches = {"searches": [{**EAST, "limit": 1}, {**NORTH, "limit": 1}]}
    answers = ask(service, "POST", "/collections/docs/points/query/batch", searches)
    assert [ids_in(one["points"]) for one in answers] == [[1], [3]]
    bare = ask(service, "POST", "/collections/docs/points/query", {**EAST, "with_payload": False})["points"]
    assert all(not point["payload"] for point in bare)


def test_the_version_is_told_at_the_root_as_a_client_looks_for_it(service):
    plan = plan_of(service, "GET", "/")
    assert head_of(plan).status == 200
    assert json_of(plan)["version"].split(".")[:2] == importlib.metadata.version("qdrant-client").split(".")[:2]


# ---- when


def test_a_search_takes_the_latency_of_its_key():
    service = VectorService(PROFILE, default_seed=3)
    ask(service, "PUT", "/collections/docs", SCHEMA)
    of_call = {"seed": 7, "role": "retrieval", "step": "2.1.1"}
    named = plan_of(service, "POST", "/collections/docs/points/query", EAST, **of_call)
    untagged = plan_of(service, "POST", "/collections/docs/points/query", EAST)
    assert named.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(7, "retrieval", "2.1.1")))
    assert untagged.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(3, "retrieval", "0")))
    assert named.kind == "retrieval"


# ---- collections that only users have


def test_a_collection_that_is_not_there_is_made_up_and_the_plan_says_so():
    service = VectorService(PROFILE)
    query = {"query": [0.1, 0.2, 0.3], "limit": 3, "with_vector": True}
    plan = plan_of(service, "POST", "/collections/none/points/query", query)
    points = json_of(plan)["result"]["points"]
    assert (head_of(plan).status, plan.made_up, len(points)) == (200, "collection none", 3)
    assert all(len(point["vector"]) == 3 and point["payload"]["page_content"] for point in points)
    scores = [point["score"] for point in points]
    assert scores == sorted(scores, reverse=True)
    assert ask(service, "GET", "/collections/none/exists") == {"exists": False}


def test_a_search_in_a_made_up_collection_takes_its_time_and_meets_faults():
    body = {"query": [0.1, 0.2]}
    plan = plan_of(VectorService(PROFILE, default_seed=3), "POST", "/collections/none/points/query", body)
    assert plan.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(3, "retrieval", "0")))
    hung = VectorService(PROFILE, faults=(Fault.parse("retrieval_hang"),))
    assert math.isinf(plan_of(hung, "POST", "/collections/none/points/query", body).duration_s)


def test_a_fault_of_searches_strikes_searches_and_nothing_else(service):
    service.faults = (Fault.parse("retrieval_503"),)
    status = {
        path: head_of(plan_of(service, "POST", f"/collections/docs/points{path}", body)).status
        for path, body in {"/query": EAST, "/query/batch": {"searches": [EAST]}, "/scroll": {}, "/count": {}}.items()
    }
    assert status == {"/query": 503, "/query/batch": 503, "/scroll": 503, "/count": 200}
    assert ids_in(ask(service, "POST", "/collections/docs/points", {"ids": [2]})) == [2]


def test_a_made_up_collection_answers_in_the_shape_that_is_asked_for():
    service = VectorService(PROFILE)

    def of(path: str, **body: Any) -> Any:
        return ask(service, "POST", f"/collections/none/points{path}", body)

    assert len(of("/query", query=[1.0])["points"]) == 10
    assert all(point["payload"] is None for point in of("/query", query=[1.0], with_payload=False)["points"])
    assert set(of("/query", query=[1.0], with_payload=["text", "owner"])["points"][0]["payload"]) == {"text", "owner"}
    assert "text" not in of("/query", query=[1.0], with_payload={"exclude": ["text"]})["points"][0]["payload"]
    assert all(point["score"] > 0.95 for point in of("/query", query=[1.0], score_threshold=0.95)["points"])
    named = of("/query", query=[1.0, 0.0], using="dense", with_vector=True)["points"][0]["vector"]
    assert (list(named), len(named["dense"])) == (["dense"], 2)
    assert [len(each["points"]) for each in of("/query/batch", searches=[{"query": [1.0], "limit": 4}])] == [4]
    assert ids_in(of("", ids=[7, 9])) == [7, 9]
    assert of("/count")["count"] == 100
    pages, offset = list[int](), None
    while not pages or offset is not None:
        page = of("/scroll", limit=40, offset=offset)
        pages += ids_in(page["points"])
        offset = page["next_page_offset"]
    assert pages == list(range(1, 101))


def test_the_client_reads_what_a_made_up_collection_is_and_writes_to_it():
    service = VectorService(PROFILE)
    info = models.CollectionInfo.model_validate(ask(service, "GET", "/collections/none"))
    assert info.config.params.vectors.size == 1536
    for method, path, body in [
        ("PUT", "/points", {"points": POINTS}),
        ("POST", "/points/delete", {"points": [1]}),
        ("PUT", "/index", {"field_name": "even"}),
    ]:
        models.UpdateResult.model_validate(ask(service, method, f"/collections/none{path}", body))
    assert ask(service, "GET", "/collections")["collections"] == []


# ---- errors


def refusal(service: VectorService, method: str, path: str, body: Any = None) -> tuple[int, str]:
    plan = plan_of(service, method, path, body)
    payload = json_of(plan)
    assert plan.duration_s == 0.0
    assert set(payload["status"]) == {"error"}
    return head_of(plan).status, payload["status"]["error"]


def test_a_collection_that_is_there_cannot_be_created_again(service):
    status, message = refusal(service, "PUT", "/collections/docs", SCHEMA)
    assert status == 409
    assert "already exists" in message
    assert count(service) == 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(("docs/points/query", body) for body in (b"{", b"", {"limit": "many"}, {**EAST, "using": "unknown"})),
        ("docs/points/query", {"query": {"indices": [0], "values": [1.0]}, "using": "unknown"}),
        ("docs/points/query", {"query": {"fusion": "rrf"}, "prefetch": [{**EAST, "using": "unknown"}]}),
        ("docs/points/query", {"query": [1.0, 0.0, 0.0], "using": "lsa"}),
        ("docs/points/query/batch", {"searches": 3}),
        ("docs/points/count", {"filter": 3}),
        ("docs/points/scroll", {"limit": -1}),
        ("docs/points/delete", {"what": 3}),
        *(("docs/points/query", {**EAST, name: "odd"}) for name in ("offset", "filter", "prefetch", "score_threshold")),
        *(("docs/points/query", {"query": {"nearest": value}}) for value in ({}, True)),
        ("docs/points/query", {**EAST, "filter": {"must": 3}}),
        *(("docs/points", {"ids": value}) for value in (3, None, [{}])),
        # A bad request to a made-up collection is one all the same.
        ("none/points/query", {"limit": "many"}),
        ("none/points/scroll", b"{"),
    ],
)
def test_a_body_that_cannot_be_used_is_a_bad_request(service, path, body):
    assert refusal(service, "POST", f"/collections/{path}", body)[0] == 400


@pytest.mark.parametrize(
    "points", [[{"vector": {}}], "all", [{"id": 5, "vector": {"lsa": [1.0]}}], [{"id": 5, "vector": {"x": [1.0, 1.0]}}]]
)
def test_points_that_do_not_fit_are_a_bad_request(service, points):
    assert refusal(service, "PUT", "/collections/docs/points", {"points": points})[0] == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/elsewhere"), ("PATCH", "/collections/docs"), ("POST", "/collections/docs/points/recommend")],
)
def test_a_request_that_is_not_served_is_not_found_and_named(service, method, path):
    status, message = refusal(service, method, path)
    assert status == 404
    assert f"{method} {path}" in message


def test_a_search_that_was_made_before_is_answered_alike_until_something_is_written(service) -> None:
    searched = []
    real = service.engine.query_points

    def counted(*arguments: Any, **options: Any) -> Any:
        searched.append(arguments)
        return real(*arguments, **options)

    service.engine.query_points = counted  # type: ignore[method-assign]

    def first() -> int:
        return ids_in(ask(service, "POST", "/collections/docs/points/query", EAST)["points"])[0]

    assert (first(), first(), len(searched)) == (1, 1, 1)
    ask(service, "POST", "/collections/docs/points/delete", {"points": [1]})
    assert (first(), len(searched)) == (2, 2)


# ---- odd requests


@pytest.mark.parametrize("body", [b"[" * 200_000, b"\xff\xfe", b"", b'"\\ud800"', b"1" * 5000])
def test_json_that_cannot_be_read_is_a_bad_request(service, body):
    for rest in ("/points/query", "/points/delete"):
        assert head_of(plan_of(service, "POST", f"/collections/docs{rest}", body)).status == 400
