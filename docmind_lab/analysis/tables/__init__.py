"""The three tables of a study: what a row is, which columns it has, and what each column means.

    calls    one attempt of one call, as the client or as the server saw it
    runs     one question answered, or not, under one alternative
    events   something that happened in a run at an instant

Instants are seconds since the run's start. docs/data-dictionary.md describes them all; `data_dictionary` writes it.

records.py      a row of each table as a record: its columns, and the meaning of each
dictionary.py   the events and their meanings, and all of it as Markdown
frames.py       the tables as DataFrames, in Parquet files, and the tables of a workload
"""

from docmind_lab.analysis.tables.dictionary import EVENTS
from docmind_lab.analysis.tables.frames import positive_part, to_frame, typed, typed_rows
from docmind_lab.analysis.tables.records import (
    ALTERNATIVE,
    RUN_ID,
    STUDY_ID,
    TABLES,
    CallRecord,
    Column,
    EventRecord,
    Kind,
    RunRecord,
    RunRows,
)

__all__ = [
    "ALTERNATIVE",
    "EVENTS",
    "RUN_ID",
    "STUDY_ID",
    "TABLES",
    "CallRecord",
    "Column",
    "EventRecord",
    "Kind",
    "RunRecord",
    "RunRows",
    "positive_part",
    "to_frame",
    "typed",
    "typed_rows",
]
