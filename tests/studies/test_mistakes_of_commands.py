"""Mistakes and damaged files in every command: one line with the remedy, and one exit code for each kind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from often import often
from sample_runs import sample_study
from small_studies import DESIGN, Scripted, computed_by

from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.views.cli import main

FAILED, USAGE = 1, 2
READERS = ("show", "report", "recommend", "diff", "diff, second")
TOML = (
    'name = "small"\ndocuments = "handbook"\nrepeats = 2\n[factors]\n'
    'alternative = ["A", "B"]\ndecision_timeout_s = [5, 30]\nlatency_profile = ["typical"]\n'
)


def flipped(content: bytes) -> bytes:
    """In the last bytes, where Parquet has its footer and JSON its end."""
    return content[:-6] + bytes(255 - byte for byte in content[-6:])


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "flipped": flipped,
}
NOT_OBJECTS: dict[str, Callable[[bytes], bytes]] = {
    "a list": lambda content: b"[]\n",
    "null": lambda content: b"null\n",
    "no fields": lambda content: b"{}\n",
}


def ended(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str]:
    """The exit code, and the lines of complaint without those of progress bars."""
    with pytest.raises(SystemExit) as end:
        main(words)
    lines = [line[line.find("docmind-lab: ") :] for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert isinstance(end.value.code, int)
    return end.value.code, "\n".join(line for line in lines if line.startswith("docmind-lab: "))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study, one that is under way, and a recording."""
    root = tmp_path_factory.mktemp("places")
    sample_study(runs=3).save(root / "study")
    (root / "small.toml").write_text(TOML, encoding="utf-8")
    (root / "wall.toml").write_text(TOML + 'clock = ["wall"]\n', encoding="utf-8")
    (root / "none.toml").write_text("repeats = 0", encoding="utf-8")
    design = StudyDesign.read(root / "small.toml")
    assert design.study_id == StudyDesign.of(DESIGN).study_id
    with pytest.MonkeyPatch.context() as patched, computed_by(Scripted()):
        patched.setattr(CellStore, "remove", lambda _: None)
        sweep(design, out=root / "under way")
    for file in (root / "under way").iterdir():
        if file.suffix == ".parquet" or file.name == "manifest.json":
            file.unlink()
    recorded = Comparison(runs=1, documents=Documents("handbook"))
    manifest = {"recording_format": 1, "study_id": "compare-1", "design": recorded.design()}
    (root / "recording").mkdir()
    (root / "recording" / "manifest.json").write_text(json.dumps(manifest))
    (root / "recording" / "runs.jsonl").write_text('{"run_id": 1}\n')
    (root / "empty").mkdir()
    (root / "a file").write_text("text")
    return root


def words_of(command: str, folder: Path, places: Path, out: Path) -> list[str]:
    study = str(places / "study")
    return {
        "show": ["show", "cooperative-1", "--study", str(folder)],
        "report": ["report", str(folder), "--out", str(out / "report.html")],
        "recommend": ["recommend", str(folder)],
        "diff": ["diff", str(folder), study],
        "diff, second": ["diff", study, str(folder)],
        "replay": ["compare", "--json", "--replay", str(folder), "--out", str(out / "replay")],
        "sweep": ["sweep", str(places / "small.toml"), "--json", "--out", str(folder)],
    }[command]


def damaged() -> list[Any]:
    """Kind of folder, file, harm, the commands that read the file; often those whose bytes are there and wrong."""
    trials: list[tuple[str, str, str, tuple[str, ...]]] = []
    for harm in HARMS:
        trials += [("study", f"{table}.parquet", harm, READERS) for table in ("runs", "calls")]
        # Who needs no events does not read them.
        trials.append(("study", "events.parquet", harm, ("show", "report")))
        trials.append(("under way", "cells/00-000.parquet", harm, (*READERS, "sweep")))
    for harm in HARMS | NOT_OBJECTS:
        trials.append(("study", "manifest.json", harm, READERS))
        trials.append(("under way", "design.json", harm, (*READERS, "sweep")))
        trials += [("recording", file, harm, ("replay",)) for file in ("manifest.json", "runs.jsonl")]
    return often(trials, *(trial for trial in trials if trial[2] == "flipped"))


@pytest.mark.parametrize(("kind", "file", "harm", "commands"), damaged())
def test_a_damaged_file_is_named_with_how_to_go_on_in_every_command(
    kind: str,
    file: str,
    harm: str,
    commands: tuple[str, ...],
    places: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "harmed"
    shutil.copytree(places / kind, folder)
    path = folder / file
    path.write_bytes((HARMS | NOT_OBJECTS)[harm](path.read_bytes()))
    for command in commands:
        code, line = ended(capsys, words_of(command, folder, places, tmp_path))
        assert (command, code) == (command, FAILED)
        assert path.name in line, (command, line)
        assert any(remedy in line for remedy in ("from a copy", "run the study again", "record")), (command, line)
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("place", ["nowhere", "empty", "a file"])
@pytest.mark.parametrize("command", [*READERS, "replay"])
def test_a_folder_that_holds_no_study_is_bad_usage_in_every_command(
    command: str, place: str, places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = ended(capsys, words_of(command, places / place, places, tmp_path))
    assert code == USAGE, line
    assert f"{places / place} holds no " in line


@pytest.mark.parametrize(
    ("words", "named"),
    [
        # A value that cannot be used.
        ("compare --runs -1", "runs must be a whole number between 1 and"),
        ("compare --runs many", "'--runs'"),
        ("compare --decision-timeout 0", "decision timeout must be a finite number of seconds above 0, not 0.0"),
        ("compare --decision-timeout nan", "not nan"),
        ("compare --seed x", "'--seed'"),
        ("compare --retries -1", "retries must be a whole number from 0 up"),
        ("compare --workers 0", "workers must be a whole number from 1 up"),
        ("compare --clock wall --workers 0", "workers must be a whole number from 1 up"),
        ("compare --clock moon", "unknown clock 'moon'"),
        ("compare --faults hang:*:2", "probability must be between 0 and 1"),
        ("compare --model-variation nan", "model_variation must be a share"),
        ("compare --alternatives A,A", "named twice"),
        ("compare --budget-tokens 0", "budget.tokens must be a whole number from 1 up"),
        ("compare --budget-cost 0.02", "budget.cost needs a price above 0"),
        ("compare --price 0.15", "price must be INPUT/OUTPUT"),
        ("sweep {places}/small.toml --workers 0 --out {tmp}/swept", "workers must be a whole number from 1 up"),
        ("sweep {places}/none.toml", "repeats: Input should be greater than or equal to 1, not 0"),
        ("recommend {places}/study --target 2", "target"),
        ("report {places}/study --out report.pdf", "report.pdf"),
        ("serve --port 99999", "port 99999"),
        # An option that would be ignored, or one that is missing.
        ("compare --deadline-key until", "deadline_key is an option of graph, and not of docmind"),
        ("compare --json --verbose", "leave one out"),
        ("compare --side-by-side 2", "No such option: --side-by-side: now --workers"),
        ("compare --profile fast", "now --latencies"),
        ("compare --workload research", "now --system"),
        ("compare --no-stops-on-disconnect", "now --server goes-on"),
        ("compare --record-text", "give --record FOLDER too"),
        ("sweep {places}/small.toml --estimate", "No such option: --estimate"),
        ("sweep {places}/wall.toml --workers 2 --out {tmp}/swept", "workers: only runs in virtual time"),
        ("profile {places}/study --plot fit.png", "No such option: --plot"),
        ("doctor --inputs {places}/small.toml", "--inputs is for a graph of your own"),
        ("crash-test --graph graphs_to_mutate:plain --context Ada", "--context is not JSON"),
        ("watch no-such-study", "Missing option '--spans'"),
        # A name that nothing has.
        ("bogus", "No such command 'bogus'"),
        ("compare --faults hnag", "unknown fault 'hnag'; did you mean 'hang'?"),
        ("compare --alternatives Z", "unknown alternative 'Z'"),
        ("compare --alternatives cooperativ", "did you mean 'cooperative'"),
        ("compare --alternatives A:fast", "the variants are cooperative:per_read"),
        ("compare --system nope", "nope"),
        ("compare --latencies typcal", "Did you mean 'typical'?"),
        ("compare --documents nope", "nope"),
        ("compare --graph nope:graph --inputs {places}/small.toml", "nope"),
        ("doctor --graph nope:graph --inputs {places}/small.toml", "nope"),
        ("doctor --graph graphs_to_mutate:absent --inputs {places}/small.toml", "has no attribute absent"),
        ("doctor --graph graphs_to_mutate:plain", "a text fits an input with messages"),
        ("serve --latencies nope", "nope"),
        ("show nope --study {places}/study", "nope"),
        # A file that is not there, or a folder that cannot be written.
        (f"compare --out {os.devnull}/x", "choose another folder"),
        ("compare --questions nope.jsonl --documents handbook", "nope.jsonl"),
        ("compare --latencies nope.json", "nope.json"),
        ("sweep nope.toml", "nope.toml cannot be read"),
        ("profile nope.csv", "nope.csv"),
        ("watch no-such-study --spans no-such-file", "no-such-file cannot be read"),
    ],
)
def test_what_was_typed_wrong_is_one_line_that_names_it_and_bad_usage_in_every_command(
    words: str, named: str, places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *others = words.split()
    # The places have spaces in their names, which the words above do not.
    filled = [word.format(places=places, tmp=tmp_path) for word in others]
    if command == "compare" and "--out" not in words:
        filled += ["--out", str(tmp_path / "out")]
    code, line = ended(capsys, [command, *filled])
    assert code == USAGE, line
    assert named in line
    assert len(line.splitlines()) == 1
