"""The three tables of a study: what a row is, which columns it has, and what each column means.

    calls    one attempt of one call, as the client or as the server saw it
    runs     one question answered, or not, under one alternative
    events   something that happened in a run at an instant

Instants are seconds since the run's start. docs/data-dictionary.md describes all columns.

records.py      a row of each table as a record: its columns, and the meaning of each; the events
cell_store.py   cells of a study as files; manifest.py is what a study says of itself
conditions.py   the conditions of runs, and the arms that are compared under them
traces/         runs as graphs of calls
frames.py       the tables as DataFrames, in Parquet files, and the tables of a workload
"""
