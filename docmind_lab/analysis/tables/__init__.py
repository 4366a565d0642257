"""The three tidy tables: what a row is, which columns it has, and what each column means.

    calls    one attempt of one call, as the client or as the server saw it
    runs     one question answered, or not, under one alternative
    events   something that happened in a run at an instant

Instants are seconds since the run's start. docs/data-dictionary.md describes them all; `data_dictionary` writes it.

levels.py    values that levels may take, and the version of the schema
rows.py      a row of each table, as a record
columns.py   the columns of each table, and what each means
events.py    the events, and what each means
frames.py    the tables as DataFrames
"""

from docmind_lab.analysis.tables.columns import ALTERNATIVE, RUN_ID, STUDY_ID, TABLES, Column, Kind
from docmind_lab.analysis.tables.dictionary import EVENTS
from docmind_lab.analysis.tables.frames import positive_part, to_frame, typed, typed_rows
from docmind_lab.analysis.tables.rows import CallRecord, EventRecord, RunRecord, RunRows
from docmind_lab.core.levels import (
    CALL_OUTCOMES,
    NAN,
    RUN_OUTCOMES,
    SCHEMA_VERSION,
    SPENDING_REASONS,
    STOP_REASONS,
    TIMEOUT_REASONS,
    CallOutcome,
    RunOutcome,
)

__all__ = [
    "ALTERNATIVE",
    "CALL_OUTCOMES",
    "EVENTS",
    "NAN",
    "RUN_ID",
    "RUN_OUTCOMES",
    "SCHEMA_VERSION",
    "SPENDING_REASONS",
    "STOP_REASONS",
    "STUDY_ID",
    "TABLES",
    "TIMEOUT_REASONS",
    "CallOutcome",
    "CallRecord",
    "Column",
    "EventRecord",
    "Kind",
    "RunOutcome",
    "RunRecord",
    "RunRows",
    "positive_part",
    "to_frame",
    "typed",
    "typed_rows",
]
