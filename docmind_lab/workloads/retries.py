"""Who tries again under an alternative, as the column `retries` calls it.

Most workloads leave it to the alternative (`of_alternative`); one that has a way of its own says so in its kind.
"""

from __future__ import annotations

from collections.abc import Callable

from docmind_lab.alternatives.base import Alternative
from docmind_lab.core.deadlines import PropagationPolicy

# What the openai client does when nobody says otherwise; kept for every alternative that leaves retries to it.
SDK_RETRIES = 2

RetriesOf = Callable[[Alternative, int | None], str]
"""(alternative, client retries or None for their default) → level of `retries`."""


def of_alternative(alternative: Alternative, client_retries: int | None = None) -> str:
    """The client under alternatives that leave it to it ("sdk:2"), ours within the budget ("budgeted:1"), or none."""
    if alternative.client_retries:
        return f"sdk:{SDK_RETRIES if client_retries is None else client_retries}"
    policy = getattr(alternative, "policy", None)
    return f"budgeted:{policy.retries}" if policy is not None else "none"


def within_own_limits(alternative: Alternative, client_retries: int | None = None) -> str:
    """Ours under every alternative, of a workload that gives its model calls a deadline whoever enforces the run's.

    Such a call has no retries of its client's, and those of the policy in force: that of an alternative that
    propagates, else the default one.
    """
    ours = f"budgeted:{PropagationPolicy().retries}"
    return ours if alternative.client_retries else of_alternative(alternative, client_retries)


def by_own_loop(own_retries: int) -> RetriesOf:
    """The workload's own loop ("workload:2"), with ours inside it where an alternative propagates.

    own_retries: of the loop, when nothing is said of retries.
    """

    def retries(alternative: Alternative, client_retries: int | None = None) -> str:
        loop = f"workload:{own_retries if client_retries is None else client_retries}"
        # Its client makes none.
        return loop if alternative.client_retries else f"{of_alternative(alternative, client_retries)}+{loop}"

    return retries


def of_the_graph(alternative: Alternative, client_retries: int | None = None) -> str:
    """A user's graph has retries of its own, whatever they are."""
    return "own"
