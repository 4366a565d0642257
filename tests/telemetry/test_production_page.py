"""What docs/telemetry.md says of calls in production: its snippets run, and its output is the program's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.common")
from commands_here import said
from held_graphs import two_nodes
from opentelemetry.sdk.metrics import MeterProvider
from production_calls import Production, result_of, shares, study_with

import docmind_lab as dl
from docmind_lab.core import telemetry_names

ROOT = Path(__file__).parents[2]
WHOLE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
PAGE = WHOLE[WHOLE.index("## Calls in production") :]
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the page's study and spans."""
    production = Production()
    for is_answered in shares(240, 300):
        production.telemetry(result_of(is_answered, 0.012))
    for is_answered in shares(9, 10):
        production.telemetry(result_of(is_answered, 0.012, alternative="hard_timeout"))
    production.write(tmp_path / "traces.jsonl")
    study_with(shares(360, 400), 0.004).save(tmp_path / "my-study")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    dl.uninstall()


def test_the_snippets_run(here: Path) -> None:
    names: dict[str, Any] = {"graph": two_nodes(lambda state: {"log": ["plan"]}, lambda state: {"log": ["asked"]})}
    for snippet in SNIPPETS:
        exec(compile(snippet, "docs/telemetry.md", "exec"), names)
    assert names["agent"].on_result.workflow == "support"
    assert names["agent"].invoke({"path": "", "log": []}).outcome == "answered"
    assert names["found"].regressed


def test_the_output_is_the_programs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (command, shown) = re.findall(r"```\n\$ docmind-lab (watch .*?)\n(.*?)```", PAGE, re.DOTALL)[0]
    code, out, _ = said(capsys, *command.split())
    # Sentences are wrapped on the page.
    assert (code, out.split()) == (0, shown.split())


def test_the_names_are_those_of_the_code() -> None:
    constants = {value for value in vars(telemetry_names).values() if isinstance(value, str)}
    known = constants | set(telemetry_names.RUN_ATTRIBUTES.values())
    named = set(re.findall(r"`(docmind\.[a-z_.]+)`", PAGE))
    assert len(named) >= 8
    assert named <= known
    instruments = vars(telemetry_names.RunInstruments(MeterProvider(shutdown_on_exit=False))).values()
    assert set(re.findall(r"^\| `(docmind\.[a-z_.]+)`", PAGE, re.MULTILINE)) == {each.name for each in instruments}


def test_the_lines_are_wrapped_and_the_options_exist() -> None:
    assert [line for line in PAGE.splitlines() if len(line) > 120 and not line.startswith("|")] == []
    assert "`--fail-if-worse`" in PAGE
