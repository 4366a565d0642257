"""Where in a graph something happens, told by callbacks alone: the node, its place in the run, the runs above it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from docmind_lab.docmind.graphs.observer import is_node, role_of

_PUSHED = "__pregel_push"


@dataclass(frozen=True)
class Place:
    """A node at work.

    role: of the outermost node, as the tables have it. path: the nodes from the outermost to this one. position:
    "step.branch", the step of the outermost graph and which of the tasks that `Send` started side by side it is: the
    same for every alternative.
    """

    role: str = ""
    path: tuple[str, ...] = ()
    step: int = 0
    branches: tuple[int, ...] = ()

    @property
    def position(self) -> str:
        """As `recorder.call` takes it."""
        return f"{self.step}.{'-'.join(str(branch) for branch in self.branches) or '0'}"

    def __str__(self) -> str:
        return "/".join(self.path)


NOWHERE = Place()
"""Outside every node."""


class RunTree:
    """Which run of LangChain's callbacks belongs to which node. Any thread may tell and ask."""

    def __init__(self) -> None:
        self._above: dict[UUID, UUID | None] = {}
        self._places: dict[UUID, Place] = {}
        self._latest: dict[int, Place] = {}

    def begun(
        self, run_id: UUID, above: UUID | None, tags: Sequence[str] | None, metadata: Mapping[str, Any] | None
    ) -> None:
        """A run began: a node's, if LangGraph tagged it so."""
        self._above[run_id] = above
        if is_node(tags):
            self._places[run_id] = place = _place(metadata or {}, self.place_of(above))
            self._latest[threading.get_ident()] = place

    def latest_in(self, thread_id: int) -> Place:
        """The node that began last in a thread; NOWHERE in a thread where none did."""
        return self._latest.get(thread_id, NOWHERE)

    def place_of(self, run_id: UUID | None) -> Place:
        """Where a run happens: the nearest node above it, or itself; NOWHERE outside."""
        while run_id is not None:
            place = self._places.get(run_id)
            if place is not None:
                return place
            run_id = self._above.get(run_id)
        return NOWHERE


def _place(metadata: Mapping[str, Any], outer: Place) -> Place:
    name = str(metadata.get("langgraph_node", ""))
    triggered_by = tuple(metadata.get("langgraph_path", ()))
    pushed = triggered_by[1:2] if triggered_by[:1] == (_PUSHED,) else ()
    branches = outer.branches + tuple(branch for branch in pushed if isinstance(branch, int))
    if outer.path:
        return Place(outer.role, (*outer.path, name), outer.step, branches)
    return Place(role_of(name), (name,), int(metadata.get("langgraph_step", 0)), branches)
