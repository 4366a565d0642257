"""Faults: what can go wrong at a simulated service, which requests it strikes, and the notation for it.

What a fault does to an answer is in `fault_effects.py`.

A fault is written "kind", "kind:role" or "kind:role:probability": `hang`, `trickle:validation`, `stall:*:0.2`. The
kind may say its seconds and how many attempts of a call it strikes: `stall=5`, `http_500@1`, `rate_limit=2@1:*:0.5`.

    kind               strikes     what the client meets                                           seconds
    none               nobody      the plan as it is
    hang               models      no byte, ever; also written dead
    trickle            models      the body in 12 pieces                                           0.3 before each
    stall              models      silence first, then the plan, headers included; also written    3 of silence
                                   silent_thinking
    stall_mid_stream   models      half of the tokens or of the body, silence, then the rest       3 of silence
    slow_first_token   models      headers of an event stream at once, its first token late        3 later
    keep_alive         models      headers at once and a sign of life every 0.3 s, then the plan   inf before the plan
    http_500           the gate    status 500 at once
    rate_limit         the gate    status 429 at once, with Retry-After                            30 to wait, whole
    brownout           models      everything slower by a factor, if its work begins between two       factor 3
                                   instants (brownout=FACTOR@START-END)                           at 0-60
    disconnect         models      a closed connection after half of the body or of the tokens
    empty              models      a well-formed answer without text and without tool calls
    endless            models      bytes for an hour and then none, and never the last one         0.3 between pieces
    retrieval_slow     searches    the answer, later                                               3 later
    retrieval_hang     searches    no byte, ever
    retrieval_trickle  searches    the body in 12 pieces                                           0.3 before each
    retrieval_endless  searches    bytes for an hour and then none, and never the last one         0.3 between pieces
    retrieval_503      searches    status 503 at once

Stall and slow_first_token are one for a JSON reply, whose headers come with its body. They differ for an event
stream: a stall delays what the client waits for when it opens the stream, slow_first_token what it waits for then.

A sign of life is a comment, a ping or an empty line of an event stream, and a space before any other body. Clients skip
it. A timeout that counts bytes is defeated by it; a limit that counts tokens is not, in an event stream. Bytes of any
other body are tokens, so there only a limit of the whole call ends the wait.

The first kinds strike model calls. Without a role they strike synthesis, the longest call, so that a run gets far
enough for its deadline to matter, and every client that names no role, such as one of your own. The retrieval kinds
strike searches of the vector store, whoever makes them, and nothing else there: a collection is always set up. (The
*role* retrieval is an agent, whose model calls are model calls: `hang:retrieval` is one of those that never ends.) "*"
strikes every role.

In a user's graph the roles are its nodes, and every request of a node can be struck: the first kinds strike those to
models and to other services, the retrieval kinds those to the vector store and for embeddings. "hang:search#2" strikes
the second request of node `search` alone, with its retries. Requests of a node are numbered in the order in which a run
first sends them; later visits of the node that send the same have the same numbers.

Whether a fault strikes is drawn from the call's key (seed, role, step, attempt), so every alternative meets the same
faults. The attempt is part of the key: below probability 1 a retry may be spared, at 1 it never is. "@1" strikes
the first attempt only, "@2" the first two: a fault that passes, which a retry cures. A client
that does not say which attempt it makes always makes its first. Of several faults the first that strikes is the one.

A brownout has instants in that place, seconds since the run's first request. It comes on top of another fault.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.plan import ServiceKind

FaultKind = Literal[
    "none",
    "hang",
    "trickle",
    "stall",
    "stall_mid_stream",
    "slow_first_token",
    "keep_alive",
    "http_500",
    "rate_limit",
    "brownout",
    "disconnect",
    "empty",
    "endless",
    "retrieval_slow",
    "retrieval_hang",
    "retrieval_trickle",
    "retrieval_endless",
    "retrieval_503",
]
FAULT_KINDS: tuple[str, ...] = get_args(FaultKind)
OTHER_NAMES: Mapping[str, FaultKind] = {"dead": "hang", "silent_thinking": "stall"}
"""Another name of a kind → the kind."""

DEFAULT_ROLE = "synthesis"
DEFAULT_SECONDS: Mapping[str, float] = {
    "trickle": 0.3,  # below any per-read timeout in use, which is what makes a trickle defeat one
    "stall": 3.0,
    "stall_mid_stream": 3.0,
    "slow_first_token": 3.0,
    "keep_alive": math.inf,
    "rate_limit": 30.0,
    "endless": 0.3,
    "retrieval_slow": 3.0,
    "retrieval_trickle": 0.3,
    "retrieval_endless": 0.3,
}
"""The kinds that take seconds, with those they have when none are written."""

DEFAULT_FACTOR = 3.0
"""How much slower models are in a brownout, where no number is written."""
DEFAULT_WINDOW_S = (0.0, 60.0)
"""When a brownout begins and ends, where it is not written."""

LONGEST_S = 3600.0
"""Beyond an hour a delay is a hang."""
_WHOLE_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_NUMBERED_ROLE = re.compile(r"(.+)#([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Fault:
    """One fault, with the fields of the notation in the module's docstring.

    role: who is struck, "*" for all; empty for the kind's default. probability: of striking an attempt. seconds: of
    the kinds that take some; None for the kind's default. attempts: how many of a call's first attempts can be struck;
    None for all. factor, window_s: of a brownout, how much slower, and when it begins and ends; None for the defaults.
    request: the number of the role's only request that is struck; None for all of them.
    Raises: ConfigurationError naming the value that cannot be used.
    """

    kind: FaultKind = "none"
    role: str = ""
    probability: float = 1.0
    seconds: float | None = None
    attempts: int | None = None
    factor: float | None = None
    window_s: tuple[float, float] | None = None
    request: int | None = None

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        object.__setattr__(self, "kind", OTHER_NAMES.get(self.kind, self.kind))
        if not 0 <= self.probability <= 1:
            raise ConfigurationError(f"fault probability must be between 0 and 1, not {self.probability!r}")
        if self.attempts is not None and self.attempts < 1:
            raise ConfigurationError(f"fault attempts must be 1 or more, not {self.attempts!r}")
        if self.request is not None and self.kind == "brownout":
            raise ConfigurationError(f"fault brownout strikes no single request; leave #{self.request} out")
        self._check_brownout()
        default_s = DEFAULT_SECONDS.get(self.kind)
        if self.seconds is not None:
            self._check_seconds(self.seconds, takes_seconds=default_s is not None)
        # Two ways to write one fault are one fault: the defaults are filled in.
        object.__setattr__(self, "seconds", default_s if self.seconds is None else float(self.seconds))
        object.__setattr__(self, "role", self.role or self._default_role)

    def _check_brownout(self) -> None:
        if self.kind != "brownout":
            if self.factor is not None or self.window_s is not None:
                raise ConfigurationError(f"fault {self.kind} takes no factor and no window; brownout does")
            return
        if self.attempts is not None:
            raise ConfigurationError("fault brownout takes no attempts; it strikes what begins between two instants")
        factor = DEFAULT_FACTOR if self.factor is None else float(self.factor)
        begins_s, ends_s = DEFAULT_WINDOW_S if self.window_s is None else map(float, self.window_s)
        if not 0 < factor < math.inf:
            raise ConfigurationError(f"fault brownout: factor must be positive and finite, not {self.factor!r}")
        if not 0 <= begins_s < ends_s < math.inf:
            raise ConfigurationError(
                f"fault brownout: it must begin at 0 s or later and end after that, not {begins_s:g}-{ends_s:g}"
            )
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "window_s", (begins_s, ends_s))

    def _check_seconds(self, seconds: float, *, takes_seconds: bool) -> None:
        if not takes_seconds:
            raise ConfigurationError(
                f"fault {self.kind} takes no seconds; those that do are {', '.join(DEFAULT_SECONDS)}"
            )
        if not 0 <= seconds <= LONGEST_S and seconds != DEFAULT_SECONDS[self.kind]:
            raise ConfigurationError(f"fault {self.kind}: seconds must be between 0 and 3600, not {seconds!r}")
        if self.kind == "rate_limit" and seconds != int(seconds):
            raise ConfigurationError(f"fault rate_limit: Retry-After is in whole seconds, not {seconds!r}")

    @property
    def _default_role(self) -> str:
        return "*" if self.strikes_service == "retrieval" or self.kind == "brownout" else DEFAULT_ROLE

    @property
    def strikes_service(self) -> ServiceKind:
        """The service whose requests the fault can strike: "llm" for models, "retrieval" for the vector store."""
        return "retrieval" if self.kind.startswith("retrieval_") else "llm"

    @classmethod
    def parse(cls, text: str, default_role: str = "") -> Fault:
        """Parse the module's notation. default_role: who is struck if nobody is named. Raises: ConfigurationError."""
        parts = text.strip().split(":")
        if len(parts) > 3:
            raise ConfigurationError(
                f"fault {text!r} has too many parts; write kind:role:probability, such as stall=5@1:*:0.2"
            )
        what, role, probability = [*parts, "", ""][:3]
        numbered = _NUMBERED_ROLE.fullmatch(role)
        role, request = (numbered[1], int(numbered[2])) if numbered else (role, None)
        before_attempts, at, attempts = what.partition("@")
        kind, equals, number = before_attempts.partition("=")
        _check_kind(kind)
        chance = _parse_number(text, "probability", probability) if probability else 1.0
        if kind == "brownout":
            factor = _parse_number(text, "factor", number) if equals else None
            window_s = _parse_window(text, attempts) if at else None
            return cls("brownout", role or default_role, chance, factor=factor, window_s=window_s, request=request)
        if at and not _WHOLE_NUMBER.fullmatch(attempts):
            raise ConfigurationError(f"fault {text!r}: attempts {attempts!r} is not a whole number from 1 up")
        return cls(
            kind=cast("FaultKind", kind),
            role=role or default_role,
            probability=chance,
            seconds=_parse_number(text, "seconds", number) if equals else None,
            attempts=int(attempts) if at else None,
            request=request,
        )

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        seconds = "" if self.seconds == DEFAULT_SECONDS.get(self.kind) else f"={_format_seconds(self.seconds)}"
        attempts = "" if self.attempts is None else f"@{self.attempts}"
        if self.factor is not None and self.window_s is not None:
            seconds = f"={_format_seconds(self.factor)}"
            attempts = f"@{'-'.join(map(_format_seconds, self.window_s))}"
        chance = "" if self.probability == 1 else f":{self.probability!r}"
        number = "" if self.request is None else f"#{self.request}"
        return f"{self.kind}{seconds}{attempts}:{self.role}{number}{chance}"

    def strikes(self, key: DrawKey, *, is_named: bool = True, request: int = 0) -> bool:
        """Whether the fault strikes the attempt with this key, given that it can strike the service.

        is_named: whether the client said its role. One that did not, such as any client of `docmind-lab serve`, is
        struck by every fault of the default role too. request: the number of the request among those of its node; 0
        where requests have none.
        """
        roles = ("*", key.role) if is_named else ("*", key.role, DEFAULT_ROLE)
        if self.kind == "none" or self.role not in roles:
            return False
        if self.request not in (None, request):
            return False
        if self.attempts is not None and key.attempt > self.attempts:
            return False
        return key.uniform(f"fault/{self.kind}") < self.probability


def first_that_strikes(
    faults: Iterable[Fault], service: ServiceKind, key: DrawKey, *, is_named: bool = True, request: int = 0
) -> Fault | None:
    """Return the first fault that strikes a request to a service, or None. is_named, request: see `Fault.strikes`."""
    of_service = (fault for fault in faults if fault.strikes_service == service)
    return next((fault for fault in of_service if fault.strikes(key, is_named=is_named, request=request)), None)


def brownouts_of(faults: Iterable[Fault], key: DrawKey, *, is_named: bool = True) -> tuple[Fault, ...]:
    """Return the brownouts that strike a model call if its work begins within them. is_named: see `Fault.strikes`."""
    return tuple(fault for fault in faults if fault.kind == "brownout" and fault.strikes(key, is_named=is_named))


def _check_kind(kind: str) -> None:
    if kind in FAULT_KINDS or kind in OTHER_NAMES:
        return
    near = difflib.get_close_matches(kind, (*FAULT_KINDS, *OTHER_NAMES), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigurationError(f"unknown fault {kind!r}; {hint}the faults are {', '.join(FAULT_KINDS)}")


def _parse_window(text: str, window: str) -> tuple[float, float]:
    # A dash after an "e" is the sign of an exponent.
    begins, *rest = re.split("(?<!e)-", window, maxsplit=1)
    if not rest:
        raise ConfigurationError(f"fault {text!r}: write when it begins and ends, such as brownout=3@20-50")
    return _parse_number(text, "begin", begins), _parse_number(text, "end", rest[0])


def _parse_number(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ConfigurationError(f"fault {text!r}: {name} {value!r} is not a number") from error


def _format_seconds(seconds: float | None) -> str:
    return repr(seconds).removesuffix(".0")
