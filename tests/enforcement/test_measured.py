"""`compare --enforced`: production's wrapper, measured; its rows are the alternative's (enforce.md 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphs_agent
import graphs_mixed
import pandas as pd
import pytest
from own_runs import QUESTION, graphs_supervisor

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError

ALTERNATIVES = "unguarded,A,B,C,D,E,F,B:drain,A:per_read"


def rows_of(table: pd.DataFrame) -> pd.DataFrame:
    """A table without what names the study; the order of its rows is that of the runs, by alternative and repeat."""
    named = [column for column in ("study_id", "run_id") if column in table]
    return table.drop(columns=named).reset_index(drop=True)


@pytest.mark.parametrize(
    "fault", ["hang:*", *(pytest.param(each, marks=pytest.mark.full) for each in ((), "trickle:*"))]
)
@pytest.mark.parametrize(
    ("make", "asked"),
    [
        (graphs_agent.make, QUESTION),
        (graphs_mixed.make, {"question": QUESTION}),
        (lambda: graphs_supervisor.team, QUESTION),
    ],
    ids=["agent", "mixed", "supervisor"],
)
def test_the_rows_of_an_enforced_graph_are_those_of_the_alternative(
    make: Callable[[], Any], asked: Any, fault: Any
) -> None:
    graph = make()

    def study(enforced: bool) -> dl.Study:
        return dl.compare(
            dl.graph(graph, [asked], enforced=enforced),
            8.0,
            alternatives=ALTERNATIVES,
            world=dl.World(faults=fault),
            runs=2,
            workers=1,
        )

    bare, enforced = study(False), study(True)
    for name in ("runs", "calls", "events"):
        pd.testing.assert_frame_equal(rows_of(getattr(enforced, name)), rows_of(getattr(bare, name)))
    assert enforced.manifest["design"]["enforced"] is True
    assert "enforced" not in bare.manifest["design"]


def test_only_a_graph_of_ones_own_is_enforced() -> None:
    with pytest.raises(ConfigurationError, match=r"dl\.docmind has no argument 'enforced'"):
        dl.docmind(enforced=True)
