"""What the tables call the nodes that an alternative runs over."""

from __future__ import annotations

from docmind_lab.alternatives.base import Alternative
from docmind_lab.docmind.graphs.node_modes import NodeMode, checked_node_mode, effective_node_mode


def node_colour_of(alternative: Alternative, node_colour: NodeMode = "own") -> str:
    """The level of the `node_colour` factor for an alternative over nodes of this mode."""
    return effective_node_mode(alternative.node_colour, checked_node_mode(node_colour))
