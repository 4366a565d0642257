"""The services that an agent of any framework meets in a probe: a model, one tool, and one thing that takes long.

    /v1/…                the model; it calls the tool, then answers from its result
    GET /tool?query=Q    the tool `lookup`; its log rows are of kind "tool"

`python -m surveys.agent_services` serves them for another program, as `python -m docmind_lab.services`
does. What takes long is chosen by the fault; everything else is quick.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast, get_args
from urllib.parse import parse_qs

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.__main__ import main
from docmind_lab.services.faults import Fault
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import ODD_REQUEST, Chunk, Headers, Plan, ServiceRequest, Wait, json_steps
from docmind_lab.services.scripted_model import Conversation, Reply
from docmind_lab.services.scripted_model.any_agent import ANSWER_TOKENS, call_of, observations_in
from docmind_lab.services.scripted_model.conversation import message_text
from docmind_lab.services.scripted_model.tokens import first_tokens
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable

AgentFault = Literal["ordinary", "stream", "hang", "trickle", "retry", "sync_tool", "async_tool", "sub_agent"]
"""What the timeout of an agent falls into.

ordinary: a model call that takes longer than what is left. stream: the same in a streaming call. hang: a model call
that never answers. trickle: an answer in small pieces, each in time. retry: the wait of the client after HTTP 429 with
Retry-After. sync_tool and async_tool: a slow tool. sub_agent: a model call of a sub-agent.
"""
AGENT_FAULTS: Final[tuple[AgentFault, ...]] = get_args(AgentFault)

LASTS_S: Final = 6.0
"""What the timeout falls into lasts so many seconds, if nothing ends it before; a hang has no end."""

TOOL_PATH: Final = "/tool"
COMMAND: Final = (sys.executable, "-m", "surveys.agent_services")
"""What serves them in a process of their own; see `ServiceProcess`."""
_FIRST_TOKEN_S = 1.0
_QUICK_S = 0.05
# About 100 words and marks, so that an answer of the model has all the tokens that it may have.
_TOOL_TEXT = (
    "A timeout ends the wait of a caller. It does not end the work by itself. A task that is cancelled gets an error "
    "at its next await, and its connection is closed. A thread cannot be cancelled, so a plain function that runs in "
    "one goes on to its end. A model server may notice that its client has left, or generate to the last token for "
    "nobody. A client that waits between two attempts sends another request when its wait is over, unless somebody "
    "tells it to stop."
)


def _profile(name: str, first_token_s: float, inter_token_s: float) -> LatencyProfile:
    first, each, none = map(QuantileTable.constant, (first_token_s, inter_token_s, 0.0))
    return LatencyProfile(name, "A model for agents of any framework.", "An assumption.", first, each, none)


_QUICK = _profile("quick", _QUICK_S, 0.001)
_SLOW = _profile("slow", _FIRST_TOKEN_S, (LASTS_S - _FIRST_TOKEN_S) / ANSWER_TOKENS)
_FAULTS: dict[str, tuple[Fault, ...]] = {
    "hang": (Fault("hang", role="*"),),
    # Twelve pieces.
    "trickle": (Fault("trickle", role="*", seconds=LASTS_S / 12),),
    "retry": (Fault("rate_limit", role="*", seconds=LASTS_S),),
}


# Where a framework has the model give its answer by a tool.
_ANSWER_TOOLS = ("final_answer", "final_result")


def reply_of_agent(conversation: Conversation) -> Reply:
    """Return the reply of an agent that has one tool and one way to hand over; the same request gets the same reply.

    It calls a tool that takes a `query` first, and takes any other for the way to a sub-agent, to be called if none was
    yet. A tool that only takes the final answer is called with it.
    """
    tool = _next_tool(conversation)
    if tool is not None:
        return Reply(tool_calls=(call_of(conversation, tool),))
    answer = _last_result(conversation)
    taking = next((name for name in _ANSWER_TOOLS if name in conversation.tools), None)
    if taking is None:
        return Reply(answer)
    return Reply(tool_calls=(call_of(conversation, taking, answer),))


def is_answering(conversation: Conversation) -> bool:
    """Whether the reply is the answer, not the call of a tool that finds something out."""
    return _next_tool(conversation) is None


def _next_tool(conversation: Conversation) -> str | None:
    called = {
        str(call.get("function", {}).get("name", ""))
        for message in conversation.messages
        for call in message.get("tool_calls") or ()
    }
    if observations_in(conversation):
        return None
    searches = [name for name, schema in conversation.tools.items() if "query" in schema.get("properties", {})]
    others = [name for name in conversation.tools if name not in _ANSWER_TOOLS]
    offered = searches or others
    return None if called.intersection(offered) else next(iter(offered), None)


def _last_result(conversation: Conversation) -> str:
    results = [message_text(m) for m in conversation.messages if m.get("role") == "tool"]
    text = next(reversed([*results, *observations_in(conversation)]), "") or "There is nothing to answer from."
    return first_tokens(text, ANSWER_TOKENS)


@dataclass
class _AgentModel:
    """The model: quick where it calls a tool, and under the fault where it answers.

    refusals: How many answers may still meet a refusal. A second attempt is served.
    """

    quick: OpenAIService
    answering: OpenAIService
    refusals: int | None

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        try:
            conversation = Conversation.from_request(request.json())
            is_struck = is_answering(conversation)
        except ODD_REQUEST:
            is_struck = False  # The service says what is wrong with it.
        if not is_struck or self.refusals == 0:
            return self.quick.plan(request)
        if self.refusals is not None:
            self.refusals -= 1
        return self.answering.plan(request)


@dataclass(frozen=True)
class _Tool:
    """The tool that the agent has. seconds: its duration."""

    seconds: float

    def plan(self, request: ServiceRequest) -> Plan:
        """See `Service`."""
        query = parse_qs(request.query).get("query")
        if request.method != "GET" or request.path != TOOL_PATH or not query:
            error = f"{request.method} {request.path} is not served here; GET {TOOL_PATH}?query=…"
            return Plan(json_steps(404, {"error": error}), "tool")
        body = f"{_TOOL_TEXT} Asked: {query[0]}".encode()
        headers = Headers(200, (("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))))
        return Plan((Wait(self.seconds), headers, Chunk(body)), "tool")


@dataclass(frozen=True)
class AgentServices:
    """Options of the services: what the timeout falls into."""

    fault: AgentFault = field(default="ordinary")

    def __post_init__(self) -> None:
        if self.fault not in AGENT_FAULTS:
            raise ConfigurationError(f"fault must be one of {', '.join(AGENT_FAULTS)}, not {self.fault!r}")

    def door(self) -> WallDoor:
        """The services behind sockets."""
        is_slow = self.fault in ("ordinary", "stream", "sub_agent")
        quick = OpenAIService(_QUICK, script=reply_of_agent, checks_conversation=True)
        profile = _SLOW if is_slow else _QUICK
        # Plans of its own: to one request it has another than the quick one.
        answering = replace(quick, profile=profile, faults=_FAULTS.get(self.fault, ()), known={})
        model = _AgentModel(quick, answering, refusals=1 if self.fault == "retry" else None)
        return WallDoor(llm=model, vectors=_Tool(LASTS_S if self.fault.endswith("_tool") else _QUICK_S))

    def as_json(self) -> str:
        """The options as one line of JSON, which `from_json` reads back equal."""
        return json.dumps({"fault": self.fault})

    @classmethod
    def from_json(cls, text: str) -> AgentServices:
        """The options that `as_json` wrote. Raises: ConfigurationError naming what does not fit."""
        try:
            return cls(cast("AgentFault", json.loads(text)["fault"]))
        except (ValueError, TypeError, LookupError) as error:
            raise ConfigurationError(f"options of the agent services: {error}") from error


if __name__ == "__main__":
    sys.exit(main(AgentServices.from_json))
