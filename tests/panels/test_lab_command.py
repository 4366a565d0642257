"""`docmind-lab lab`: JupyterLab on the notebooks where they are, on loopback, or one line that says what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

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
    monkeypatch.setattr(
        servers, "__file__", str(tmp_path / "site" / "docmind_lab" / "interfaces" / "cli" / "servers.py")
    )
    with pytest.raises(ConfigurationError, match="source archive, and run docmind-lab lab FOLDER"):
        lab()
    with pytest.raises(ConfigurationError, match="is not a folder"):
        lab("nowhere")
    assert started.words == ()


def test_without_jupyterlab_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    with pytest.raises(ConfigurationError, match=r"install docmind_lab\[notebooks\]"):
        lab()
