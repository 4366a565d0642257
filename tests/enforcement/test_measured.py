"""`compare --enforced`: production's wrapper, measured; its rows are the alternative's (enforce.md 9)."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import graphs_agent
import graphs_mixed
import httpx
import httpx2
import pandas as pd
import pytest
import requests
from flat_compare import compare_by
from own_runs import QUESTION, State, graph_of, graphs_supervisor

import docmind_lab as dl
from docmind_lab.alternatives.enforcement import hooks
from docmind_lab.core.deadlines import deadline_scope
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import current_hold
from docmind_lab.network.exchange import Exchange

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
        system, world = dl.graph(graph, [asked], enforced=enforced), dl.World(faults=fault)
        return dl.compare(system, 8.0, alternatives=ALTERNATIVES, world=world, runs=2, workers=1)

    bare, enforced = study(False), study(True)
    for name in ("runs", "calls", "events"):
        pd.testing.assert_frame_equal(rows_of(getattr(enforced, name)), rows_of(getattr(bare, name)))
    assert enforced.manifest["design"]["enforced"] is True
    assert "enforced" not in bare.manifest["design"]


MODEL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "any", "messages": [{"role": "user", "content": "What is yield?"}]}


def by_httpx(state: State) -> State:
    return {"answer": httpx.post(MODEL, json=ASKED, timeout=60).text}


async def by_async_httpx2(state: State) -> State:
    async with httpx2.AsyncClient(timeout=60) as client:
        return {"answer": (await client.post(MODEL, json=ASKED)).text}


def by_requests(state: State) -> State:
    return {"answer": requests.post(MODEL, json=ASKED, timeout=60).text}


async def by_aiohttp(state: State) -> State:
    async with aiohttp.ClientSession() as session, session.post(MODEL, json=ASKED) as response:
        return {"answer": await response.text()}


def unheld(*arguments: Any, **options: Any) -> Exchange:
    with deadline_scope(None, inherits=False):
        return Exchange(*arguments, **options)


# Client → how the hold of its adapter is broken.
BREAKS: dict[Callable[[State], Any], tuple[str, Any]] = {
    by_httpx: ("httpx.Exchange", unheld),
    by_async_httpx2: ("httpx.Exchange", unheld),
    by_requests: ("http_client._hold_on", lambda connection: None),
    by_aiohttp: ("aiohttp._cap_timeout", lambda session, own, deadline: aiohttp.ClientTimeout(total=60)),
}


def by_urllib(state: State) -> State:
    request = urllib.request.Request(MODEL, json.dumps(ASKED).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return {"answer": response.read().decode()}


def returned_at_s(client: Callable[[State], Any], fault: str, *, enforced: bool) -> float:
    """When the caller of a run under A and a deadline of 2 s is back; NaN if not before the horizon."""
    options: dict[str, Any] = {"alternatives": "A", "inputs": [{"question": "a"}], "workers": 1}
    study = compare_by(
        **options, decision_timeout_s=2.0, runs=1, graph=graph_of(client), faults=fault, enforced=enforced
    )
    return float(study.runs["returned_at_s"].iloc[0])


@pytest.mark.parametrize("fault", ["hang:*", "trickle:*"])
@pytest.mark.parametrize("client", BREAKS)
def test_a_study_shows_that_the_hold_of_a_clients_adapter_is_broken(
    client: Callable[[State], Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert returned_at_s(client, fault, enforced=True) == 2.0
    place, broken = BREAKS[client]
    monkeypatch.setattr(f"docmind_lab.network.clients.{place}", broken)
    assert returned_at_s(client, fault, enforced=True) != 2.0


def test_a_client_that_production_does_not_hold_is_not_held_in_an_enforced_run() -> None:
    assert returned_at_s(by_urllib, "hang:*", enforced=False) == 2.0
    assert returned_at_s(by_urllib, "hang:*", enforced=True) != 2.0


@pytest.mark.parametrize(("enforced", "goes_on"), [(True, True), (False, False)])
def test_what_an_answered_run_left_behind_goes_on_in_an_enforced_run_as_in_production(
    enforced: bool, goes_on: bool
) -> None:
    tasks = set()

    async def answer(state: State) -> dict[str, Any]:
        tasks.add(asyncio.create_task(by_async_httpx2(state)))
        await asyncio.sleep(0.1)
        return {"answer": "yes"}

    system = dl.graph(graph_of(answer=answer), [{"question": QUESTION}], enforced=enforced)
    study = dl.compare(system, 1.0, alternatives="E", world=dl.World(faults="stall=5"), runs=1, workers=1)
    assert study.runs["outcome"].tolist() == ["answered"]
    assert (study.runs["work_overrun_s"] > 3.0).tolist() == [goes_on]


def test_a_deadline_around_a_comparison_outlives_it() -> None:
    system = dl.graph(graph_of(answer=by_httpx), [{"question": QUESTION}])
    with dl.deadline(3600):
        dl.compare(system, 5.0, alternatives="A", runs=1, workers=1)
        hold = current_hold()
        assert hold is not None
        assert not hold.is_released


def test_an_enforced_comparison_leaves_every_client_as_it_was() -> None:
    hooks.uninstall()
    clean = {kind: dict(vars(kind)) for kind in (aiohttp.ClientSession, aiohttp.TCPConnector, httpx.HTTPTransport)}
    system = dl.graph(graph_of(answer=by_httpx), [{"question": QUESTION}], enforced=True)
    dl.compare(system, 5.0, alternatives="A,E", runs=1, workers=1)
    assert hooks.installed() == ()
    assert {kind: dict(vars(kind)) for kind in clean} == clean


def test_only_a_graph_of_ones_own_is_enforced() -> None:
    with pytest.raises(ConfigurationError, match=r"dl\.docmind has no argument 'enforced'"):
        dl.docmind(enforced=True)
