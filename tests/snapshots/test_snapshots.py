"""What `docmind-lab compare` prints, word for word, for systems that answer, fail, hang, refuse and interrupt.

Each file is read by a person when it changes (`golden` says how they are renewed): every sentence must be true of the
rows above it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from flat_compare import compare_by
from golden import assert_file
from rich.console import Console

from docmind_lab.views.cli import printing

HERE = Path(__file__).parent
INPUTS = [{"question": "What is it?"}]
OWN: Mapping[str, Any] = {"inputs": INPUTS, "decision_timeout_s": 2, "runs": 12, "workers": 1}

SCENARIOS: Mapping[str, Mapping[str, Any]] = {
    "ordinary": {"runs": 40},
    "hang": {"faults": "hang"},
    "trickle": {"faults": "trickle"},
    "rate_limit": {"faults": "rate_limit=30"},
    "hang_at_servers_that_go_on": {"faults": "hang", "server": "goes-on"},
    "http_500": {"faults": "http_500@1"},
    "brownout": {"faults": "brownout"},
    "one_run": {"runs": 1},
    "two_runs": {"runs": 2},
    "no_stops_on_disconnect": {"server": "goes-on"},
    "research": {"system": "research"},
    "staged": {"system": "staged"},
    "peers": {"system": "peers"},
    "hops": {"system": "hops", "adoption": 0.5, "server": "goes-on"},
    "mistakes": {"alternatives": "A,A:per_read,B:naive,F:per_step,fake_timeout", "faults": "trickle"},
}
GRAPHS = ("failing", "async_only", "interrupting", "failing_sometimes", "interrupting_thrice")


def printed(monkeypatch: pytest.MonkeyPatch, **options: Any) -> str:
    """The text of a comparison on a terminal of 80 columns."""
    study = compare_by(**({"runs": 14} | options))
    # What a run took of this machine's time is in no other machine's output.
    study = dataclasses.replace(study, manifest={**study.manifest, "machine_use": {}})
    terminal = Console(width=80, record=True, force_terminal=False, file=open("/dev/null", "w"))  # noqa: SIM115
    monkeypatch.setattr(printing, "console", lambda: terminal)
    printing.print_study(study, "In FOLDER: the files.")
    terminal.file.close()
    return "\n".join(line.rstrip() for line in terminal.export_text().splitlines()) + "\n"


@pytest.mark.full
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_sentence_is_the_one_that_was_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_file(HERE / f"{name}.txt", printed(monkeypatch, **SCENARIOS[name]))


@pytest.mark.parametrize("name", GRAPHS)
def test_every_sentence_on_a_graph_of_ones_own_is_the_one_that_was_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_file(HERE / f"graph_{name}.txt", printed(monkeypatch, graph=f"odd_graphs:{name}", **OWN))


@pytest.mark.parametrize("file", sorted(HERE.glob("*.txt")), ids=lambda file: file.stem)
def test_nothing_is_cut_at_80_columns_and_the_answer_comes_first(file: Path) -> None:
    """Trust 21."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert all(len(line) <= 80 or line.startswith("Settings: ") for line in lines)
    assert "…" not in "".join(lines)
    blank = lines.index("", 1)
    assert lines[blank + 1].startswith(("Choose ", "Nothing to choose", "Too few runs", "Only "))
