"""What retrieval searches in the tests of the graphs: an index in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from graph_fakes import resources

from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources


@pytest.fixture(scope="module")
def found_in() -> Iterator[RetrievalResources]:
    made = resources()
    yield made
    made.client.close()
