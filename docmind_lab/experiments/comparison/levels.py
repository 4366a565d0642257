"""What the tables call the nodes that an alternative runs over."""

from __future__ import annotations

from docmind_lab.alternatives.base import Alternative
from docmind_lab.docmind.graphs.colours import Colour, checked_colour, colour_that_runs


def node_colour_of(alternative: Alternative, node_colour: Colour = "own") -> str:
    """The level of the `node_colour` factor for an alternative over nodes of this colour."""
    return colour_that_runs(alternative.node_colour, checked_colour(node_colour))
