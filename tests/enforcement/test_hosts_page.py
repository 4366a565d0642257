"""The page on hosts: its recipes run where they say, and its table is true.

`make test-hosts` runs the recipes of Streamlit and Celery in the real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypedDict

import httpx
import nbformat
import pytest
from held_graphs import wait_until
from langgraph.graph import END, START, StateGraph
from nbclient import NotebookClient
from often import often
from stub_server import StubConnection, StubRequest, StubServer

import docmind_lab as dl

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
PAGE = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
CLICKS = 4
# A loaded machine takes a while to import the stack.
STARTS_WITHIN_S = 120
# A loop that is closed leaves the connections of a client that outlives it, which is what the page is about.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def recipes(heading: str) -> list[str]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def echo(request: StubRequest, connection: StubConnection) -> None:
    body = f"answer to {request.path[1:]}".encode()
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


@pytest.fixture
def my_agent(stub: Callable[..., StubServer], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The user's module, imported anew."""
    monkeypatch.setenv("UPSTREAM", stub(echo).url)
    sys.modules.pop("my_agent", None)
    module = importlib.import_module("my_agent")
    yield module
    # What it leaves open is closed here, where the warnings of it are ignored: pytest itself still holds the module.
    sys.modules.pop("my_agent", None)
    vars(module).clear()
    gc.collect()


def in_a_thread(function: Callable[[], Any]) -> Any:
    """What a function returns in a new thread, or the exception that ended it."""
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(function)
    return end.exception() or end.result()


# ---- threads and loops

HERE: contextvars.ContextVar[str] = contextvars.ContextVar("HERE", default="another")


class Place(TypedDict, total=False):
    is_callers_thread: bool
    context: str


def places(letter: str, call: str) -> Place:
    """Where a blocking node runs."""
    caller = threading.get_ident()
    HERE.set("the caller's")

    def node(state: Place) -> Place:
        return {"is_callers_thread": threading.get_ident() == caller, "context": HERE.get()}

    graph = StateGraph(Place).add_node("node", node).add_edge(START, "node").add_edge("node", END).compile()
    agent = dl.enforce(graph, 20, letter)
    if call == "invoke":
        return agent.invoke({}).state
    if call == "stream":
        return next(iter(agent.stream({}, stream_mode="updates")))["node"]
    return asyncio.run(agent.ainvoke({})).state


@pytest.mark.parametrize("call", ["invoke", "stream", "ainvoke"])
@pytest.mark.parametrize("letter", "ABCDEF")
def test_a_blocking_node_runs_in_the_callers_thread_under_a_and_d_with_invoke_alone(letter: str, call: str) -> None:
    found = contextvars.copy_context().run(places, letter, call)
    assert found == {"is_callers_thread": letter in "AD" and call == "invoke", "context": "the caller's"}


@pytest.mark.parametrize("letter", often(["bare", *"ABCDEF"], "bare", "A", "C"))
def test_a_loop_for_each_question_works_awaited_under_every_alternative(my_agent: Any, letter: str) -> None:
    def click() -> Any:
        if letter == "bare":
            return asyncio.run(my_agent.graph.ainvoke({"question": "x"}))["answer"]
        return asyncio.run(dl.enforce(my_agent.graph, 20, letter).ainvoke({"question": "x"})).state["answer"]

    ends = [str(in_a_thread(click)) for _ in range(CLICKS)]
    second = "Event loop is closed" if letter == "bare" else "answer to x"
    assert ends == ["answer to x", second] * (CLICKS // 2)


def test_the_recipe_for_several_threads_answers_each_its_own_question(my_agent: Any) -> None:
    names: dict[str, Any] = {}
    exec(recipes("Several event loops")[0], names)
    questions = [str(number) for number in range(80)]
    assert names["answer_all"](questions) == [f"answer to {each}" for each in questions]


# ---- Streamlit


def clicked(recipe: str, question: str) -> Any:
    """Run a script as a click does, in a thread of its own, and return what it wrote."""
    written: list[str] = []
    made = SimpleNamespace(
        text_input=lambda label: question,
        write=written.append,
        write_stream=lambda parts: written.extend(parts),
    )
    sys.modules["streamlit"] = made  # type: ignore[assignment]
    return in_a_thread(lambda: exec(recipe, {"__name__": "__main__"})) or "".join(written)


@pytest.mark.parametrize("number", [0, 1])
def test_a_script_that_is_run_anew_in_another_thread_answers_every_click(
    my_agent: Any, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "streamlit", ModuleType("streamlit"))
    recipe = recipes("Streamlit")[number]
    questions = [f"click{each}" for each in range(CLICKS)]
    assert [clicked(recipe, each) for each in questions] == [f"answer to {each}" for each in questions]


@pytest.mark.parametrize("number", [0, 1])
def test_streamlit_itself_answers_every_click(my_agent: Any, number: int) -> None:
    testing = pytest.importorskip("streamlit.testing.v1", reason="needs streamlit: make test-hosts")
    app = testing.AppTest.from_string(recipes("Streamlit")[number], default_timeout=STARTS_WITHIN_S).run()
    for each in range(CLICKS):
        app.text_input[0].set_value(f"click{each}").run()
        assert [list(app.exception), [part.value for part in app.markdown]] == [[], [f"answer to click{each}"]]


# ---- Jupyter


@pytest.mark.full
def test_the_cells_for_jupyter_run_in_a_kernel(my_agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{SUPPORT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    cells = [*recipes("Jupyter"), "print(awaited.state['answer'], called.state['answer'])"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    NotebookClient(notebook, timeout=STARTS_WITHIN_S, kernel_name="python3").execute()
    assert notebook.cells[-1].outputs[0].text == "answer to one answer to two\n"


# ---- processes


@contextlib.contextmanager
def two_workers(
    application: str, folder: Path, environment: Mapping[str, str], within_s: float
) -> Iterator[httpx.Client]:
    """A client of the application, once both workers are there.

    Args:
        application: Its name, "module:attribute".
        folder: Where gunicorn runs, and leaves its socket and its log.
        environment: Its variables.
        within_s: Seconds in which it starts, or ends.
    """
    socket, log = folder / "socket", folder / "log"
    options = ["--preload", "--workers", "2", "--timeout", "60", "--no-control-socket", "--bind", f"unix:{socket}"]
    program = [sys.executable, "-m", "gunicorn", *options, application]
    with log.open("w") as output:
        process = subprocess.Popen(program, env=dict(environment), cwd=folder, stdout=output, stderr=output)
    try:
        wait_until(lambda: log.read_text().count("Booting worker") == 2 or process.poll() is not None, within_s)
        assert process.poll() is None, log.read_text()
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), timeout=20) as client:
            yield client
    finally:
        process.terminate()
        process.wait(within_s)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_service_for_gunicorn_answers_though_it_was_used_before_its_workers_were_forked(
    my_agent: Any, tmp_path: Path
) -> None:
    used = '\nassert agent.invoke({"question": "before"}).state["answer"] == "answer to before"\n'
    (tmp_path / "service.py").write_text(recipes("gunicorn")[0] + used, encoding="utf-8")
    with two_workers("service:application", tmp_path, environment(), STARTS_WITHIN_S) as client:
        answers = [client.get(f"http://service/{number}").text for number in range(20)]
    assert answers == [f"answer to {number}" for number in range(20)], (tmp_path / "log").read_text()


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_both_processes_of_celerys_pool_answer_though_the_agent_was_used_before(my_agent: Any, tmp_path: Path) -> None:
    pytest.importorskip("celery", reason="needs celery: make test-hosts")
    (tmp_path / "tasks.py").write_text(recipes("Celery")[0] + IN_FILES, encoding="utf-8")
    log, here = tmp_path / "log", {"env": environment(), "cwd": tmp_path, "text": True}
    options = ["-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "2"]
    with log.open("w") as output:
        worker = subprocess.Popen([sys.executable, "-m", "celery", *options], **here, stdout=output, stderr=output)
    try:
        program = [sys.executable, "-c", ASKS]
        asked = subprocess.run(program, **here, capture_output=True, check=False, timeout=STARTS_WITHIN_S)
    finally:
        worker.terminate()
        worker.wait(STARTS_WITHIN_S)
    assert asked.stdout.strip() == "ok 2 processes", asked.stdout + asked.stderr + log.read_text()


# A broker and results in files; the agent is used in the process that the pool is forked from.
IN_FILES = """
import os
from pathlib import Path

folder = Path(__file__).parent / "queue"
folder.mkdir(exist_ok=True)
app.conf.update(
    broker_url="filesystem://",
    broker_transport_options=dict.fromkeys(["data_folder_in", "data_folder_out", "control_folder"], str(folder)),
    result_backend=f"file://{folder}",
)
assert agent.invoke({"question": "before"}).state["answer"] == "answer to before"


@app.task
def answer_and_process(question):
    return [answer(question), os.getpid()]
"""
ASKS = """
import tasks

asked = [tasks.answer_and_process.delay(str(number)) for number in range(40)]
got = [each.get(timeout=60) for each in asked]
assert [text for text, _ in got] == [f"answer to {number}" for number in range(40)], got
print("ok", len({pid for _, pid in got}), "processes")
"""
