"""Exports a study for other tools: three CSV files or one DuckDB file, with the meaning of each column.

export_csv(study, "tables/")         runs.csv, calls.csv, events.csv, manifest.json, data-dictionary.md
export_duckdb(study, "study.duckdb") tables runs, calls, events and manifest, columns with comments

CSV: UTF-8, a comma, one line of headings, no index. A number that is not known, or did not happen, is `NaN`; a text
that is empty is empty. Numbers have all their digits. In DuckDB what is not known is NULL: its means are of what is.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa

from docmind_lab.analysis.study import MANIFEST, Study, require_writable
from docmind_lab.analysis.tables.dictionary import common_dictionary
from docmind_lab.analysis.tables.records import TABLES
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_json, as_text, write_whole

if TYPE_CHECKING:
    import duckdb

DUCKDB_SUFFIX: Final = ".duckdb"
_DICTIONARY: Final = "data-dictionary.md"
_MISSING: Final = "NaN"
_ABOUT: Final = (
    "\n## These files\n\nUTF-8, comma-separated, one line of headings. `NaN` is a number that is not known or did not "
    "happen; an empty field is an empty text. Read text columns as text: a `step` is no number.\n"
)


def export_csv(study: Study, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write the three tables as CSV, with the manifest and the meaning of the columns; return the files.

    Raises: ConfigurationError when the folder cannot be written, or holds one of the tables already.
    """
    target = require_writable(folder, "--to")
    taken = [name for name in TABLES if (target / f"{name}.csv").exists()]
    if taken:
        raise ConfigurationError(f"--to {target} holds {taken[0]}.csv already; choose another folder or remove it")
    written = []
    for name in TABLES:
        frame: pd.DataFrame = getattr(study, name)
        write = functools.partial(frame.to_csv, index=False, na_rep=_MISSING, encoding="utf-8")
        written.append(write_whole(target / f"{name}.csv", write))
    written.append(write_whole(target / MANIFEST, as_json(study.manifest)))
    return (*written, write_whole(target / _DICTIONARY, as_text(common_dictionary() + _ABOUT)))


def export_duckdb(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write the tables, their comments and the manifest (field, value as JSON) to one DuckDB file.

    Raises: ConfigurationError when the file is there already or cannot be written, or duckdb is not installed.
    """
    connect = _duckdb()
    target = Path(path)
    if target.exists():
        raise ConfigurationError(f"--to {target} is there already; choose another file or remove it")
    require_writable(target.parent, "--to")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as beside:
        temporary = Path(beside) / target.name
        with connect(str(temporary)) as connection:
            for name in TABLES:
                _create(connection, name, _arrow(name, getattr(study, name)))
            _create_manifest(connection, study.manifest)
        os.replace(temporary, target)
    return target


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(
            "duckdb is not installed: pip install 'docmind_lab[duckdb]', or export as CSV"
        ) from error
    return duckdb.connect


def _arrow(name: str, frame: pd.DataFrame) -> pa.Table:
    _, columns = TABLES[name]
    plain = frame.astype({column.name: "str" for column in columns if column.kind in ("text", "level")})
    return pa.Table.from_pandas(plain, preserve_index=False)


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    record_type, columns = TABLES[name]
    connection.register("incoming", table)
    connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM incoming')
    connection.unregister("incoming")
    connection.execute(f'COMMENT ON TABLE "{name}" IS {_quote((record_type.__doc__ or "").splitlines()[0])}')
    for column in columns:
        connection.execute(f'COMMENT ON COLUMN "{name}"."{column.name}" IS {_quote(column.meaning)}')


def _create_manifest(connection: duckdb.DuckDBPyConnection, manifest: Mapping[str, Any]) -> None:
    flat = flatten(manifest)
    table = pa.table({"field": list(flat), "value": [json.dumps(value) for value in flat.values()]}, schema=_FIELDS)
    connection.register("incoming", table)
    connection.execute('CREATE TABLE "manifest" AS SELECT * FROM incoming')
    connection.unregister("incoming")
    text = "What determined the runs, and on what they ran: a row for each field, its value as JSON."
    connection.execute(f'COMMENT ON TABLE "manifest" IS {_quote(text)}')


_FIELDS: Final = pa.schema([("field", pa.string()), ("value", pa.string())])


def _quote(text: str) -> str:
    """Return the text as a literal of SQL: COMMENT ON takes no parameters."""
    return "'" + text.replace("'", "''") + "'"


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every leaf of nested mappings by its path, such as "agents.decision_timeout"; lists are leaves."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            result |= flatten(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result
