"""`docmind-lab init` and `lab`: a folder to start from; JupyterLab on notebooks, on loopback, or what is missing."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest
from commands_here import said

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli import servers
from docmind_lab.views.cli.servers import lab

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


class LabApp:
    """In place of JupyterLab's: keeps what it is started with."""

    words: tuple[str, ...] = ()

    @classmethod
    def launch_instance(cls, words: list[str]) -> None:
        cls.words = tuple(words)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> type[LabApp]:
    module = type(sys)("jupyterlab.labapp")
    module.LabApp = LabApp  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", module)
    monkeypatch.setattr(LabApp, "words", ())
    return LabApp


def test_it_opens_the_notebooks_of_the_checkout_on_loopback(
    started: type[LabApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab(port=8899, browser=False)
    assert started.words[:3] == (str(NOTEBOOKS), "--ServerApp.ip=127.0.0.1", "--ServerApp.allow_remote_access=False")
    assert {"--no-browser", "--ServerApp.port=8899"} <= set(started.words)
    assert not [word for word in started.words if "token" in word or "password" in word], "the token is Jupyter's"


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_it_starts_as_root_in_a_container(
    user: int, allowed: bool, started: type[LabApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trust 19: Jupyter refuses root unless it is told otherwise."""
    monkeypatch.setattr(os, "geteuid", lambda: user)
    lab()
    assert ("--ServerApp.allow_root=True" in started.words) == allowed


def test_notebooks_under_where_one_stands_come_first(
    started: type[LabApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "notebooks"
    mine.mkdir()
    (mine / "00_start_here.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    lab()
    assert started.words[0] == str(mine.resolve())
    lab(str(tmp_path))
    assert started.words[0] == str(tmp_path.resolve())
    assert [path.name for path in mine.iterdir()] == ["00_start_here.ipynb"]


def test_a_package_without_notebooks_says_where_they_are(
    started: type[LabApp], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(servers, "_CHECKOUT", tmp_path / "site" / "notebooks")
    with pytest.raises(ConfigurationError, match="docmind-lab init FOLDER copies the first one"):
        lab()
    with pytest.raises(ConfigurationError, match="is not a folder"):
        lab("nowhere")
    assert started.words == ()


def test_a_folder_to_start_from_has_the_files_of_the_checkout_which_the_wheel_has_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, printed, _ = said(capsys, "init", tmp_path / "mine")
    assert (code, f"Next: docmind-lab lab {tmp_path / 'mine'}" in printed) == (0, True)
    files = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    assert files == {name: (NOTEBOOKS / name).read_bytes() for name in servers.STARTER}
    project = tomllib.loads((NOTEBOOKS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    place = servers._INSTALLED.relative_to(NOTEBOOKS.parent)
    assert included == {f"notebooks/{name}": f"{place.as_posix()}/{name}" for name in servers.STARTER}


def test_a_file_that_is_there_is_not_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "inputs.jsonl").write_text("mine", encoding="utf-8")
    code, _, complaint = said(capsys, "init", tmp_path)
    assert (code, "inputs.jsonl is there and stays as it is; name another folder" in complaint) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["inputs.jsonl"]
    assert (tmp_path / "inputs.jsonl").read_text(encoding="utf-8") == "mine"


def test_without_jupyterlab_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    with pytest.raises(ConfigurationError, match=r"install docmind_lab\[notebooks\]"):
        lab()
