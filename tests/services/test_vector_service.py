"""The simulated vector store's plans: what a collection holds and finds, when, and errors in Qdrant's shape."""

from __future__ import annotations

import importlib.metadata
import json
import math
from typing import Any

import pytest
from qdrant_client import models

from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Chunk, Headers, Plan, ServiceRequest, Wait
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


@pytest.fixture
def service() -> VectorService:
    service = VectorService(PROFILE)
    ask(service, "PUT", "/collections/docs", SCHEMA)
    ask(service, "PUT", "/collections/docs/points", {"points": POINTS})
    return service


def plan_of(service: VectorService, method: str, path: str, body: Any = None, **tags: str) -> Plan:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {f"x-docmind-{name}": value for name, value in tags.items()}
    return service.plan(ServiceRequest(method, path, headers, encoded))


def answer(plan: Plan) -> tuple[int, Any]:
    status = next(step.status for step in plan.steps if isinstance(step, Headers))
    return status, json.loads(b"".join(step.data for step in plan.steps if isinstance(step, Chunk)))


def ask(service: VectorService, method: str, path: str, body: Any = None) -> Any:
    status, payload = answer(plan_of(service, method, path, body))
    assert status == 200, payload
    assert payload["status"] == "ok"
    return payload["result"]


def found(service: VectorService, **query: Any) -> list[int]:
    return [point["id"] for point in ask(service, "POST", "/collections/docs/points/query", query)["points"]]


# ---- what it does


def test_a_collection_is_created_filled_counted_and_deleted(service):
    assert ask(service, "GET", "/collections/docs/exists") == {"exists": True}
    assert [c["name"] for c in ask(service, "GET", "/collections")["collections"]] == ["docs"]
    assert ask(service, "POST", "/collections/docs/points/count", {"exact": True}) == {"count": 3}
    even = {"filter": {"must": [{"key": "even", "match": {"value": True}}]}}
    assert ask(service, "POST", "/collections/docs/points/count", even) == {"count": 1}
    ask(service, "POST", "/collections/docs/points/delete", {"points": [1]})
    assert ask(service, "POST", "/collections/docs/points/count", {}) == {"count": 2}
    assert ask(service, "DELETE", "/collections/docs") is True
    assert ask(service, "GET", "/collections/docs/exists") == {"exists": False}


def test_the_schema_of_a_collection_is_the_one_it_was_created_with(service):
    params = ask(service, "GET", "/collections/docs")["config"]["params"]
    assert params["vectors"]["lsa"]["size"] == 2
    assert params["sparse_vectors"]["bm25"]["modifier"] == "idf"


def test_points_come_back_with_their_payload(service):
    (point,) = ask(service, "POST", "/collections/docs/points", {"ids": [2]})
    assert (point["id"], point["payload"]) == (2, {"name": "point 2", "even": True})
    page = ask(service, "POST", "/collections/docs/points/scroll", {"limit": 2})
    assert [point["id"] for point in page["points"]] == [1, 2]
    assert page["next_page_offset"] == 3


def test_points_can_be_sent_as_a_batch(service):
    batch = {"ids": [9], "vectors": {"lsa": [[0.5, 0.5]]}, "payloads": [{"name": "batch"}]}
    ask(service, "PUT", "/collections/docs/points", {"batch": batch})
    assert ask(service, "POST", "/collections/docs/points/count", {}) == {"count": 4}


def test_prefetched_lists_are_fused_by_reciprocal_rank(service):
    prefetch = [
        {"query": {"indices": [1], "values": [1.0]}, "using": "bm25", "limit": 3},
        {"query": {"nearest": [1.0, 0.0]}, "using": "lsa", "limit": 3},
    ]
    # Point 2 is first and second, point 1 second of one list only.
    assert found(service, prefetch=prefetch, query={"fusion": "rrf"}, limit=3) == [2, 1, 3]


def test_limit_filter_and_threshold_narrow_what_is_found(service):
    assert found(service, query=[1.0, 0.0], using="lsa", limit=1) == [1]
    odd = {"must": [{"key": "even", "match": {"value": False}}]}
    assert found(service, query=[1.0, 0.0], using="lsa", filter=odd) == [1, 3]
    assert found(service, query=[1.0, 0.0], using="lsa", score_threshold=0.5) == [1, 2]


def test_a_batch_of_queries_gets_a_list_of_answers(service):
    searches = [{"query": [1.0, 0.0], "using": "lsa", "limit": 1}, {"query": [0.0, 1.0], "using": "lsa", "limit": 1}]
    answers = ask(service, "POST", "/collections/docs/points/query/batch", {"searches": searches})
    assert [[point["id"] for point in one["points"]] for one in answers] == [[1], [3]]


def test_payloads_are_left_out_when_not_wanted(service):
    body = {"query": [1.0, 0.0], "using": "lsa", "with_payload": False}
    points = ask(service, "POST", "/collections/docs/points/query", body)["points"]
    assert all(not point["payload"] for point in points)


def test_the_version_is_told_at_the_root_as_a_client_looks_for_it(service):
    status, payload = answer(plan_of(service, "GET", "/"))
    assert status == 200
    assert payload["version"].split(".")[:2] == importlib.metadata.version("qdrant-client").split(".")[:2]


# ---- when


def test_a_search_takes_the_latency_of_its_key():
    service = VectorService(PROFILE, default_seed=3)
    ask(service, "PUT", "/collections/docs", SCHEMA)
    body = {"query": [1.0, 0.0], "using": "lsa"}
    tagged = plan_of(service, "POST", "/collections/docs/points/query", body, seed="7", role="retrieval", step="2.1.1")
    untagged = plan_of(service, "POST", "/collections/docs/points/query", body)
    assert tagged.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(7, "retrieval", "2.1.1")))
    assert untagged.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(3, "retrieval", "0")))
    assert tagged.kind == "retrieval"


# ---- collections that only users have


def test_a_collection_that_is_not_there_is_made_up_and_the_plan_says_so():
    service = VectorService(PROFILE)
    query = {"query": [0.1, 0.2, 0.3], "limit": 3, "with_vector": True}
    plan = plan_of(service, "POST", "/collections/none/points/query", query)
    status, payload = answer(plan)
    points = payload["result"]["points"]
    assert (status, plan.made_up, len(points)) == (200, "collection none", 3)
    assert all(len(point["vector"]) == 3 and point["payload"]["page_content"] for point in points)
    assert [point["score"] for point in points] == sorted((point["score"] for point in points), reverse=True)
    assert ask(service, "GET", "/collections/none/exists") == {"exists": False}


def test_a_search_in_a_made_up_collection_takes_its_time_and_meets_faults():
    body = {"query": [0.1, 0.2]}
    plan = plan_of(VectorService(PROFILE, default_seed=3), "POST", "/collections/none/points/query", body)
    assert plan.steps[0] == Wait(PROFILE.draw_retrieval(DrawKey(3, "retrieval", "0")))
    hung = VectorService(PROFILE, faults=(Fault.parse("retrieval_hang"),))
    assert math.isinf(plan_of(hung, "POST", "/collections/none/points/query", body).duration_s)


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
    assert len(of("/search", vector={"name": "dense", "vector": [1.0]}, limit=2)) == 2
    assert [len(each["points"]) for each in of("/query/batch", searches=[{"query": [1.0], "limit": 4}])] == [4]
    assert [point["id"] for point in of("", ids=[7, 9])] == [7, 9]
    assert of("/count")["count"] == 100
    pages, offset = [], None
    while not pages or offset is not None:
        page = of("/scroll", limit=40, offset=offset)
        pages.append([point["id"] for point in page["points"]])
        offset = page["next_page_offset"]
    assert [each for page in pages for each in page] == list(range(1, 101))


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


def test_an_older_search_finds_what_a_query_does(service):
    search = {"vector": {"name": "lsa", "vector": [0.0, 1.0]}, "limit": 2}
    old = ask(service, "POST", "/collections/docs/points/search", search)
    assert [point["id"] for point in old] == found(service, query=[0.0, 1.0], using="lsa", limit=2)


def test_a_bad_request_to_a_made_up_collection_is_one_all_the_same():
    for path, body in [("query", {"limit": "many"}), ("scroll", b"{"), ("search", [])]:
        assert refusal(VectorService(PROFILE), "POST", f"/collections/none/points/{path}", body)[0] == 400


# ---- errors


def refusal(service: VectorService, method: str, path: str, body: Any = None) -> tuple[int, str]:
    plan = plan_of(service, method, path, body)
    status, payload = answer(plan)
    assert plan.duration_s == 0.0
    assert set(payload["status"]) == {"error"}
    return status, payload["status"]["error"]


def test_a_collection_that_is_there_cannot_be_created_again(service):
    status, message = refusal(service, "PUT", "/collections/docs", SCHEMA)
    assert status == 409
    assert "already exists" in message
    assert ask(service, "POST", "/collections/docs/points/count", {}) == {"count": 3}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("query", b"{"),
        ("query", b""),
        ("query", {"limit": "many"}),
        ("query", {"query": [1.0, 0.0], "using": "unknown"}),
        ("query", {"query": {"indices": [0], "values": [1.0]}, "using": "unknown"}),
        ("query", {"query": {"fusion": "rrf"}, "prefetch": [{"query": [1.0, 0.0], "using": "unknown"}]}),
        ("query", {"query": [1.0, 0.0, 0.0], "using": "lsa"}),
        ("query/batch", {"searches": 3}),
        ("count", {"filter": 3}),
        ("scroll", {"limit": -1}),
        ("delete", {"what": 3}),
    ],
)
def test_a_body_that_cannot_be_used_is_a_bad_request(service, path, body):
    assert refusal(service, "POST", f"/collections/docs/points/{path}", body)[0] == 400


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


def test_a_search_that_was_made_before_is_answered_alike_until_something_is_written() -> None:
    service = VectorService(LatencyProfile.named("typical"))
    searched = []
    real = service.engine.query_points

    def counted(*arguments: Any, **options: Any) -> Any:
        searched.append(arguments)
        return real(*arguments, **options)

    service.engine.query_points = counted  # type: ignore[method-assign]

    def ask(method: str, path: str, body: Any) -> Any:
        steps = service.plan(ServiceRequest(method, path, body=json.dumps(body).encode())).steps
        return json.loads(b"".join(step.data for step in steps if isinstance(step, Chunk)))["result"]

    ask("PUT", "/collections/c", {"vectors": {"size": 2, "distance": "Dot"}})
    ask("PUT", "/collections/c/points", {"points": [{"id": 1, "vector": [1.0, 0.0], "payload": {}}]})
    first = ask("POST", "/collections/c/points/query", {"query": [1.0, 0.0]})
    assert ask("POST", "/collections/c/points/query", {"query": [1.0, 0.0]}) == first
    assert len(searched) == 1
    ask("PUT", "/collections/c/points", {"points": [{"id": 2, "vector": [2.0, 0.0], "payload": {}}]})
    again = ask("POST", "/collections/c/points/query", {"query": [1.0, 0.0]})
    assert [point["id"] for point in again["points"]] == [2, 1]
    assert len(searched) == 2
