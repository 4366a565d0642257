"""No request, however odd, has a service fail: it is answered, or refused by 400 and the like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planned_replies import head_of

from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.vector_service import VectorService
from docmind_lab.statistics.latency.profile import LatencyProfile

PROFILE = LatencyProfile.named("typical")
MODEL = OpenAIService(PROFILE)
DEEP = b"[" * 200_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
POINT = st.fixed_dictionaries({"id": JSON, "vector": JSON}, optional={"payload": JSON})
SEARCH = st.fixed_dictionaries(
    {},
    optional={
        "query": JSON | st.lists(st.floats(-1, 1), max_size=4) | st.fixed_dictionaries({"nearest": JSON}),
        "using": JSON,
        "limit": JSON,
        "offset": JSON,
        "filter": JSON | st.fixed_dictionaries({"must": JSON}),
        "prefetch": JSON,
        "with_payload": JSON,
        "with_vector": JSON,
        "score_threshold": JSON,
        "ids": JSON,
        "points": st.lists(POINT, max_size=2) | JSON,
    },
)
PARTS = ("", "/query", "/query/batch", "/scroll", "/count", "/delete")
STORE_PATHS = st.sampled_from(["", *(f"/points{part}" for part in PARTS)])


def completion(body: bytes) -> int:
    return head_of(MODEL.plan(ServiceRequest("POST", "/v1/chat/completions", {}, body))).status


@pytest.fixture(scope="module")
def store() -> VectorService:
    service = VectorService(PROFILE)
    body = json.dumps({"vectors": {"size": 2, "distance": "Cosine"}}).encode()
    assert head_of(service.plan(ServiceRequest("PUT", "/collections/c", {}, body))).status == 200
    return service


@given(st.sampled_from(["PUT", "POST", "GET"]), STORE_PATHS, SEARCH | JSON)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_store_answers_or_refuses_every_request(store: VectorService, method: str, rest: str, payload: Any) -> None:
    request = ServiceRequest(method, f"/collections/c{rest}", {}, json.dumps(payload).encode())
    assert head_of(store.plan(request)).status < 500


@pytest.mark.parametrize("body", [DEEP, b'{"messages":' * 100_000, b"\xff\xfe", b"", b'"\\ud800"', b"1" * 5000])
def test_json_that_cannot_be_read_is_refused_by_400(store: VectorService, body: bytes) -> None:
    assert completion(body) == 400
    for rest in ("/points/query", "/points/delete"):
        assert head_of(store.plan(ServiceRequest("POST", f"/collections/c{rest}", {}, body))).status == 400


def test_arguments_of_tools_nested_deeply_are_refused_or_answered() -> None:
    call = {"id": "c", "function": {"name": "retrieve_documents", "arguments": DEEP.decode()}}
    messages = [{"role": "user", "content": "What?"}, {"role": "assistant", "tool_calls": [call]}]
    messages.append({"role": "tool", "tool_call_id": "c", "name": "retrieve_documents", "content": DEEP.decode()})
    assert completion(json.dumps({"model": MODEL.model, "messages": messages}).encode()) < 500
