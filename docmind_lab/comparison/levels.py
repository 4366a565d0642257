"""What the tables call an alternative's way with retries, and the nodes that it runs over."""

from __future__ import annotations

from docmind_lab.alternatives.base import Alternative
from docmind_lab.graphs.colours import Colour, checked_colour, colour_that_runs

# What the openai client does when nobody says otherwise; kept for every alternative that leaves retries to it.
SDK_RETRIES = 2


def retries_of(alternative: Alternative, client_retries: int | None = None) -> str:
    """The level of the `retries` factor for an alternative. client_retries: of the client, None for its default."""
    if alternative.client_retries:
        return f"sdk:{SDK_RETRIES if client_retries is None else client_retries}"
    policy = getattr(alternative, "policy", None)
    return f"budgeted:{policy.retries}" if policy is not None else "none"


def node_colour_of(alternative: Alternative, node_colour: Colour = "own") -> str:
    """The level of the `node_colour` factor for an alternative over nodes of this colour."""
    return colour_that_runs(alternative.node_colour, checked_colour(node_colour))
