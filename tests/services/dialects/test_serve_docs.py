"""Each snippet of docs/serve.md runs against the served model and prints something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docmind_lab.services.server import ServiceProcess

PAGE = (Path(__file__).parents[3] / "docs" / "serve.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_there_is_a_snippet_for_each_client() -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", "\n".join(SNIPPETS), re.MULTILINE)
    assert {"openai", "anthropic", "google", "ollama"} <= set(imported)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_is_answered(snippet: str, services: ServiceProcess, capsys: pytest.CaptureFixture[str]) -> None:
    root = services.addresses.openai_base_url.removesuffix("/v1")
    exec(compile(snippet.replace("http://127.0.0.1:8000", root), "docs/serve.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == snippet.count("print(")
    assert all(printed)
