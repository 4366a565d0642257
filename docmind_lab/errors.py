"""Every error that this package raises on purpose.

DocmindLabError
├── ConfigurationError (also ValueError)   a value that cannot be used; names the field and the remedy
│   └── EndpointRefused                    an endpoint that the security settings do not admit
├── DeadlineError (also TimeoutError)      role, limit_s, elapsed_s, source
│   ├── DeadlineExceeded                   a call was cut because the budget ran out while it was under way
│   └── BudgetRefused                      a call was not started because no budget was left
├── GraphError                             a graph that cannot be built or run as asked
├── ServiceError                           a simulated or real service did not start, answer or keep its word
├── SimulationError                        a run in virtual time that cannot begin or go on
│   ├── SimulatedDeadlock                  every thread of it waits, and nothing will ever wake one
│   ├── SimulationStalled                  one of its threads waits for, or computes in, real time for too long
│   └── NotSimulated                       a graph asked for something that has no simulated counterpart
└── RecordError                            tables that cannot be read, or do not fit this version

RunCut (a BaseException)                   ends a run from within, past code that catches whatever it can
"""

from __future__ import annotations


class DocmindLabError(Exception):
    """Root of the tree: catches everything that this package raises on purpose."""


class ConfigurationError(DocmindLabError, ValueError):
    """A value that cannot be used. The message names the field, the value and the remedy."""


class EndpointRefused(ConfigurationError):
    """An endpoint that is neither loopback nor allowed by `security.endpoint_allowlist`."""


class DeadlineError(DocmindLabError, TimeoutError):
    """Something was cut short by a deadline.

    role: who was at work. limit_s: the budget in force, seconds. elapsed_s: seconds spent of it.
    source: what enforced it ("network", "middleware", "graph", "retrieval").
    stop_reason: what a run that ends with it says of itself.
    """

    stop_reason = "deadline"

    def __init__(self, message: str, *, role: str, limit_s: float, elapsed_s: float, source: str) -> None:
        super().__init__(message)
        self.role, self.limit_s, self.elapsed_s, self.source = role, limit_s, elapsed_s, source


class DeadlineExceeded(DeadlineError):
    """The budget ran out while a call was under way; the call was cut."""

    stop_reason = "deadline"


class BudgetRefused(DeadlineError):
    """No budget was left, so the call was never started."""

    stop_reason = "budget_refused"


class GraphError(DocmindLabError):
    """A graph that cannot be built or run as asked."""


class ServiceError(DocmindLabError):
    """A service did not start, answer or keep its word."""


class SimulationError(DocmindLabError):
    """A run in virtual time that cannot begin or go on."""


class SimulatedDeadlock(SimulationError):
    """Every actor waits and no timer is left: nothing can happen any more. The message says where each one waits."""


class SimulationStalled(SimulationError):
    """The actor at work did not wait virtually for too many real seconds. The message has every actor's stack.

    Its threads cannot be ended from outside, so a batch replaces the process in which this happened.
    """


class NotSimulated(SimulationError):
    """A graph asked for something that has no simulated counterpart. The message says what, by whom, and the remedy."""


class RecordError(DocmindLabError):
    """Tables that cannot be read, or were written by a version that this one does not know."""


class RunCut(BaseException):
    """The end of a run, raised inside it. error: what it means; whoever runs the graph turns it into that.

    No `Exception`, as a cancellation is none: a client or a loop that catches those would wait and try again.
    """

    def __init__(self, error: DocmindLabError) -> None:
        super().__init__(str(error))
        self.error = error
