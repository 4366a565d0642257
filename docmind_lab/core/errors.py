"""Every error that this package raises on purpose.

DocmindLabError
├── ConfigurationError (also ValueError)   a value that cannot be used; names the field and the remedy
│   └── EndpointRefused                    an endpoint that the security settings do not admit
├── BudgetError                            role, source, stop_reason: a budget of the run is used up
│   ├── DeadlineError (also TimeoutError)  limit_s, elapsed_s: its time
│   │   ├── DeadlineExceeded               a call was cut because the budget ran out while it was under way
│   │   └── BudgetRefused                  a call was not started because no budget was left
│   ├── CallerLeft                         the caller cancelled the run, so a call was cut or not started
│   └── SpendingRefused                    budget, limit, spent: a call was not started because another is spent
│       ├── TokensSpent                    the budget of tokens
│       ├── CallsSpent                     the budget of calls
│       └── CostSpent                      the budget of cost
├── GraphError (also ValueError)           a graph that cannot be built or run as asked
├── ServiceError                           a simulated or real service did not start, answer or keep its word
├── SimulationError                        a run in virtual time that cannot begin or go on
│   ├── SimulatedDeadlock                  every thread of it waits, and nothing will ever wake one
│   ├── SimulationStalled                  one of its threads waits for, or computes in, real time for too long
│   └── NotSimulated                       a graph asked for something that has no simulated counterpart
└── RecordError                            tables that cannot be read, or do not fit this version
    └── NoSuchRecord (also ConfigurationError)  a study, recording, index or run that was named and is not there

RunCut (a BaseException)                   ends a run from within, past code that catches whatever it can
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn


def _made_again(kind: type[DocmindLabError], arguments: tuple[Any, ...], values: dict[str, Any]) -> DocmindLabError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(values)
    return error


class DocmindLabError(Exception):
    """The base class of every error that this package raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By its values: the constructors take keywords, which exceptions do not pickle.
        return _made_again, (type(self), self.args, vars(self))


class ConfigurationError(DocmindLabError, ValueError):
    """A value cannot be used. The message names the field, the value and the remedy."""


class EndpointRefused(ConfigurationError):
    """An endpoint is neither loopback nor allowed by `security.endpoint_allowlist`."""


class BudgetError(DocmindLabError):
    """A budget of the run is used up: of time, tokens, calls or cost.

    role: who was at work. source: what enforced it ("network", "middleware", "graph", "retrieval").
    stop_reason: what a run that ends with it says of itself.
    """

    stop_reason = ""

    def __init__(self, message: str, *, role: str, source: str) -> None:
        super().__init__(message)
        self.role, self.source = role, source


class DeadlineError(BudgetError, TimeoutError):
    """A deadline cut or refused a call. limit_s: seconds that were given. elapsed_s: seconds used since then."""

    stop_reason = "deadline"

    def __init__(self, message: str, *, role: str, limit_s: float, elapsed_s: float, source: str) -> None:
        super().__init__(message, role=role, source=source)
        self.limit_s, self.elapsed_s = limit_s, elapsed_s


class DeadlineExceeded(DeadlineError):
    """The deadline passed while a call was under way; the call was cut."""

    stop_reason = "deadline"


class BudgetRefused(DeadlineError):
    """No time was left before the deadline, so the call was never started."""

    stop_reason = "budget_refused"


class CallerLeft(BudgetError):
    """The caller cancelled the run, so a call was cut or never started."""

    stop_reason = "caller_left"


class SpendingRefused(BudgetError):
    """The budget of tokens, calls or cost was spent, so the call was never started.

    budget: which ("tokens", "calls", "cost"). limit, spent: in its unit.
    """

    budget = ""

    def __init__(self, message: str, *, role: str, limit: float, spent: float, source: str) -> None:
        super().__init__(message, role=role, source=source)
        self.limit, self.spent = limit, spent


class TokensSpent(SpendingRefused):
    """The budget of tokens was spent, so the call was never started."""

    budget, stop_reason = "tokens", "token_budget"


class CallsSpent(SpendingRefused):
    """The budget of calls was spent, so the call was never started."""

    budget, stop_reason = "calls", "call_budget"


class CostSpent(SpendingRefused):
    """The budget of cost was spent, so the call was never started."""

    budget, stop_reason = "cost", "cost_budget"


class GraphError(DocmindLabError, ValueError):
    """A graph cannot be built or run as requested."""


class ServiceError(DocmindLabError):
    """A service failed to start, to answer, or to do what its protocol promises."""


class SimulationError(DocmindLabError):
    """A run in virtual time cannot begin or continue."""


class SimulatedDeadlock(SimulationError):
    """Every actor waits and no timer is left, so nothing can ever happen. The message says where each one waits."""


class SimulationStalled(SimulationError):
    """An actor spent too many real seconds without waiting virtually. The message has every actor's stack.

    Its threads cannot be ended from outside, so a batch replaces the process in which this happened.
    """


class NotSimulated(SimulationError):
    """A graph asked for something that has no simulated counterpart. The message says what, by whom, and the remedy.

    requests: those that a row of a table of endpoints could answer; none where it is something else.
    """

    def __init__(self, message: str, requests: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.requests = tuple(requests)


class RecordError(DocmindLabError):
    """Tables cannot be read, or were written by a version that this one does not know."""


class NoSuchRecord(RecordError, ConfigurationError):
    """No study, recording, index or run has the given name. No file is damaged."""


class RunCut(BaseException):
    """Ends a run from inside it. error: what the caller of the graph raises or reports instead. hold: what cut it.

    Like a cancellation it is no `Exception`: code that catches those would wait and try again.
    """

    def __init__(self, error: DocmindLabError, hold: object = None) -> None:
        super().__init__(str(error))
        self.error, self.hold = error, hold

    @property
    def generations(self) -> NoReturn:
        """Raises the cut: an async model of LangChain takes what is no `Exception` for a result, and reads this."""
        raise self
