"""Tokenizers whose files are not on this machine: what a run on simulated services reads in their place."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from own_runs import graph_of, simulated

from docmind_lab.network.replacements import Replacements
from docmind_lab.workloads.own.tokenizer import provide_vocabularies

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tiktoken") is None, reason="needs tiktoken")


@pytest.fixture(autouse=True)
def nothing_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken import registry

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(registry, "ENCODINGS", {})


def outcomes(node: Any) -> set[str]:
    return {run.run.outcome for run in simulated(graph_of(count=node), alternatives="unguarded,A")}


def test_a_run_needs_no_download_of_a_tokenizer_for_embeddings() -> None:
    embeddings = OpenAIEmbeddings()
    assert outcomes(lambda state: {"answer": len(embeddings.embed_query(state["question"]))}) == {"answered"}


def test_a_run_needs_no_download_of_a_tokenizer_to_count_tokens() -> None:
    model = ChatOpenAI(model="gpt-4o")
    assert outcomes(lambda state: {"answer": model.get_num_tokens(state["question"])}) == {"answered"}


def test_a_made_up_tokenizer_gives_the_text_back_and_is_forgotten_with_the_hooks(tmp_path: Path) -> None:
    import tiktoken
    from tiktoken import registry

    hooks = Replacements()
    provide_vocabularies(hooks, lambda: True)
    text = "A deadline — the moment by which an answer has to be there."
    encoding = tiktoken.get_encoding("cl100k_base")
    assert encoding.decode(encoding.encode(text)) == text
    assert len(encoding.encode(text)) < len(text) / 2
    hooks.remove()
    assert registry.ENCODINGS == {}
    assert list(tmp_path.iterdir()) == []
