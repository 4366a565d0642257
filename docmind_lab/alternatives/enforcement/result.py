"""The result of one enforced call: how it ended, the graph's state, and what the deadline cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, Literal, TypeVar

from docmind_lab.core.errors import DeadlineExceeded
from docmind_lab.core.shown import ShownAsCode

EnforcedOutcome = Literal["answered", "partial", "timed_out", "interrupted", "failed"]

StateT = TypeVar("StateT")


@dataclass(frozen=True, repr=False)
class Result(ShownAsCode, Generic[StateT]):
    """How one call of an enforced graph ended.

    Args:
        outcome: answered (the graph ran to its end), partial (it was cut, and some nodes had finished), timed_out (it
            was cut before any node had finished), interrupted (it waits for a person, as the graph would), failed (the
            graph raised an error; only a stream's result says so, since calls raise it).
        state: The graph's own state, whole; after a cut, with the writes of all nodes that had finished.
        interrupts: What an interrupted graph waits for.
        stop_reason: Why the run stopped short: "deadline", "step_timeout", "cancelled" and so on; empty for an end.
        cut_at: The nodes that were at work when the run was cut.
        overrun_s: Seconds after the deadline at which the caller had this result; 0 if it was in time.
        error: The exception by which the run was cut or failed; None where there was none.
        still_running: The nodes whose threads still ran when the caller had this result. No cancellation ends a thread.
        limit_s: The seconds that the call was given.
        elapsed_s: The seconds that it took.
        requests_cut: How many requests the deadline, or the caller, cut or refused. Those that end because their node's
            task is cancelled, as under C and F, are not among them.
        remaining_at_start_s: The seconds that were left when it began; fewer than `limit_s` under an earlier deadline.
        alternative: The alternative that enforced it, by its name in the lab's tables.
        alternative_options: Its options that are not the default, as a JSON object.
    """

    outcome: EnforcedOutcome
    state: StateT
    interrupts: tuple[Any, ...] = ()
    stop_reason: str = ""
    cut_at: tuple[str, ...] = ()
    overrun_s: float = 0.0
    error: BaseException | None = field(default=None, compare=False)
    still_running: tuple[str, ...] = ()
    limit_s: float = 0.0
    elapsed_s: float = 0.0
    requests_cut: int = 0
    remaining_at_start_s: float = 0.0
    alternative: str = ""
    alternative_options: str = "{}"

    def __repr__(self) -> str:
        # Without the state, which holds what users and documents say.
        parts = [f"Result: {self.outcome} in {self.elapsed_s:.3g} s of {self.limit_s:g} s"]
        if self.stop_reason:
            parts.append(f"stopped by {self.stop_reason}" + (f" in {', '.join(self.cut_at)}" if self.cut_at else ""))
        if self.overrun_s:
            parts.append(f"{self.overrun_s:.3g} s late")
        if self.still_running:
            parts.append(f"threads of {', '.join(self.still_running)} still running")
        return ", ".join(parts)

    @property
    def was_cut(self) -> bool:
        """Whether the deadline or the caller ended the run before the graph did."""
        return self.outcome in ("partial", "timed_out")


class CallCut(DeadlineExceeded):
    """The deadline ended a call of an enforced graph. result: what there is of it."""

    def __init__(self, result: Result[Any]) -> None:
        where = f" in {', '.join(result.cut_at)}" if result.cut_at else ""
        super().__init__(
            f"the deadline cut the graph{where}, {result.elapsed_s:.3f} s into a limit of {result.limit_s:.3f} s",
            role=", ".join(result.cut_at) or "graph",
            limit_s=result.limit_s,
            elapsed_s=result.elapsed_s,
            source="graph",
        )
        self.result = result

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"
