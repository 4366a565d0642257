"""A study of one's own says nothing of where files lie on the machine that made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from flat_compare import compare_by
from users_modules import users_module

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.systems.base.workload_kind import shown_name
from docmind_lab.systems.own import own_graph

MODULE = users_module(
    """
from langgraph.store.memory import InMemoryStore

def answer(question):
    return httpx.get("https://api.wikipedia.org/w/api.php").text
""",
    found='httpx.get("https://api.example.org/degrees").json()["degrees"]',
)
ROWS = '[[endpoint]]\nhost = "api.example.org"\nmethod = "GET"\npath = "/degrees"\n'
ROWS += "json = {{ degrees = 21 }}\nlatency = {latency_s}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    file = tmp_path / f"paths_{tmp_path.name.replace('-', '_')}.py"
    file.write_text(MODULE)
    (tmp_path / "endpoints.toml").write_text(ROWS.format(latency_s=1.0))
    return file


def everything_of(study: dl.Study) -> str:
    """What a study's folder, manifest, tables and page hold, as one text."""
    tables = "".join(table.to_csv() for table in (study.runs, study.calls, study.events))
    return json.dumps(study.manifest) + tables + str(study.report()) + repr(study)


def test_no_path_of_the_machine_is_in_a_study_of_ones_own(module: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "graph": f"{module}:graph",
        "inputs": [{"question": "a"}],
        "endpoints": tmp_path / "endpoints.toml",
        "store": f"{module}:InMemoryStore",
    }
    compared = compare_by(**given, runs=1, alternatives="A", decision_timeout_s=5, out=tmp_path / "one")
    swept = dl.sweep(
        {"repeats": 1, "factors": {"alternative": "A", "decision_timeout_s": 5}}
        | given
        | {"endpoints": str(given["endpoints"])},
        out=tmp_path / "two",
    )
    asked = dl.compare(dl.agent(f"{module}:answer", ["a"]), decision_timeout_s=5, alternatives="A", runs=1)
    assert set(compared.runs["workload"]) == set(swept.runs["workload"]) == {f"{module.name}:graph"}
    assert set(asked.runs["workload"]) == {f"agent:{module.name}:answer"}
    for study in (compared, swept, asked):
        assert str(tmp_path) not in everything_of(study)
        assert tmp_path.name not in everything_of(study).replace(module.name, "")
    kept = [file.read_bytes() for name in ("one", "two") for file in (tmp_path / name).rglob("*") if file.is_file()]
    assert kept
    assert not [content for content in kept if str(tmp_path).encode() in content]


def test_a_changed_file_of_endpoints_makes_another_study_with_its_new_rows(module: Path, tmp_path: Path) -> None:
    design: dict[str, Any] = {"graph": f"{module}:graph", "inputs": [{"question": "a"}], "repeats": 1}
    design |= {"endpoints": str(tmp_path / "endpoints.toml")}

    def returned_at_s(out: str) -> float:
        factors = {"alternative": "A", "decision_timeout_s": 5}
        study = dl.sweep({**design, "factors": factors}, out=tmp_path / out)
        return float(study.runs["returned_at_s"].iloc[0])

    first_s = returned_at_s("one")
    assert 1.0 <= first_s < 1.1
    assert returned_at_s("one") == first_s
    (tmp_path / "endpoints.toml").write_text(ROWS.format(latency_s=3.0))
    with pytest.raises(ConfigurationError, match="belongs to another study"):
        returned_at_s("one")
    assert 3.0 <= returned_at_s("two") < 3.1


def test_files_of_one_name_in_two_folders_are_two_studies(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "same_name_here.py").write_text(MODULE)
        own = own_graph(f"{folder}/same_name_here.py:graph", [{"question": "a"}])
        assert shown_name(own.workload).startswith("own:same_name_here.py:graph?text=")
        ids.add(Comparison(5.0, 1, workload=own.workload, documents=Documents(own.corpus)).study_id)
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("supervisor", "supervisor"),
        ("my_package.mine:KIND", "my_package.mine:KIND"),
        ("own:my_app:graph", "own:my_app:graph"),
        ("own:agent:/home/ada/my_app.py:answer", "own:agent:my_app.py:answer"),
        (r"own:C:\\Users\\ada\\my_app.py:graph", "own:my_app.py:graph"),
        (
            "own:../langgraph.json?services=own&store=a%2Fb.py%3Amake",
            "own:langgraph.json?services=own&store=b.py%3Amake",
        ),
    ],
)
def test_the_shown_name_of_a_workload_has_no_folders(name: str, shown: str) -> None:
    assert shown_name(name) == shown
