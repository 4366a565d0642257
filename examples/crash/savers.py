"""Checkpointers for the graphs in this folder. Each function opens one in the folder that it is given."""

import os
import sqlite3

import aiosqlite
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


def sqlite(folder):
    """Return LangGraph's checkpointer on a file of SQLite, for graphs that are invoked."""
    return SqliteSaver(sqlite3.connect(os.path.join(folder, "threads.sqlite"), check_same_thread=False))


async def async_sqlite(folder):
    """Return LangGraph's checkpointer on a file of SQLite, for graphs that are awaited."""
    return AsyncSqliteSaver(await aiosqlite.connect(os.path.join(folder, "threads.sqlite")))


def postgres(folder):
    """Return LangGraph's checkpointer on the server that PGHOST and its like name, for graphs that are invoked.

    It is on the server and not in the folder, so the crash test deletes the thread of a run when the run is over.
    """
    # Function-level: they need libpq, which SQLite does without.
    import psycopg  # noqa: PLC0415
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

    connection = psycopg.connect(autocommit=True, prepare_threshold=0, row_factory=psycopg.rows.dict_row)
    saver = PostgresSaver(connection)
    saver.setup()
    return saver
