"""A program that enforces a graph and is forked afterwards, by itself or by multiprocessing.

python forking_program.py fork|multiprocessing|locked CALLS        # asks UPSTREAM, prints what went wrong, else "ok"

Of fifty questions UPSTREAM answers one after the deadline of its call: `is_slow`.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import httpx
import httpx2
import requests
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph

import docmind_lab as dl
from docmind_lab.alternatives import event_loop
from docmind_lab.alternatives.enforcement import hooks
from docmind_lab.core.holds import current_hold

LETTERS = "ABCDEF"
SLOW_S, DEADLINE_OF_SLOW_S = 0.8, 0.2
# As late as a caller may be: a pause of the machine, and no wait for the slow answer.
LATE_S = 0.25
URL = os.environ["UPSTREAM"]


class Asked(TypedDict, total=False):
    number: int
    text: str


def without_proxies(session: requests.Session) -> requests.Session:
    session.trust_env = False
    return session


# All of them keep a connection open, which a forked process has too.
BLOCKING: dict[str, Any] = {
    "httpx": httpx.Client(trust_env=False),
    "httpx2": httpx2.Client(trust_env=False),
    "requests": without_proxies(requests.Session()),
    "transport": httpx.Client(transport=dl.transport()),
}
ASYNC: dict[str, Any] = {"httpx": httpx.AsyncClient(trust_env=False), "httpx2": httpx2.AsyncClient(trust_env=False)}


def graph_with(name: str) -> Any:
    blocking, client = BLOCKING[name], ASYNC.get(name)

    def ask(state: Asked) -> Asked:
        return {"text": blocking.get(f"{URL}/{state['number']}").text}

    async def ask_async(state: Asked) -> Asked:
        return {"text": (await client.get(f"{URL}/{state['number']}")).text}

    builder = StateGraph(Asked)
    builder.add_node("ask", RunnableLambda(ask, afunc=ask_async if client is not None else None))
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile()


AGENTS = {(name, letter): dl.enforce(graph_with(name), 20, letter) for name in BLOCKING for letter in LETTERS}


def is_slow(number: int) -> bool:
    return number % 50 == 4


def wrong_with(name: str, letter: str, number: int) -> str:
    """Ask, and return what went wrong; empty if the call got the answer to its own question, or was cut, in time."""
    # D cuts no call under way, so it is given the time.
    is_cut = is_slow(number) and letter != "D"
    result = AGENTS[name, letter].invoke({"number": number}, deadline=DEADLINE_OF_SLOW_S if is_cut else 20)
    expected = (result.outcome == "timed_out") if is_cut else (result.state.get("text") == f"/{number}")
    if expected and result.overrun_s <= LATE_S:
        return ""
    return f"{letter} with {name}: asked {number}, got {result.state}, {result.outcome}, {result.overrun_s:.3f} s late"


def ask_all(who: int, calls: int) -> str:
    """Return what went wrong first; empty if nothing did."""
    # A process that hangs outlives its parent otherwise.
    signal.alarm(100 + 4 * calls)
    asked = ((*agent, number) for agent in AGENTS for number in range(who * calls, (who + 1) * calls))
    return next(filter(None, (wrong_with(*each) for each in asked)), "")


@contextlib.contextmanager
def locks_of_another_thread() -> Iterator[None]:
    """Have a thread hold every lock that a call takes, and a block's deadline be in force here."""
    held, over = threading.Event(), threading.Event()
    with dl.deadline(60):
        hold = current_hold()
        assert hold is not None

        def keep() -> None:
            with event_loop._lock, hooks._lock, hold._lock:
                held.set()
                over.wait()

        thread = threading.Thread(target=keep)
        thread.start()
        held.wait()
        try:
            yield
        finally:
            over.set()
            thread.join()


def fork(work: Callable[[], str]) -> Callable[[], bool]:
    """Do `work` in a forked process, which prints what went wrong; return what waits and says whether all went well."""
    pid = os.fork()
    if pid:
        return lambda: os.waitpid(pid, 0)[1] == 0
    wrong = "raised"
    try:
        wrong = work()
        gc.collect()
        if wrong:
            print(wrong, flush=True)
    finally:
        os._exit(bool(wrong))


def answer_in_process(who: int, calls: int) -> None:
    sys.exit(ask_all(who, calls) or None)


def main(how: str, calls: int) -> None:
    assert not ask_all(0, 1)
    if how == "multiprocessing":
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=answer_in_process, args=(who, calls)) for who in (1, 2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        went_well = [process.exitcode == 0 for process in processes]
    else:
        with locks_of_another_thread() if how == "locked" else contextlib.nullcontext():
            waits = [fork(lambda who=who: ask_all(who, calls)) for who in (1, 2)]  # type: ignore[misc]
            went_well = [wait() for wait in waits]
    # What a forked process did at its end is nothing to its parent.
    print("ok" if all(went_well) and not ask_all(3, 1) else "not ok")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
