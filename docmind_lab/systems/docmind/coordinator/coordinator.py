"""MultiAgentCoordinator: answers a question within the decision timeout (ADR-011, ADR-056)."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Iterator
from typing import Any, Self
from weakref import WeakValueDictionary

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore

from docmind_lab.alternatives import Alternative, StopFlag
from docmind_lab.alternatives.alternative_texts import parse_alternatives, with_policies
from docmind_lab.alternatives.base import Outcome
from docmind_lab.alternatives.fence import Fence, fenced
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.settings import Settings
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.server import ServiceAddresses, ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import Library, handbook
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.docmind.coordinator.response import (
    THREAD_BUSY,
    AgentResponse,
    Fallback,
    content_of,
    decisions_of,
    extractive_fallback,
    fallback_content,
    metrics_of,
    stop_metadata,
)
from docmind_lab.systems.docmind.docmind_system import DocmindSystem

_log = logging.getLogger(__name__)


@answers_wrong_names
class MultiAgentCoordinator(ShownAsCode):
    """Answers questions with the five roles, each within `settings.agents.decision_timeout` seconds.

    Methods take a conversation's `thread_id` and the `user_id` that it belongs to; equal thread ids of two users are
    two conversations. The checkpointer has them under "user_id/thread_id".

    Args:
        settings: Endpoints of a model and a vector store; for what they do not name, simulated services are started,
            and stopped again by `close`.
        alternative: How the deadline is enforced, as an instance or a name ("A", "hard_timeout"). Left out, it is A
            with deadline propagation on, and D, which looks between steps, with it off.
        checkpointer: LangGraph's. Left out, conversations are kept in memory.
        store: LangGraph's.
        corpus: What is searched; the handbook when left out.
        services: Options of the simulated services, with latencies "fast" when left out.

    Raises:
        ConfigurationError: Settings and alternative contradict each other.
        ServiceError: The services do not start.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        alternative: Alternative | str | None = None,
        checkpointer: BaseCheckpointSaver[Any] | None = None,
        store: BaseStore | None = None,
        corpus: Library | None = None,
        services: ServiceOptions | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.alternative = chosen_alternative(alternative, self.settings)
        searched = corpus or handbook()
        self._threads = ConversationThreads()
        self._numbers = itertools.count(1)
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as opening:
            # The services stop before the clients close: what still runs then fails at once.
            addresses = _addresses(self.settings, services, opening)
            self.system = DocmindSystem(Surroundings(addresses, self.settings, corpus=searched))
            self._open.callback(self.system.close)
            self._open.push(opening.pop_all())
        self._graph = self.system.compiled(InMemorySaver() if checkpointer is None else checkpointer, store)

    def __repr__(self) -> str:
        limit_s = self.settings.agents.decision_timeout
        model = "a live model" if self.settings.llm.base_url else "a simulated model"
        return f"MultiAgentCoordinator: {self.alternative.name}, {limit_s:g} s for each question, {model}"

    # ---- questions

    def process_query(
        self, query: str, *, thread_id: str = "default", user_id: str = "local", context: Any = None
    ) -> AgentResponse:
        """Answer a question; returns by the deadline if the alternative keeps it.

        The budget starts here, before any set-up. Questions on one thread follow each other; waiting for the one
        before is part of the budget. Whatever an earlier question left running cannot write into the thread.

        Args:
            query: The question.
            thread_id: The conversation.
            user_id: Whom it belongs to.
            context: Runtime context of the graph, such as {"router_engine": engine}.

        Raises:
            ConfigurationError: The question is empty, or the coordinator is closed. A timeout raises nothing.
        """
        self._require_open()
        deadline = Deadline.after(self.settings.agents.decision_timeout)
        question = _require_question(query)
        number = next(self._numbers)
        recorder = Recorder(f"query-{number}", number, deadline)
        key = thread_key(thread_id, user_id)
        with self._threads.turn(key, deadline) as fence:
            if fence is None:
                outcome, fallback = Outcome("timed_out", stop_reason=THREAD_BUSY), None
            else:
                runnable = self.system.for_run(self._graph, recorder, key, context=context)
                inputs = {"messages": [HumanMessage(question)]}
                with recording(recorder):
                    outcome = self.alternative.run(fenced(runnable, fence, recorder), inputs, deadline, recorder)
                fallback = self._fallback(question, outcome, deadline, recorder)
        response = self._response(outcome, fallback, thread_id, recorder)
        _log.info(
            "query ended: %s%s after %.3f s of %g s, %d documents",
            outcome.outcome,
            f" ({outcome.stop_reason})" if outcome.stop_reason else "",
            response.processing_time,
            deadline.limit_s,
            len(response.sources),
        )
        return response

    def _fallback(self, question: str, outcome: Outcome, deadline: Deadline, recorder: Recorder) -> Fallback | None:
        failed = outcome.outcome == "failed" or outcome.stop_reason == "step_limit"
        if not failed or outcome.answer:
            return None
        return extractive_fallback(question, outcome.documents, self.system.resources, deadline, recorder)

    def _response(
        self, outcome: Outcome, fallback: Fallback | None, thread_id: str, recorder: Recorder
    ) -> AgentResponse:
        returned_at = recorder.mark_returned()
        deadline = recorder.deadline
        validation = outcome.state.get("validation") or {}
        refusal = self.system.refusal_of(recorder.run_id)
        content = content_of(outcome, deadline.limit_s, refusal)
        return AgentResponse(
            content=content if fallback is None else fallback_content(content, fallback.content),
            sources=outcome.documents if fallback is None else fallback.documents,
            metadata={
                "thread_id": thread_id,
                "run_id": recorder.run_id,
                "alternative": self.alternative.name,
                "outcome": outcome.outcome,
                "decision_timeout_s": deadline.limit_s,
                "overrun_s": max(0.0, returned_at - deadline.at_s),
                **stop_metadata(outcome),
            },
            validation_score=validation.get("score"),
            processing_time=returned_at - recorder.started_at,
            optimization_metrics=metrics_of(recorder, returned_at),
            agent_decisions=decisions_of(outcome.state),
            fallback_used=fallback is not None,
        )

    # ---- end

    _is_closed = False

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConfigurationError("this coordinator is closed; make a new MultiAgentCoordinator")

    def close(self) -> None:
        """Stop the services that were started, and close the clients."""
        self._is_closed = True
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def chosen_alternative(alternative: Alternative | str | None, settings: Settings) -> Alternative:
    """Return the alternative that enforces the deadline. Raises: ConfigurationError, also where propagation is off."""
    agents = settings.agents
    if alternative is None:
        alternative = "cooperative" if agents.enable_deadline_propagation else StopFlag()
    if isinstance(alternative, str):
        alternatives = parse_alternatives(alternative, budgeted_retries=agents.max_retries)
        if len(alternatives) != 1:
            raise ConfigurationError(f"alternative must name one, not {alternative!r}; such as 'A'")
        alternative = alternatives[0]
    if alternative.propagates and not agents.enable_deadline_propagation:
        raise ConfigurationError(
            f"agents.enable_deadline_propagation=false would make {alternative.name} another alternative; leave it on, "
            "or choose one that does not propagate (B, C, D, F)"
        )
    if agents.time_policies:
        alternative = with_policies(alternative, TimePolicies.parse(agents.time_policies))
    return alternative


def _addresses(settings: Settings, services: ServiceOptions | None, opening: contextlib.ExitStack) -> ServiceAddresses:
    """Return the addresses of the model and the vector store; start simulated ones that the settings do not name."""
    llm, database = settings.llm.base_url, settings.database
    vectors = database.qdrant_url
    if llm is not None and vectors is not None:
        return ServiceAddresses(openai_base_url=llm, qdrant_url=vectors, log_url="")
    process = ServiceProcess(services or ServiceOptions(profile=LatencyProfile.named("fast")))
    simulated = opening.enter_context(process).addresses
    return ServiceAddresses(
        openai_base_url=llm or simulated.openai_base_url,
        qdrant_url=simulated.qdrant_url if vectors is None else vectors,
        log_url=simulated.log_url,
    )


def _require_question(query: str) -> str:
    if not isinstance(query, str) or not query.strip():
        raise ConfigurationError("query must be a question in words; it is empty")
    return query


# ---- threads of conversations: one query at a time on each, and a fence that keeps earlier queries out


class ConversationThreads:
    """Runs queries on one thread one after the other; different threads never wait for each other."""

    def __init__(self) -> None:
        # A lock is there as long as a query holds it or waits for it.
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def turn(self, thread_id: str, deadline: Deadline) -> Iterator[Fence | None]:
        """Wait for the thread's turn; yield a fence that closes after the block, None past the deadline.

        What a query leaves running when its block ends finds the fence closed, so the next one starts from
        checkpoints that nothing else changes.
        """
        with self._guard:
            turn = self._turns.setdefault(thread_id, threading.Lock())
        if not turn.acquire(timeout=max(0.0, deadline.remaining())):
            yield None
            return
        fence = Fence()
        try:
            yield fence
        finally:
            fence.close()
            turn.release()


def thread_key(thread_id: str, user_id: str) -> str:
    """Return the name under which a user's conversation is kept."""
    # The first slash ends the user: ("alice", "team/x") is not ("alice/team", "x").
    user = user_id.replace("%", "%25").replace("/", "%2F")
    return f"{user}/{thread_id}"
