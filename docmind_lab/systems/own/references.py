"""Load a user's graph from a reference: a module, a file, or an entry of langgraph.json.

    load_graph("my_app:graph")                # a module that Python finds
    load_graph("agents/my_app.py:graph")      # a file
    load_graph("langgraph.json:agent")        # an entry of that file; without a name, its only one

Each names a graph, compiled or not, or a function that makes one: without arguments, or with the run's configuration as
its only one, in which LangGraph's server says that a run is to come: `thread_id` and `__is_for_execution__`. One that
takes the configuration is called again for each run, as the server does, with the run's own. A function may be async,
and may be a context manager, which stays open as long as its run, or the process, does.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import socket
import sys
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.users_code import digest_of_module, forget_if_changed, line_of_error, note_imported
from docmind_lab.systems.own.agents import agent_graph, kind_of, load_agent, parameters_of

AnyGraph = Pregel[Any, Any, Any, Any]

# What a function that makes a graph for the server's pages, and not for a run, is not told.
_FOR_A_RUN = {"thread_id": "docmind-lab", "__is_for_execution__": True}

AGENT_PREFIX = "agent:"
"""Before a reference that names an agent, and no graph."""

_HOW_TO_WRITE = "write it as module:attribute, such as my_app:graph, or as file.py:attribute"
_GRAPHS = (StateGraph, Pregel, FunctionType)
# As urllib3, httpx, openai and grpc call a host that cannot be reached.
_NO_CONNECTION = frozenset({"MaxRetryError", "NameResolutionError", "ConnectError", "APIConnectionError"})
# Reference → the error that its module ended with, after it had made the graph.
_ended_early: dict[str, str] = {}
# How long what a function opened for a run may take to close.
_LEAVING_PATIENCE_S = 5.0
# Context managers that made a graph, which is used as long as the process lives.
_open = contextlib.ExitStack()
RunMaker = Callable[[Mapping[str, Any], contextlib.ExitStack], AnyGraph]
# Graph that a function made from a configuration → makes that of one run.
_makers: weakref.WeakKeyDictionary[AnyGraph, RunMaker] = weakref.WeakKeyDictionary()


def load_graph(reference: str, config: Mapping[str, Any] | None = None) -> AnyGraph:
    """Load the compiled graph that a reference names.

    reference: "module:attribute", "file.py:attribute" or "langgraph.json:name". Modules are also looked for in the
    working directory and in its folder `src`. config: for a function that makes the graph from its configuration.

    Raises: ConfigurationError, in one line, for a malformed reference, a module or file that does not import, an
    attribute that is not there or is no graph, a function that fails.
    """
    if reference.startswith(AGENT_PREFIX):
        named = reference.removeprefix(AGENT_PREFIX)
        return agent_graph(load_agent(load_object(named, "agent"), named))
    return compile_graph(load_object(reference), reference, config)


def load_object(reference: str, what: str = "graph") -> Any:
    """Load what a reference names; anew if the user's code has changed since. what: how errors call it.

    Raises: as `load_graph`.
    """
    reference = _of_json(reference)
    name, attribute, file = _module_of(reference, what)
    forget_if_changed(name)
    value: Any = _import(reference, name, attribute, what, file)
    note_imported(name)
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise ConfigurationError(f"{what} {reference!r}: module {file or name} has no attribute {attribute}")
        value = getattr(value, part)
    return value


def _module_of(reference: str, what: str) -> tuple[str, str, Path | None]:
    """Return the name of the module that a reference names, the attribute, and its file if it is named by one."""
    reference = _of_json(reference)
    place, _, attribute = reference.rpartition(":")
    if not place or not attribute:
        raise ConfigurationError(f"{what} {reference!r}: {_HOW_TO_WRITE}")
    # As a project's own tools run it: from its root, whose modules a file in a folder imports.
    _put_on_path(Path.cwd() / "src")
    _put_on_path(Path.cwd())
    file = Path(place) if place.endswith(".py") else None
    return (place if file is None else _name_of_file(reference, file, what)), attribute, file


def digest_of(reference: str) -> str:
    """Load what a reference names, and return a digest of the user's code in it; empty if it is no text of Python's."""
    what = "agent" if reference.startswith(AGENT_PREFIX) else "graph"
    reference = reference.removeprefix(AGENT_PREFIX)
    load_object(reference, what)
    return digest_of_module(_module_of(reference, what)[0])


def notes_on_module(reference: str) -> tuple[str, ...]:
    """Return a sentence if the module of a loaded reference failed after it had made the graph; else nothing."""
    error = _ended_early.get(_of_json(reference))
    return (
        (f"As it was imported, the module failed after it had made the graph, which ran all the same: {error}.",)
        if error
        else ()
    )


def takes_config(value: Any) -> bool:
    """Whether this is a function that makes a graph from a configuration."""
    return _is_function(value) and bool(_config_parameter(value))


def compile_graph(value: Any, reference: str, config: Mapping[str, Any] | None = None) -> AnyGraph:
    """Return the compiled graph that an object is, or makes if called.

    reference: how errors call it. config: for a function that makes the graph from its configuration.

    Raises: as `load_graph`.
    """
    if isinstance(value, StateGraph | Pregel):
        return _compiled(value, reference)
    if not callable(value) or inspect.isclass(value):
        raise ConfigurationError(
            f"graph {reference!r} is a {kind_of(value)}, not a LangGraph graph or a function that makes one"
        )

    def make(config: Mapping[str, Any], stack: contextlib.ExitStack) -> AnyGraph:
        result = _call_factory(value, reference, config, stack)
        if not isinstance(result, StateGraph | Pregel):
            raise ConfigurationError(f"graph {reference!r} makes a {kind_of(result)}, not a LangGraph graph")
        return _compiled(result, reference)

    graph = make(config or {}, _open)
    if _config_parameter(value):
        _makers[graph] = make
    return graph


def is_maker(value: Any) -> bool:
    """Return whether an object makes a graph when it is called without arguments: a function, a method, a partial."""
    takes_nothing = all(each.default is not each.empty for each in _parameters(value))
    return _is_function(value) and not _config_parameter(value) and takes_nothing


def _is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and not isinstance(value, StateGraph | Pregel)


def maker_for_runs(graph: AnyGraph) -> RunMaker | None:
    """Return what makes the graph of one run from the run's configuration, where a function made this one so.

    It is closed, if it has to be, by the stack that the maker is given.
    """
    return _makers.get(graph)


def _compiled(graph: StateGraph[Any, Any, Any, Any] | AnyGraph, reference: str) -> AnyGraph:
    """Return a graph that can run. A builder is compiled without options, as LangGraph's server does."""
    if isinstance(graph, Pregel):
        return graph
    try:
        return graph.compile()
    except Exception as error:
        raise ConfigurationError(f"graph {reference!r} does not compile: {one_line(error)}") from error


def _of_json(reference: str) -> str:
    """Return the reference of an entry of langgraph.json, with its dependencies on the path and its environment set.

    Variables that are set already keep their values. Any other reference is returned as it is.
    """
    file, _, name = reference.partition(":")
    if Path(file).suffix != ".json":
        return reference
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        graphs = {
            key: entry["path"] if isinstance(entry, Mapping) else str(entry) for key, entry in content["graphs"].items()
        }
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"graph {reference!r}: {file} cannot be read: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f'graph {reference!r}: {file} must hold {{"graphs": {{"name": "./file.py:attribute"}}}}'
        ) from error
    if not name and len(graphs) == 1:
        name = next(iter(graphs))
    if name not in graphs:
        raise ConfigurationError(
            f"graph {reference!r}: name one of {', '.join(graphs)}, such as {file}:{next(iter(graphs), 'agent')}"
        )
    folder = Path(file).parent
    for dependency in content.get("dependencies") or ():
        if str(dependency).startswith("."):
            _put_on_path(folder / dependency / "src")
            _put_on_path(folder / dependency)
    _set_environment(content.get("env"), folder)
    path, separator, attribute = graphs[name].rpartition(":")
    is_file = path.endswith(".py")
    return f"{os.path.relpath(folder / path) if is_file else path}{separator}{attribute}"


def _set_environment(env: Any, folder: Path) -> None:
    values: Mapping[str, Any] = env if isinstance(env, Mapping) else {}
    if isinstance(env, str) and (folder / env).is_file():
        # Function-level: pydantic-settings brings it, and most graphs need none.
        from dotenv import dotenv_values  # noqa: PLC0415

        values = dotenv_values(folder / env)
    for name, value in values.items():
        if value is not None:
            os.environ.setdefault(name, str(value))


def _name_of_file(reference: str, file: Path, what: str) -> str:
    """Return the name that a file has as a module, with its folder on the path."""
    if not file.is_file():
        raise ConfigurationError(f"{what} {reference!r}: there is no file {file}")
    folder, name = file.resolve().parent, file.stem
    while (folder / "__init__.py").is_file():
        folder, name = folder.parent, f"{folder.name}.{name}"
    _put_on_path(folder)
    known = sys.modules.get(name) or importlib.util.find_spec(name.partition(".")[0])
    origin = getattr(known, "__file__", None) or getattr(known, "origin", None)
    is_ours = known is None or "." in name or (origin is not None and Path(origin).resolve() == file.resolve())
    # Else another module has the name of this file.
    return name if is_ours else f"{name}_of_{folder.name}"


def _put_on_path(folder: Path) -> None:
    if folder.is_dir() and (here := str(folder.resolve())) not in sys.path:
        sys.path.insert(0, here)


def _import(reference: str, name: str, attribute: str, what: str, file: Path | None) -> ModuleType:
    """Return the module of a name, imported once in a process, and once more if it has changed.

    A script often goes on after it has made its graph: it draws it, or asks a person. What fails then is noted.
    """
    if name in sys.modules:
        return sys.modules[name]
    module: ModuleType | None = None
    _ended_early.pop(reference, None)
    try:
        spec = importlib.util.find_spec(name)
        if spec is None and file is not None:
            spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            return importlib.import_module(name)  # raises what Python says of it
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except BaseException as error:
        if isinstance(error, Exception | SystemExit) and isinstance(vars(module or object).get(attribute), _GRAPHS):
            _ended_early[reference] = f"{one_line(error)}{_at(error)}"
        else:
            sys.modules.pop(name, None)
            raise _import_error(reference, name if file is None else file.name, what, error) from error
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, sys.modules[name])
    return sys.modules[name]


def _import_error(reference: str, module: str, what: str, error: BaseException) -> BaseException:
    if isinstance(error, DocmindLabError) or not isinstance(error, Exception | SystemExit):
        return error
    return ConfigurationError(
        f"{what} {reference!r}: module {module} does not import: {one_line(error)}{_at(error)}{_remedy_of(error)}"
    )


def _at(error: BaseException) -> str:
    line = line_of_error(error)
    return f" (at {line})" if line else ""


def _remedy_of(error: BaseException) -> str:
    """Return what to do about an error, where its words say it; else an empty text."""
    if isinstance(error, SyntaxError):
        return f"; this is Python {sys.version_info.major}.{sys.version_info.minor}"
    package = (getattr(error, "name", None) or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package in sys.modules and any(Path(folder, package).is_dir() for folder in (".", "src")):
        return f"; an installed package {package} hides your folder of that name: put an empty __init__.py into it"
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, socket.gaierror | ConnectionError) or type(chain).__name__ in _NO_CONNECTION:
            return "; it asks a service as it is imported: a row of --endpoints FILE (endpoints=...) can answer it"
        chain = chain.__cause__ or chain.__context__
    names = [word.strip("'\"`.,:;()") for word in str(error).split() if "_API_KEY" in word]
    if not names:
        return ""
    return f"; the simulated services need no key, but the client does: any text will do, such as {names[0]}=none"


def _parameters(factory: Any) -> list[inspect.Parameter]:
    parameters = parameters_of(factory).values()
    return [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _config_parameter(factory: Any) -> str:
    """Return the name of a function's only parameter if it takes the configuration, with or without a default."""
    items = _parameters(factory)
    is_it = len(items) == 1 and ("config" in items[0].name or "RunnableConfig" in str(items[0].annotation))
    return items[0].name if is_it else ""


def _call_factory(factory: Any, reference: str, config: Mapping[str, Any], stack: contextlib.ExitStack) -> Any:
    needed = [each for each in _parameters(factory) if each.default is each.empty]
    of_config = _config_parameter(factory)
    if needed and not of_config:
        raise ConfigurationError(
            f"graph {reference!r} is a function of {', '.join(each.name for each in needed)}; one without arguments, "
            "or of the configuration alone, is needed"
        )
    try:
        # As the server gives it to a function that makes the graph of a run.
        settings = {**config, "configurable": {**_FOR_A_RUN, **config.get("configurable", {})}}
        result = factory(settings) if of_config else factory()
        if inspect.isawaitable(result):
            result = shared_loop().run(_await(result))
        return _entered(result, stack)
    except DocmindLabError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"graph {reference!r} could not be made: {one_line(error)}{_at(error)}{_remedy_of(error)}"
        ) from error


def _entered(result: Any, stack: contextlib.ExitStack) -> Any:
    """Return what a context manager gives, which the stack closes."""
    if isinstance(result, StateGraph | Pregel):
        return result
    if isinstance(result, AbstractAsyncContextManager):
        return _entered_in_a_task(result, stack)
    return stack.enter_context(result) if isinstance(result, AbstractContextManager) else result


def _entered_in_a_task(manager: AbstractAsyncContextManager[Any], stack: contextlib.ExitStack) -> Any:
    """Enter and leave in one task: what is built on anyio, such as a session of MCP, must be left where it began."""
    entered: Future[tuple[Any, Callable[[], object]]] = Future()

    async def hold() -> None:
        leave, loop = asyncio.Event(), asyncio.get_running_loop()
        async with manager as graph:
            entered.set_result((graph, lambda: loop.call_soon_threadsafe(leave.set)))
            await leave.wait()

    future = shared_loop().submit(hold())
    future.add_done_callback(lambda _: None if entered.done() else entered.set_exception(future.exception()))
    graph, leave = entered.result()
    stack.callback(future.result, _LEAVING_PATIENCE_S)
    stack.callback(leave)
    return graph


async def _await(awaitable: Any) -> Any:
    return await awaitable


def one_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
