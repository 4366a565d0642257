"""Who tries a failed call again under an alternative, as the column `retries` says it: one function for each system."""

from __future__ import annotations

from collections.abc import Callable

from docmind_lab.alternatives.base import Alternative
from docmind_lab.core.deadlines import PropagationPolicy

# The openai client's default, kept for every alternative that leaves retries to it.
SDK_RETRIES = 2

RetriesOf = Callable[[Alternative, int | None], str]
"""(alternative, client retries or None for their default) → level of `retries`."""


def retries_of_alternative(alternative: Alternative, client_retries: int | None = None) -> str:
    """Name who retries failed calls: the client ("sdk:2"), the lab within the budget ("budgeted:1"), or "none"."""
    if alternative.client_retries:
        return f"sdk:{SDK_RETRIES if client_retries is None else client_retries}"
    policy = getattr(alternative, "policy", None)
    return f"budgeted:{policy.retries}" if policy is not None else "none"


def retries_within_own_limits(alternative: Alternative, client_retries: int | None = None) -> str:
    """Name who retries in a workload that limits its model calls by itself: the lab, by the policy in force."""
    ours = f"budgeted:{PropagationPolicy().retries}"
    return ours if alternative.client_retries else retries_of_alternative(alternative, client_retries)


def retries_of_own_loop(own_retries: int) -> RetriesOf:
    """Return a namer of retries: the workload's own loop ("workload:2"), and the lab inside it."""

    def retries(alternative: Alternative, client_retries: int | None = None) -> str:
        loop = f"workload:{own_retries if client_retries is None else client_retries}"
        # Its client makes none.
        return loop if alternative.client_retries else f"{retries_of_alternative(alternative, client_retries)}+{loop}"

    return retries


def own_retries(alternative: Alternative, client_retries: int | None = None) -> str:
    """Return "own": the retries of a user's graph are not known."""
    return "own"


def no_retries(alternative: Alternative, client_retries: int | None = None) -> str:
    """Return "none": nobody tries again."""
    return "none"
