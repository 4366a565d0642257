"""Measured runs to tell of: a canary in the question and in the documents, in virtual time, over one system."""

from __future__ import annotations

import dataclasses

import pytest

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library
from docmind_lab.tables.manifest import manifest_of

QUESTION_CANARY, DOCUMENT_CANARY = "zephyrquark", "marmaladeobelisk"
TEXT = f"The zephyrquark pump is primed by the {DOCUMENT_CANARY} before every start of the zephyrquark line."
CHUNKS = (Chunk("page#1", "page", "Page", TEXT), Chunk("page#2", "page", "Page", "Of something else altogether."))


@pytest.fixture(scope="session")
def told() -> list[MeasuredRun]:
    """Under A, which answers, and which is cut and refused; and under B, which leaves a call behind; 8 s each."""
    system = SimulatedSystem(Settings(), corpus=Library(CHUNKS, "canary"))
    runs = []
    for name, timeout_s, faults in (("A", 30.0, ()), ("A", 4.0, ()), ("B", 8.0, ("hang:synthesis",))):
        options = ServiceOptions(LatencyProfile.named("typical"), tuple(Fault.parse(fault) for fault in faults))
        comparison = Comparison(
            decision_timeout_s=timeout_s, runs=1, alternatives=parse_alternatives(name), profile=options.profile
        )
        (order,) = comparison.orders()
        question = dataclasses.replace(order.question, text=f"How is the {QUESTION_CANARY} pump primed?")
        runs.append(system.measure(dataclasses.replace(order, question=question), options))
    system.close()
    assert DOCUMENT_CANARY in runs[0].outcome.answer, "the canary must reach the answer"
    return runs


@pytest.fixture
def manifest() -> dict[str, object]:
    """Of runs at an endpoint whose address holds a user."""
    settings = Settings(
        llm={"base_url": "http://user:secret@127.0.0.1:8000/v1"}, database={"qdrant_url": "http://localhost"}
    )
    made = manifest_of({"corpus": "canary"}, settings, study_id="told", complete=True)
    return made | {"created_utc": "2026-11-22T09:00:00+00:00"}
