"""A canary in the question and in a document appears in no log, event, record or manifest (spec 17)."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from laboratories import Laboratory, laboratory

from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, measure
from docmind_lab.findings.study import Study
from docmind_lab.services.server import LogClient
from docmind_lab.systems.base.corpus import Chunk
from docmind_lab.systems.base.documents import Library

pytestmark = pytest.mark.wall

QUESTION_CANARY, DOCUMENT_CANARY = "zephyrquark", "marmaladeobelisk"
CHUNKS = tuple(
    Chunk(f"page#{number}", "page", "Page", text)
    for number, text in enumerate(
        (f"The zephyrquark pump is primed by the {DOCUMENT_CANARY} before every start of the zephyrquark line.",
         "A second page tells nothing about it, but of something else altogether, as second pages do."), 1)
)  # fmt: skip


@pytest.fixture(scope="module")
def canary_lab() -> Iterator[Laboratory]:
    with laboratory("typical/40", own_process=False, corpus=Library(CHUNKS, "canary")) as lab:
        yield lab


def test_a_canary_in_the_question_and_in_a_document_is_answered_and_recorded_nowhere(
    canary_lab: Laboratory, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured: list[MeasuredRun] = []
    rows = []
    with caplog.at_level(logging.INFO):
        for kind in ALTERNATIVES.values():
            for timeout_s in (0.3, 20.0):
                (order,) = canary_lab.orders(kind(), 1, timeout_s)
                question = dataclasses.replace(order.question, text=f"How is the {QUESTION_CANARY} pump primed?")
                kept = LogKeeper(canary_lab.log)
                measured.append(measure(dataclasses.replace(order, question=question), canary_lab.workload, kept))
                rows += kept.seen
    answers = [run.outcome.answer for run in measured if run.outcome.outcome == "answered"]
    assert answers
    assert all(DOCUMENT_CANARY in answer for answer in answers), "the canary must reach the answer"
    study = Study.of(measured, {"schema_version": 1, "study_id": "canary"})
    study.save(tmp_path / "study")
    said = capfd.readouterr()
    everything = [
        study.runs.to_csv(),
        study.calls.to_csv(),
        study.events.to_csv(),
        study.report(),
        repr(rows),
        caplog.text,
        said.out,
        said.err,
        *(path.read_bytes().decode("latin-1") for path in (tmp_path / "study").iterdir()),
    ]
    for text in everything:
        assert QUESTION_CANARY not in text
        assert DOCUMENT_CANARY not in text


class LogKeeper:
    """The service's log, keeping what it gave."""

    def __init__(self, log: LogClient) -> None:
        self.log, self.seen = log, []

    def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[object]:
        rows = self.log.rows(run_id, wait_quiet_s)
        self.seen += rows
        return rows

    def forget(self, run_id: str) -> None:
        self.log.forget(run_id)
