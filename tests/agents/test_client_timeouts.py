"""The table of clients' own timeouts: its page is its data, and a row can be measured again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from surveys.client_timeouts import CLIENTS, COLUMNS, probe_clients, write_rows
from surveys.matrix import CLIENTS_PAGE, clients_table, with_parts
from surveys.published import read_published

ROOT = Path(__file__).parents[2]
MEASURED = pd.read_csv(ROOT / "data" / "client_timeouts.csv")


def test_the_page_has_the_table_of_the_data_with_every_client_and_its_whole_row() -> None:
    assert list(dict.fromkeys(MEASURED["client"])) == list(CLIENTS)
    assert tuple(MEASURED.columns) == COLUMNS
    assert not MEASURED["connect_s"].isna().any()
    page = (ROOT / CLIENTS_PAGE).read_text(encoding="utf-8")
    assert with_parts(page, {"clients": clients_table(read_published(ROOT))}) == page, "run python -m surveys page"


@pytest.mark.parametrize("name", ["httpx", "aiohttp", "mcp"])
def test_a_row_is_measured_again_as_it_stands_for_the_version_that_is_installed(name: str) -> None:
    (again,) = probe_clients([name], connects=False).round(1).itertuples(index=False)
    row, *_ = MEASURED[MEASURED["client"] == name].itertuples(index=False)
    assert row.version == again.version, f"measure it anew: python -m surveys timeouts --client {name}"
    for column in ("hang_ends", "hang_s", "tries", "hang_whole_s", "trickle_s"):
        assert getattr(again, column) == getattr(row, column), column


def test_a_row_takes_the_place_of_the_one_of_its_client_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_rows(path, MEASURED)
    write_rows(path, MEASURED[MEASURED["client"] == "httpx"].assign(tries=9))
    again = pd.read_csv(path)
    assert list(again["client"]) == list(MEASURED["client"])
    assert again["tries"].tolist() == MEASURED["tries"].mask(MEASURED["client"] == "httpx", 9).tolist()
