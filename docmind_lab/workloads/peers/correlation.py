"""What is known of a call to a peer while it is pending, and what can become of it.

    PENDING ──► COMPLETED    the peer answered first
            ├─► TIMED_OUT    its time ran out first
            ├─► CANCELLED    whoever wanted the answer was cancelled first
            └─► SEND_FAILED  it could not be sent, or the connection broke

A call is pending as long as its entry is in the store. Whoever *claims* the entry, which removes and returns it in one
step, decides what becomes of the call; everyone who comes later finds nothing, and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

PeerOutcome = Literal["completed", "timed_out", "cancelled", "send_failed"]
PEER_OUTCOMES: tuple[PeerOutcome, ...] = get_args(PeerOutcome)


@dataclass(frozen=True)
class CorrelationEntry:
    """One pending call.

    sub_task_id: the caller's own name of the call, known before anything is sent. function_call_id: of the model's tool
    call. original_task_context: names and numbers of what the parent was at. peer_agent_name: whom to send a cancel to;
    an entry without one is processed all the same. timeout_s: a duration, since clocks of different machines agree on
    nothing else. extensions: how often a sign of life has put the timeout off.
    """

    sub_task_id: str
    function_call_id: str
    original_task_context: Mapping[str, Any]
    peer_tool_name: str
    peer_agent_name: str
    logical_task_id: str
    invocation_id: str
    timeout_s: float
    extensions: int = 0

    def as_json(self) -> str:
        """The entry as one line of JSON, for stores outside this process; `from_json` reads it back equal."""
        return json.dumps({**asdict(self), "original_task_context": dict(self.original_task_context)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CorrelationEntry:
        """The entry that `as_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class PeerResult:
    """What became of one call.

    payload: what the peer found, of a completed call. error: of any other, in words that name what fired.
    """

    function_call_id: str
    peer: str
    outcome: PeerOutcome
    payload: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
