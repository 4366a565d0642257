"""The caller of a tree of services, as a graph of one node and as a system under a deadline.

    START → ask → END

Under an alternative that propagates the deadline, the request carries the time that is left in the header
`x-envoy-expected-rq-timeout-ms`, and is cut at the seam when that is over. Under any other it carries nothing, so
no hop has anything to hold to.

The caller has the whole answer or nothing. `documents_count` is the number of services that have answered for it,
`source_recall` their share of all of them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from docmind_lab.alternatives.base import Runnable
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.duration_headers import to_header
from docmind_lab.core.errors import ServiceError
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.services.hosted_behaviour import LEVELS, calls_below, role_of
from docmind_lab.systems.base.bounded_calls import bounded_call, cut_error
from docmind_lab.systems.base.node_modes import NodeMode, in_mode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.results import record_retrieved
from docmind_lab.systems.base.retries import no_retries
from docmind_lab.systems.base.state import SystemState
from docmind_lab.systems.base.steps_node import add_steps
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, no_policies
from docmind_lab.systems.base.workloads import ClientWorkload
from docmind_lab.systems.hops.processes import HopProcesses

_FIRST: Final = role_of(1)
_POSITION: Final = "0"
_GATEWAY_TIMEOUT: Final = 504


@functools.cache
def requests(corpus: str = "") -> tuple[Question, ...]:
    """Return the only request there is; its gold topics are the services of the tree. Nothing is searched."""
    tree = [(_FIRST, f"{_POSITION}.1")]
    # Grows while it is read, level by level.
    for role, step in tree:
        tree += calls_below(role, step)
    services = tuple(f"{role}/{step}" for role, step in tree)
    return (Question("tree", "What do all services of the tree say?", services),)


class HopsWorkload(ClientWorkload):
    """The caller and its clients, built once and run many times. surroundings: see `workload_by_name.py`."""

    name = "hops"

    def _graph(self, mode: NodeMode) -> Runnable:
        built = StateGraph(SystemState)
        add_steps(built, ask=functools.partial(self._ask, mode))
        built.add_edge(START, "ask")
        built.add_edge("ask", END)
        return built.compile(checkpointer=self.saver)

    def _ask(self, mode: NodeMode, state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        services: list[str] = yield self._request(mode, state)
        record_retrieved(_FIRST, services, services, "peer")
        documents = [
            {"id": service, "content": f"{service} has answered.", "metadata": {"topic": service}, "score": 1.0}
            for service in services
        ]
        return {"messages": [AIMessage(f"{len(services)} services have answered.")], "documents": documents}

    def _request(self, mode: NodeMode, state: Mapping[str, Any]) -> Operation:
        """Return an operation that asks the first hop. Raises: BudgetRefused, DeadlineExceeded, ServiceError."""
        url = f"{self.surroundings.addresses.hops_url}{_FIRST}"

        def steps(client: Any) -> Steps[list[str]]:
            with self._call(state) as (deadline, options):
                request = functools.partial(client.post, url, **options)
                return _services_in((yield Operation(request, request)), deadline)

        openai, openai_async = self.http.openai, self.http.openai_async
        return in_mode(mode, Operation(lambda: finish(steps(openai)), lambda: afinish(steps(openai_async))))

    @contextlib.contextmanager
    def _call(self, state: Mapping[str, Any]) -> Iterator[tuple[Deadline | None, dict[str, Any]]]:
        """Record the block as a call under the deadline in the state, and yield that and the options of its request."""
        deadline = Deadline.from_state(state)
        options = {} if deadline is None else {"headers": dict([to_header(deadline.remaining())])}
        call = bounded_call("peer", _FIRST, _POSITION, deadline, failures=(httpx2.HTTPError,), source="graph")
        try:
            with call:
                yield deadline, options
        except httpx2.HTTPError as error:
            raise ServiceError(f"{_FIRST} has not answered: {type(error).__name__}") from error


def _services_in(response: httpx2.Response, deadline: Deadline | None) -> list[str]:
    """Return the services that a reply names. Raises: DeadlineExceeded, ServiceError for a reply that is none."""
    if response.status_code == _GATEWAY_TIMEOUT and deadline is not None:
        # What is left is rounded down to milliseconds at each hop, so a hop gives up a moment before its caller.
        raise cut_error("peer", _FIRST, deadline)
    if response.is_error:
        raise ServiceError(f"{_FIRST} has answered with status {response.status_code}")
    services: list[str] = response.json()["hops"]
    return services


KIND = WorkloadKind(
    name="hops",
    title="Tree of services, three hops deep",
    asked="requests",
    cases=requests,
    build=HopsWorkload,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(10.0, 40, "heavy_tail/3"), "wall": Defaults(1.0, 8, "heavy_tail/30")},
    roles=tuple(role_of(level) for level in range(1, LEVELS + 1)),
    retries=no_retries,
    reads_settings=True,
    has_hops=True,
    refusal=no_policies,
    serve=HopProcesses,
)
"""A caller that asks a tree of seven services."""
