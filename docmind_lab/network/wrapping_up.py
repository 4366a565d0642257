"""What the policy `wrap_up` changes at the seam: requests to a model in the reserve, and requests of tools before it.

A request to a model is changed in its JSON body alone, and only once the reserve has begun. What is no JSON, of no
known dialect, or signed with its body goes out as it is, and is noted as untold.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from docmind_lab.core.deadlines import Deadline, current_policy, in_force, in_force_scope
from docmind_lab.core.holds import current_hold
from docmind_lab.core.time_policies import WrapUp, WrapUpDeed, WrapUpNote
from docmind_lab.network.attempts import current_call
from docmind_lab.network.call_limits import asks_for_generation
from docmind_lab.network.recorder import note_event
from docmind_lab.network.taps import content_of

# With one of these the body is signed or packed: another body would be refused.
_BODY_HEADERS: Final = frozenset({b"x-amz-content-sha256", b"content-md5", b"digest", b"content-digest", b"signature"})

Payload = dict[str, Any]

_HANDOFF_PREFIX: Final = "transfer_to_"
_FORWARD: Final = "forward_message"
_LEAST_S: Final = 0.001  # 0 means no limit to some clients


class ToolUnderWay:
    """One call of a tool whose requests end where the reserve of its caller begins.

    depth: how many tools it is inside of, itself among them; the agent that called each has an answer to give yet.
    was_cut: whether one of its requests has ended there.
    """

    def __init__(self, name: str) -> None:
        around = tool_under_way()
        self.depth: int = 1 if around is None else around.depth + 1
        self.name, self.was_cut = name, False

    def note_cut(self) -> None:
        """Note that one of its requests ended where the reserve began."""
        reserve = reserve_in_force()
        if reserve is not None and not self.was_cut:
            reserve.note("cut", self.name)
        self.was_cut = True

    def scope(self) -> in_force_scope:
        """Return a scope whose requests are those of the tool."""
        return in_force_scope(tool=self)


def tool_under_way() -> ToolUnderWay | None:
    """Return the tool that the calling code is part of, if its requests end with the reserve's beginning."""
    tool: ToolUnderWay | None = in_force().tool
    return tool


class Reserve(NamedTuple):
    """The end of a run that is kept for answers: that of the calling code, and of each agent that waits for it.

    wrap_up: the policy. deadline: of the run. answers: how many of them are to come, one after the other.
    """

    wrap_up: WrapUp
    deadline: Deadline
    answers: int

    @property
    def begins_in_s(self) -> float:
        """Seconds until it begins; 0 or less once it has."""
        return self.deadline.remaining() - self.answers * float(self.wrap_up.reserve_s)

    @property
    def refuses_tools(self) -> bool:
        """Whether no tool is to begin any more."""
        return self.wrap_up.stop_tools and self.begins_in_s <= 0

    @property
    def line(self) -> str:
        """The line for a model; empty if it is told nothing."""
        return self.wrap_up.line(self.deadline.remaining(), self.deadline.limit_s)

    def note(self, what: WrapUpDeed, of: str, line: str = "") -> None:
        """Note what was done to wrap the run up. what, of, line: as `WrapUpNote` has them."""
        hold, call, left_s = current_hold(), current_call(), self.deadline.remaining()
        if hold is not None:
            hold.note("wrap_ups", WrapUpNote(what, of, left_s, line))
        note_event("wrapped_up", "" if call is None else call.role, what=what, of=of, left_s=left_s)


def reserve_in_force(own: WrapUp | None = None) -> Reserve | None:
    """Return the reserve for an answer of the calling code; None without a policy or a deadline.

    own: in place of the policy that travels with the run.
    """
    wrap_up = own or current_policy().policies.wrap_up
    if wrap_up is None:
        return None
    hold, tool = current_hold(), tool_under_way()
    deadline = in_force().run if hold is None else hold.in_force
    return None if deadline is None else Reserve(wrap_up, deadline, 1 if tool is None else tool.depth + 1)


def seconds_of_tool(*, is_model: bool) -> float | None:
    """Return how long a request that begins now may take until its tool is to end; None for no such limit."""
    tool, reserve = tool_under_way(), reserve_in_force()
    if is_model or tool is None or reserve is None or not reserve.wrap_up.stop_tools:
        return None
    return max(_LEAST_S, reserve._replace(answers=tool.depth).begins_in_s)


# ---- requests


def wrap_up_request(request: Any) -> Any:
    """Return the request of httpx or httpx2 to send: itself, or in the reserve a copy that tells its model to end."""
    headers = request.headers.raw
    new_body = wrap_up_body(request.url.host, request.url.path, headers, lambda: content_of(request))
    if new_body is None:
        return request
    length = str(len(new_body)).encode()
    headers = [(name, length if name.lower() == b"content-length" else value) for name, value in headers]
    return type(request)(request.method, request.url, headers=headers, content=new_body, extensions=request.extensions)


def wrap_up_body(
    host: str, path: str, headers: Iterable[tuple[bytes, bytes]], body: Callable[[], bytes | None]
) -> bytes | None:
    """Return the body that tells a model to end in place of a request's own; None for a request that stays as it is.

    headers: of the request. body: returns its body, None for one that is a stream; called in the reserve alone.
    """
    reserve = reserve_in_force()
    if reserve is None or reserve.begins_in_s > 0 or reserve.deadline.passed() or not asks_for_generation(path):
        return None
    line, payload = reserve.line, _payload_of(None if _depends_on_body(headers) else body())
    change = next((change for end, change in _DIALECTS.items() if path.rstrip("/").endswith(end)), None)
    stop_tools = reserve.wrap_up.stop_tools and not only_hands_over(_tool_names((payload or {}).get("tools")))
    if payload is None or change is None or not change(payload, line, stop_tools, path):
        reserve.note("untold", host)
        return None
    reserve.note("told", host, line)
    return json.dumps(payload, separators=(",", ":")).encode()


def hands_over(name: str) -> bool:
    """Whether a tool hands over to another agent, or forwards what one has said, by its name in LangGraph's libraries.

    It takes no time and leads to the answer.
    """
    return name == _FORWARD or name.startswith(_HANDOFF_PREFIX)


def only_hands_over(names: Iterable[str]) -> bool:
    """Whether these are the tools of a supervisor, which has no others. The agents it hands over to are told too."""
    offered = list(names)
    return bool(offered) and all(map(hands_over, offered))


def _tool_names(tools: Any) -> list[str]:
    """Return the names of tools as any dialect offers them; empty for one without a name."""
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    groups = (tool.get("functionDeclarations") or tool.get("function_declarations") or [tool] for tool in listed)
    return [str((tool.get("function") or tool).get("name", "")) for group in groups for tool in group]


def _depends_on_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a header of a request depends on its body, but for its length."""
    for name, value in headers:
        name = name.lower()
        if name in _BODY_HEADERS or (name == b"content-encoding" and value.lower() != b"identity"):
            return True
        if name == b"authorization" and value.startswith(b"AWS4-"):
            return True
    return False


def _payload_of(content: bytes | None) -> Payload | None:
    try:
        payload = None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


# ---- dialects: each changes the payload of a request to a path, and returns whether it could
#
# The line, unless empty, goes to the system's text, which all providers take: some take no system message but the
# first, or no user message after a tool's. With `stop_tools` the tools stay declared where a provider can forbid their
# use: a conversation with tool calls may need them. A request that demands a tool call keeps it.


def _wrap_up_chat(payload: Payload, line: str, stop_tools: bool, path: str) -> bool:
    if stop_tools:
        _forbid_tools(payload)
    return _add_to_messages(payload.get("messages"), line, at=0)


def _wrap_up_responses(payload: Payload, line: str, stop_tools: bool, path: str) -> bool:
    # Instructions are those of one response: an earlier one that it goes on from has its own. A stored prompt has
    # instructions and tools that nobody sees here.
    own = payload.get("instructions")
    if "input" not in payload or "prompt" in payload or not isinstance(own, str | None):
        return False
    if line:
        payload["instructions"] = with_line(own, line)
    if stop_tools:
        _forbid_tools(payload)
    return True


def _forbid_tools(payload: Payload) -> None:
    # OpenAI takes tool_choice only beside tools, and no empty list of tools; so do most servers that speak its dialect.
    # Gateways translate parallel_tool_calls beside "none" into what Anthropic refuses, and it means nothing there.
    choice = payload.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        choice = (choice.get("allowed_tools") or choice).get("mode", "auto")
    if payload.get("tools") and choice in (None, "auto"):
        payload["tool_choice"] = "none"
        payload.pop("parallel_tool_calls", None)


def _wrap_up_anthropic(payload: Payload, line: str, stop_tools: bool, path: str) -> bool:
    # The tools stay: older versions and gateways answer "Requests which include `tool_use` or `tool_result` blocks must
    # define tools". Without tools, {"type": "none"} is refused. A block of its own leaves the cached ones valid.
    if not isinstance(payload.get("messages"), list) or not isinstance(payload.get("system"), str | list | None):
        return False
    if line:
        payload["system"] = with_line(payload.get("system"), line)
    choice = payload.get("tool_choice") or {"type": "auto"}
    if stop_tools and payload.get("tools") and choice.get("type") == "auto":
        payload["tool_choice"] = {"type": "none"}
    return True


def _wrap_up_gemini(payload: Payload, line: str, stop_tools: bool, path: str) -> bool:
    # With cached content Gemini takes neither instruction nor tool configuration. Gemma takes no instruction. Without
    # declared functions, as where Gemini only searches the web by itself, it refuses a configuration of calls.
    name = _spelling(payload, "systemInstruction", "system_instruction")
    system = payload.get(name) or {"parts": []}
    if "cachedContent" in payload or "cached_content" in payload or not isinstance(payload.get("contents"), list):
        return False
    if not isinstance(system, dict) or not isinstance(system.get("parts"), list) or "/gemma" in path.lower():
        return False
    if line:
        payload[name] = {**system, "parts": [*system["parts"], {"text": line}]}
    tools = payload.get("tools") or []
    if stop_tools and any("functionDeclarations" in tool or "function_declarations" in tool for tool in tools):
        name = _spelling(payload, "toolConfig", "tool_config")
        config = payload.get(name) or {}
        calling = _spelling(config, "functionCallingConfig", "function_calling_config")
        if str((config.get(calling) or {}).get("mode", "")).upper() != "ANY":
            payload[name] = {**config, calling: {"mode": "NONE"}}
    return True


def _wrap_up_ollama(payload: Payload, line: str, stop_tools: bool, path: str) -> bool:
    # Ollama has no tool_choice. A system message at the start would replace the model's default one, so it comes last.
    if stop_tools:
        payload.pop("tools", None)
    return _add_to_messages(payload.get("messages"), line, at=None)


_DIALECTS: Final[dict[str, Callable[[Payload, str, bool, str], bool]]] = {
    "/chat/completions": _wrap_up_chat,
    "/responses": _wrap_up_responses,
    "/v1/messages": _wrap_up_anthropic,
    ":generateContent": _wrap_up_gemini,
    ":streamGenerateContent": _wrap_up_gemini,
    "/api/chat": _wrap_up_ollama,
}
"""End of a path → what changes a payload of its dialect."""


def _spelling(values: Payload, name: str, other: str) -> str:
    """Return the name of a field that Gemini takes in two spellings, as the request has it."""
    return other if other in values else name


def _add_to_messages(messages: Any, line: str, *, at: int | None) -> bool:
    """Add the line to the last of the system's first messages; return whether it could.

    at: the position of a new message for the line, if the system has none; None for the end.
    """
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        return False
    first = list(itertools.takewhile(lambda each: each.get("role") in ("system", "developer"), messages))
    if line and not first:
        messages.insert(len(messages) if at is None else at, {"role": "system", "content": line})
    elif line:
        if not isinstance(first[-1].get("content"), str | list):
            return False
        first[-1]["content"] = with_line(first[-1]["content"], line)
    return True


def with_line(text: str | list[Any] | None, line: str) -> str | list[Any]:
    """Return the text of a system's message with a line at its end: a part of its own after parts."""
    if isinstance(text, list):
        return [*text, {"type": "text", "text": line}]
    return f"{text}\n\n{line}" if text else line
