"""The simulated vector store: the part of Qdrant's REST interface that qdrant-client needs.

qdrant-client's own local engine creates, fills, counts and queries collections behind it.

Searches take the profile's retrieval latency; everything else answers at once. Errors have Qdrant's shape. Faults
strike searches that could be served, and nothing else, so that a collection is always set up; of a user's graph they
strike every request (`fault_effects.of_any_request`). Searches take none of the model's slots. A collection whose
metadata has a `pace` takes so many times as long to search. A collection that is not there, such as one that users have
filled, is answered with made-up points, and the plan says so.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from qdrant_client import QdrantClient, models

from docmind_lab.services.dialects import Refusal
from docmind_lab.services.fault_effects import of_any_request, under_fault
from docmind_lab.services.faults import Fault, first_that_strikes
from docmind_lab.services.made_up_points import ACKNOWLEDGED, MadeUpPoints
from docmind_lab.services.plan import ODD_REQUEST, Plan, ServiceRequest, Wait, json_steps
from docmind_lab.statistics.latency.profile import LatencyProfile

_COLLECTION = re.compile(r"^/collections/(?P<name>[^/]+)(?P<rest>/.*)?$")
_SEARCHES = frozenset(("POST", f"/points/{search}") for search in ("query", "query/batch", "scroll"))
_WRITES = frozenset({("PUT", ""), ("DELETE", ""), ("PUT", "/points"), ("POST", "/points/delete"), ("PUT", "/index")})
# What concerns whether there is a collection, and so is answered as it stands.
_OF_EXISTENCE = frozenset({("GET", "/exists"), ("PUT", ""), ("DELETE", "")})
# About 10 kB each; a study asks some hundred different ones.
_MAX_KNOWN = 2_000
_Handler = Callable[[str, ServiceRequest], Any]
_Handlers = dict[tuple[str, str], _Handler]

_POINTS: TypeAdapter[Any] = TypeAdapter(models.PointInsertOperations)
_SELECTOR: TypeAdapter[Any] = TypeAdapter(models.PointsSelector)


def _local_engine() -> QdrantClient:
    return QdrantClient(location=":memory:")


@dataclass
class VectorService:
    """The simulated vector store. Its engine is shared by the whole service and used from one thread at a time.

    known: answers to searches, by path and body: they depend on nothing but what is stored, so alternatives that ask
    the same are not searched for anew. Any write forgets them. paces: of collections that have one. Services over one
    engine share both.
    """

    profile: LatencyProfile
    default_seed: int = 0
    engine: QdrantClient = field(default_factory=_local_engine)
    faults: tuple[Fault, ...] = ()
    known: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False)
    paces: dict[str, float] = field(default_factory=dict, repr=False)

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request; a request that cannot be served gets a Qdrant-shaped error at once."""
        return of_any_request(self._plan(request), request, self.faults, self.default_seed)

    def _plan(self, request: ServiceRequest) -> Plan:
        try:
            with warnings.catch_warnings():
                # The local engine warns of its own limits in size, which concern a user of the engine, not a client.
                warnings.simplefilter("ignore", UserWarning)
                payload = self._payload(request)
            match = _COLLECTION.match(request.path)
            made_up = "" if match is None or self._has(match, request) else f"collection {match['name']}"
            plan = Plan(json_steps(200, payload), "retrieval", made_up=made_up)
            if match is not None and (request.method, match["rest"]) in _SEARCHES:
                return self._search(plan, request, self.paces.get(match["name"], 1.0))
            return plan
        except Refusal as error:
            reply = json_steps(error.status, {"status": {"error": str(error)}, "time": 0.0})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            reply = json_steps(400, {"status": {"error": f"Format error in JSON body: {where}: {first['msg']}"}})
        except (*ODD_REQUEST, AssertionError, NotImplementedError) as error:
            # The engine says "not found" of a vector's name as well; a missing collection was refused before it.
            reply = json_steps(400, {"status": {"error": str(error) or type(error).__name__}, "time": 0.0})
        return Plan(reply, "retrieval")

    def _search(self, answer: Plan, request: ServiceRequest, pace: float) -> Plan:
        """Return the plan of a search with a known answer: delay it as the profile says, and apply a fault."""
        key = request.draw_key("retrieval", "0", self.default_seed)
        fault = first_that_strikes(self.faults, "retrieval", key, request=request.node_request)
        if fault is not None and fault.kind == "retrieval_503":
            message = "Service unavailable: the search could not be done, try again later"
            return Plan(json_steps(503, {"status": {"error": message}, "time": 0.0}), "retrieval", fault=fault.kind)
        plan = replace(answer, steps=(Wait(pace * self.profile.draw_retrieval(key)), *answer.steps))
        return plan if fault is None else under_fault(plan, fault)

    def _payload(self, request: ServiceRequest) -> Any:
        if request.path in ("", "/"):
            # The only answer that is not wrapped: a client compares the version with its own.
            return {"title": "docmind_lab simulated vector store", "version": "1.20.0"}
        return {"result": self._result(request), "status": "ok", "time": 0.0}

    def _result(self, request: ServiceRequest) -> Any:
        if request.path == "/collections" and request.method == "GET":
            return _to_json(self.engine.get_collections())
        match = _COLLECTION.match(request.path)
        if match is None:
            raise Refusal(404, f"{request.method} {request.path} is not served here")
        name, rest = match["name"], match["rest"] or ""
        is_there = self._has(match, request)
        handler = (self._handlers() if is_there else _OF_MADE_UP_POINTS).get((request.method, rest))
        if handler is None:
            raise Refusal(404, f"{request.method} {request.path} is not served here")
        if (request.method, rest) in _SEARCHES:
            key = (request.path, request.body)
            if key not in self.known:
                if len(self.known) >= _MAX_KNOWN:
                    self.known.clear()
                self.known[key] = handler(name, request)
            return self.known[key]
        if (request.method, rest) in _WRITES and is_there:
            self.known.clear()
        return handler(name, request)

    def _has(self, match: re.Match[str], request: ServiceRequest) -> bool:
        """Whether the store itself answers a request: it has the collection, or is asked whether there is one."""
        endpoint = request.method, match["rest"] or ""
        return endpoint in _OF_EXISTENCE or self.engine.collection_exists(match["name"])

    def _handlers(self) -> _Handlers:
        return {
            ("GET", "/exists"): lambda name, request: {"exists": self.engine.collection_exists(name)},
            ("PUT", ""): self._create,
            ("DELETE", ""): lambda name, request: self.engine.delete_collection(name),
            **_handlers_of(_StoredPoints(self.engine)),
        }

    def _create(self, name: str, request: ServiceRequest) -> bool:
        body = models.CreateCollection.model_validate_json(request.body)
        if self.engine.collection_exists(name):
            raise Refusal(409, f"Wrong input: Collection `{name}` already exists!")
        pace = (body.metadata or {}).get("pace", 1.0)
        if isinstance(pace, bool) or not isinstance(pace, int | float) or not 0 < pace < math.inf:
            raise Refusal(400, f"Wrong input: metadata.pace must be a finite number above 0, not {pace!r}")
        self.paces[name] = float(pace)
        return self.engine.create_collection(
            name,
            vectors_config=body.vectors,
            sparse_vectors_config=body.sparse_vectors,
            metadata=body.metadata,
        )


@dataclass(frozen=True)
class _StoredPoints:
    """The points of collections that the engine has."""

    engine: QdrantClient

    def info(self, name: str) -> Any:
        return _to_json(self.engine.get_collection(name))

    def upsert(self, name: str, body: Any) -> Any:
        points = body.batch if isinstance(body, models.PointsBatch) else body.points
        return _to_json(self.engine.upsert(name, points=points, wait=True))

    def retrieve(self, name: str, body: models.PointRequest) -> Any:
        return [_to_json(record) for record in self.engine.retrieve(name, ids=body.ids, **_shown(body))]

    def delete(self, name: str, selector: Any) -> Any:
        return _to_json(self.engine.delete(name, points_selector=selector))

    def count(self, name: str, body: models.CountRequest) -> Any:
        return _to_json(self.engine.count(name, count_filter=body.filter, exact=True))

    def scroll(self, name: str, body: models.ScrollRequest) -> Any:
        records, next_offset = self.engine.scroll(
            name, scroll_filter=body.filter, limit=body.limit or 10, offset=body.offset, **_shown(body)
        )
        return {"points": [_to_json(record) for record in records], "next_page_offset": next_offset}

    def query(self, name: str, body: models.QueryRequest) -> Any:
        response = self.engine.query_points(
            name,
            query=body.query,
            using=body.using,
            prefetch=body.prefetch,
            query_filter=body.filter,
            limit=body.limit or 10,
            offset=body.offset,
            score_threshold=body.score_threshold,
            **_shown(body),
        )
        return _to_json(response)


def _shown(body: models.PointRequest | models.ScrollRequest | models.QueryRequest) -> dict[str, Any]:
    """Return what is shown of points: their payload unless the request says otherwise, and no vectors."""
    return {
        "with_payload": True if body.with_payload is None else body.with_payload,
        "with_vectors": body.with_vector or False,
    }


def serves(method: str, path: str) -> bool:
    """Whether the simulated store answers a request, for a collection that it has or for any other."""
    match = _COLLECTION.match(path)
    if match is None:
        return method == "GET" and path in ("", "/", "/collections")
    endpoint = method, match["rest"] or ""
    return endpoint in _OF_EXISTENCE or endpoint in _OF_MADE_UP_POINTS


def _handlers_of(points: _StoredPoints | MadeUpPoints) -> _Handlers:
    """Return what answers a request for the points of a collection, by method and path."""

    def reading(read: Callable[[bytes], Any], answer: Callable[[str, Any], Any]) -> _Handler:
        return lambda name, request: answer(name, read(request.body))

    def query_all(name: str, body: models.QueryRequestBatch) -> list[Any]:
        return [points.query(name, each) for each in body.searches]

    return {
        ("GET", ""): lambda name, request: points.info(name),
        ("PUT", "/index"): lambda name, request: ACKNOWLEDGED,
        ("PUT", "/points"): reading(_POINTS.validate_json, points.upsert),
        ("POST", "/points"): reading(models.PointRequest.model_validate_json, points.retrieve),
        ("POST", "/points/delete"): reading(_SELECTOR.validate_json, points.delete),
        ("POST", "/points/count"): reading(models.CountRequest.model_validate_json, points.count),
        ("POST", "/points/scroll"): reading(models.ScrollRequest.model_validate_json, points.scroll),
        ("POST", "/points/query"): reading(models.QueryRequest.model_validate_json, points.query),
        ("POST", "/points/query/batch"): reading(models.QueryRequestBatch.model_validate_json, query_all),
    }


_OF_MADE_UP_POINTS = _handlers_of(MadeUpPoints())


def _to_json(value: BaseModel) -> Any:
    return value.model_dump(mode="json", exclude_none=False)
