"""The versions that an installation takes."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_requirement_has_a_version_that_it_does_not_go_beyond() -> None:
    groups = PROJECT["project"]["optional-dependencies"].values()
    listed = [
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *(requirement for group in groups for requirement in group),
    ]
    operators = {text: {each.operator for each in Requirement(text).specifier} for text in listed}
    assert len(listed) > 40
    assert [text for text, used in operators.items() if not used & {"<", "<=", "=="}] == []
