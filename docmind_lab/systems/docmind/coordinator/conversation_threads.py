"""Threads of conversations: one query at a time on each, and a fence that keeps earlier queries out."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig

from docmind_lab.alternatives.fence import Fence
from docmind_lab.core.deadlines import Deadline


@dataclass
class _Turns:
    """The turns of queries on one thread. waiting: number of queries that hold or want the turn."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0


class ConversationThreads:
    """Runs queries on one thread one after the other; different threads never wait for each other."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def turn(self, thread_id: str, deadline: Deadline) -> Iterator[Fence | None]:
        """Wait for the thread's turn; yield a fence that closes after the block, None past the deadline.

        What a query leaves running when its block ends finds the fence closed, so the next one starts from
        checkpoints that nothing else changes.
        """
        with self._guard:
            turns = self._turns.setdefault(thread_id, _Turns())
            turns.waiting += 1
        try:
            if not turns.lock.acquire(timeout=max(0.0, deadline.remaining())):
                yield None
                return
            fence = Fence()
            try:
                yield fence
            finally:
                fence.close()
                turns.lock.release()
        finally:
            with self._guard:
                turns.waiting -= 1
                if not turns.waiting:
                    del self._turns[thread_id]


def thread_key(thread_id: str, user_id: str) -> str:
    """Return the name under which a user's conversation is kept."""
    # The first slash ends the user: ("alice", "team/x") is not ("alice/team", "x").
    user = user_id.replace("%", "%25").replace("/", "%2F")
    return f"{user}/{thread_id}"


def thread_config(thread_id: str, user_id: str) -> RunnableConfig:
    """Return the configuration by which a graph finds a user's conversation."""
    return {"configurable": {"thread_id": thread_key(thread_id, user_id)}}
