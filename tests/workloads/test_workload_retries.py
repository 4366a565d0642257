"""The column `retries` says who tries again: what it says is what happens when every call fails."""

from __future__ import annotations

import json

import pytest

import docmind_lab as dl
from docmind_lab.alternatives import Cooperative, HardTimeout
from docmind_lab.experiments.nouns import system_of_kind
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.systems.retries import retries_of_alternative


@pytest.mark.parametrize(
    ("workload", "alone", "propagated"),
    [
        ("supervisor", "sdk:2", "budgeted:1"),
        ("research", "workload:2", "budgeted:1+workload:2"),
        ("staged", "budgeted:1", "budgeted:1"),
    ],
)
def test_each_workload_says_who_retries_under_an_alternative(workload: str, alone: str, propagated: str) -> None:
    retries = workload_kind(workload).retries
    assert (retries(HardTimeout(), None), retries(Cooperative(), None)) == (alone, propagated)


def test_retries_that_were_asked_for_are_those_of_whoever_retries() -> None:
    assert retries_of_alternative(HardTimeout(), 0) == "sdk:0"
    assert workload_kind("research").retries(HardTimeout(), 5) == "workload:5"
    # Under a deadline of its own the client of the ladder makes none, whatever was asked of it.
    assert workload_kind("staged").retries(HardTimeout(), 5) == "budgeted:1"


@pytest.mark.parametrize(("workload", "said"), [("research", "workload:2"), ("staged", "budgeted:1")])
def test_what_the_column_says_is_what_happens_when_calls_fail(workload: str, said: str) -> None:
    study = dl.compare(
        system_of_kind(workload),
        60,
        alternatives="unguarded",
        world=dl.World(latencies="fast", faults="http_500:*"),
        runs=1,
    )
    assert set(study.runs["retries"]) == {said}
    retries = study.events[study.events["event"].astype("str") == "retry"]
    who, number = said.split(":")
    # The client's own would be further attempts of a call without an event of ours.
    assert max(json.loads(detail)["attempt"] for detail in retries["detail"]) == int(number)
    attempts = study.calls[(study.calls["seen_from"] == "client") & (study.calls["kind"] == "llm")]["attempt"]
    assert attempts.max() == (1 if who == "workload" else 1 + int(number))
