"""A saved study tells what its runs told when they were made, and its failures to who asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.interfaces.cli import app
from docmind_lab.interfaces.telemetry import Telemetry

pytest.importorskip("opentelemetry.exporter.prometheus")
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scraped_metrics import Scraped


def told_of(exporter: InMemorySpanExporter) -> list[tuple[Any, ...]]:
    return [
        (span.name, span.kind, span.start_time, span.end_time, dict(span.attributes), span.status.status_code)
        for span in exporter.get_finished_spans()
    ]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[Any, ...]], str]:
    """A study's folder, and what was told of it when it was made."""
    folder, exporter, metrics = tmp_path_factory.mktemp("study") / "kept", InMemorySpanExporter(), Scraped()
    telemetry = Telemetry(spans=exporter, metrics=metrics)
    # Cut while a call is under way, which is abandoned.
    dl.compare(6.0, 1, alternatives="B", documents="handbook", profile="typical", telemetry=telemetry).save(folder)
    return folder, told_of(exporter), metrics.text()


def test_its_spans_and_metrics_are_those_that_were_told_when_it_was_made(kept) -> None:
    folder, at_once, counted_at_once = kept
    exporter, metrics = InMemorySpanExporter(), Scraped()
    assert Telemetry(spans=exporter, metrics=metrics).send(dl.Study.load(folder)) == 1
    assert told_of(exporter) == at_once
    assert metrics.text() == counted_at_once


def test_a_run_on_the_wall_clock_whose_instant_nobody_knows_begins_when_its_manifest_says(kept) -> None:
    study = dl.Study.load(kept[0])
    study.runs["clock"] = "wall"
    exporter = InMemorySpanExporter()
    Telemetry(spans=exporter).send(study)
    assert [span[2] for span in told_of(exporter)] == [span[2] for span in kept[1]]


def test_who_sends_a_study_hears_that_it_was_not_sent(kept) -> None:
    exporter = InMemorySpanExporter()
    exporter.shutdown()
    with pytest.raises(ServiceError, match="the exporter took 0 of "):
        Telemetry(spans=exporter).send(dl.Study.load(kept[0]))
    with pytest.raises(ConfigurationError, match="nothing to send a study to"):
        Telemetry().send(dl.Study.load(kept[0]))


def test_export_writes_the_metrics_of_a_folder(kept, tmp_path: Path) -> None:
    path = tmp_path / "runs.prom"
    done = CliRunner().invoke(app, ["export", str(kept[0]), "--metrics-file", str(path)])
    assert (done.exit_code, done.stdout) == (0, "told of 1 run\n")
    assert 'docmind_runs_total{alternative="hard_timeout"' in path.read_text()


def test_export_to_nowhere_is_refused(kept) -> None:
    done = CliRunner().invoke(app, ["export", str(kept[0])])
    assert isinstance(done.exception, ConfigurationError)
    assert "give --otlp or --metrics-file" in str(done.exception)


def test_a_metrics_file_that_cannot_be_written_is_refused_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"^telemetry\.metrics_file \(--metrics-file\): .* cannot be written"):
        Telemetry(metrics_file=tmp_path / "file" / "runs.prom").check(Settings())
    with pytest.raises(ConfigurationError, match="is a folder; name a file in it"):
        Telemetry(metrics_file=tmp_path).check(Settings())
