from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from often import often
from sample_runs import sample_study

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.findings.study import Study, prepare_folder
from docmind_lab.tables.manifest import without_checksums
from docmind_lab.tables.records import TABLES


def test_a_study_comes_back_from_its_folder_as_it_was(tmp_path: Path) -> None:
    study = sample_study()
    study.save(tmp_path / "out")
    loaded = Study.load(tmp_path / "out")
    assert loaded.manifest == study.manifest
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(loaded, table), getattr(study, table))


def test_the_folder_holds_the_tables_and_the_manifest_and_no_leftovers(tmp_path: Path) -> None:
    sample_study().save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["calls.parquet", "events.parquet", "manifest.json", "runs.parquet"]


def test_a_folder_that_holds_a_study_is_refused_and_kept(tmp_path: Path) -> None:
    sample_study().save(tmp_path)
    before = (tmp_path / "runs.parquet").read_bytes()
    with pytest.raises(ConfigurationError, match="holds a study already; choose another"):
        sample_study(runs=1).save(tmp_path)
    assert (tmp_path / "runs.parquet").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file/out cannot be written"):
        prepare_folder(tmp_path / "file" / "out")


def test_a_newer_schema_is_refused_with_the_remedy(tmp_path: Path) -> None:
    sample_study().save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["schema_version"] = SCHEMA_VERSION + 1
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RecordError, match="upgrade docmind_lab"):
        Study.load(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "runs.parquet", "calls.parquet", "events.parquet"])
@pytest.mark.parametrize("places", often([15, 150], 15))
def test_a_byte_that_was_changed_is_an_error_that_names_the_file(name: str, places: int, tmp_path: Path) -> None:
    sample_study().save(tmp_path)
    file = tmp_path / name
    content = file.read_bytes()
    # Of a text every byte; of a table enough of them, in its head, its pages, its statistics and its end.
    for place in range(0, len(content), 1 if file.suffix == ".json" else max(1, len(content) // places)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(RecordError, match=re.escape(name)):
            assert Study.load(tmp_path).events is not None
    file.write_bytes(content)
    study = Study.load(tmp_path)
    assert study.manifest == sample_study().manifest
    assert len(study.events)


def test_a_study_saved_again_has_checksums_of_its_own(tmp_path: Path) -> None:
    sample_study().save(tmp_path / "first")
    Study.load(tmp_path / "first").save(tmp_path / "second")
    assert Study.load(tmp_path / "second").manifest == sample_study().manifest


def test_a_study_without_checksums_is_read(tmp_path: Path) -> None:
    sample_study().save(tmp_path)
    plain = without_checksums(json.loads((tmp_path / "manifest.json").read_text()))
    (tmp_path / "manifest.json").write_text(json.dumps(plain))
    sample_study(runs=2).runs.to_parquet(tmp_path / "runs.parquet")
    assert len(Study.load(tmp_path).runs) == len(sample_study(runs=2).runs)


def test_a_folder_without_a_study_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no study"):
        Study.load(tmp_path)
