"""The graph store: what confirms a write, where it came from, and that nothing is there twice."""

from __future__ import annotations

import gc
import sqlite3

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.staged.graph_store import GraphStore, Written, is_confirmed

AGENT = Written("agent", "notes", "3")


def test_every_write_carries_one_of_four_origins():
    store = GraphStore()
    for number, origin in enumerate(("agent", "suggested", "generated", "forced")):
        assert is_confirmed(store.add_entity(f"City {number}", "city", Written(origin, "notes", "3")))
    assert [row["origin"] for row in store.rows("entities")] == ["agent", "suggested", "generated", "forced"]
    with pytest.raises(ConfigurationError, match="origin must be one of agent, suggested, generated, forced"):
        Written("model", "notes", "3")  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        store._connection.execute("INSERT INTO entities VALUES ('x', 'x', 'x', 'model', 's', 'c')")


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        "ok",
        '{"status": "ok", "id": "entity:oslo"}',
        {},
        {"status": "ok"},
        {"id": "entity:oslo"},
        {"status": "error", "id": "entity:oslo"},
        {"status": "ok", "id": "entity:oslo", "error": "refused"},
        {"status": "ok", "id": "entity:oslo", "error_type": "unknown_endpoint"},
        ["ok"],
        RuntimeError("ok"),
    ],
)
def test_nothing_but_a_structured_result_without_an_error_confirms_a_write(result):
    assert not is_confirmed(result)
    assert is_confirmed({"status": "ok", "id": "entity:oslo"})


def test_writing_the_same_again_changes_nothing_and_says_so():
    store = GraphStore()
    forced = Written("forced", "other", "1")
    for written, created in ((AGENT, True), (forced, False)):
        assert store.add_entity("Oslo", "city", written)["created"] is created
        assert store.add_entity("Bergen", "city", written)["created"] is created
        assert store.add_observation(" OSLO ", "It  rains.", written)["created"] is created
        assert store.relate("Oslo", "near", "bergen", written)["created"] is created
        assert store.add_evidence("Evidence notes-3", written)["created"] is created
        assert store.link_evidence("Evidence notes-3", "Oslo", written)["created"] is created
    assert store.count() == 6
    assert {row["origin"] for row in store.rows("entities")} == {"agent"}


def test_a_relation_needs_both_of_its_ends_and_two_of_them():
    store = GraphStore()
    store.add_entity("Oslo", "city", AGENT)
    assert store.relate("Oslo", "near", "Bergen", AGENT) == {"status": "error", "error_type": "unknown_endpoint"}
    assert store.relate("Oslo", "near", "OSLO", AGENT) == {"status": "error", "error_type": "same_ends"}
    assert store.link_evidence("Oslo", "oslo", AGENT) == {"status": "error", "error_type": "same_ends"}
    assert store.rows("relations") == store.rows("evidence_links") == []


def test_an_observation_brings_its_entity_and_a_later_type_replaces_none_but_the_unknown():
    store = GraphStore()
    store.add_observation("Oslo", "It rains.", AGENT)
    assert [row["type"] for row in store.rows("entities")] == ["Unknown"]
    store.add_entity("Oslo", "city", AGENT)
    store.add_entity("Oslo", "village", AGENT)
    assert [row["type"] for row in store.rows("entities")] == ["city"]
    assert is_confirmed(store.set_type("Oslo", "capital", AGENT))
    assert [row["type"] for row in store.rows("entities")] == ["capital"]
    assert not is_confirmed(store.set_type("Bergen", "city", AGENT))


def test_a_store_in_a_file_is_there_again_and_an_unknown_table_is_refused(tmp_path):
    path = str(tmp_path / "graph.db")
    first = GraphStore(path)
    first.add_entity("Oslo", "city", AGENT)
    first.close()
    again = GraphStore(path)
    assert [row["name"] for row in again.rows("entities")] == ["Oslo"]
    with pytest.raises(ConfigurationError, match="table must be one of"):
        again.rows("sqlite_master")
    again.close()


def test_a_store_that_nobody_refers_to_any_more_is_closed() -> None:
    store = GraphStore()
    connection = store._connection
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
