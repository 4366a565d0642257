"""`System`: what is put under a deadline, as a user names it. Each kind of system is one small frozen dataclass.

    dl.graph("my_app:graph", ["What does yield do?"])       # a graph of one's own
    dl.agent(my_function, ["What does yield do?"])          # a function that is an agent, or calls one
    dl.command(["node", "agent.mjs"], "questions.txt")      # a program
    dl.docmind(), dl.research(), dl.staged(), dl.peers(), dl.hops(adoption=0.5)     # the lab's own

A system knows its workload kind, where that is, and its own options. The lab's own are listed here and nowhere else:
the command line, study files and `dl` read this list. What a system meets is a `World`. Neither module imports the
stack, so that the command line can show their fields as its options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from docmind_lab.core.budgets import Budget
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.shown import ShownAsCall

if TYPE_CHECKING:
    from docmind_lab.systems.own import Inputs, StoreMaker

FilePath = str | os.PathLike[str]

ONE_QUESTION: Final = ("What can you do?",)
"""What a system is asked that comes without inputs: it fits a graph with messages, an agent and a program."""


@dataclass(frozen=True, repr=False)
class System(ShownAsCall):
    """What is put under a deadline. kind: of its workload; empty for a system of the user's own.

    Args:
        budget: Tokens, calls and cost of each run. It is measured everywhere, and enforced where the deadline is
            propagated. Its `time_s` is the decision timeout by another name.
    """

    kind: ClassVar[str] = ""
    _: KW_ONLY
    budget: Budget | None = None


@dataclass(frozen=True, repr=False)
class OwnSystem(System):
    """A system of the user's own: a graph, an agent or a program."""


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Graph(OwnSystem):
    """A LangGraph graph of one's own.

    Args:
        graph: A compiled graph, a function that makes one, or a reference, which worker processes can find too:
            "module:attribute", "file.py:attribute" or "langgraph.json:name".
        inputs: The graph's inputs as a list, or a file with one JSON object, or text, in each line. A graph with
            messages is asked what it can do when they are left out.
        context: Context of the graph's runs, as its `context_schema` has it.
        config: Configuration of its runs, or what stands under "configurable" there.
        store: A function that makes the store of one run, or a reference to it. None means the graph's own, or else an
            empty one in memory, such as LangGraph's server gives to every graph.
        resume: What the graph's interrupts are answered with, in their order, at once and within the budget.
        deadline_key: Key of the graph's input that takes the deadline, if it has one.
        enforced: Whether the graph runs through `enforce`, as it would in production, under each alternative.
        budget: Tokens, calls and cost of each run, as `System` has it.
    """

    noun: ClassVar[str] = "dl.graph"
    graph: Any
    inputs: Inputs = ONE_QUESTION
    _: KW_ONLY
    context: Any = None
    config: Mapping[str, Any] | None = None
    store: str | StoreMaker | None = None
    resume: Sequence[Any] = ()
    deadline_key: str = DEADLINE_KEY
    enforced: bool = False

    @property
    def of_runs(self) -> dict[str, Any]:
        """What its runs are given besides their input, by name."""
        return {name: getattr(self, name) for name in ("context", "config", "store", "resume")}


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Agent(OwnSystem):
    """An agent of one's own: a function of a question, which may call an agent of any framework.

    Args:
        agent: A function of a question, `async` or not, or a reference to one as "module:attribute".
        inputs: The questions as a list, or a file with one in each line.
        budget: Tokens, calls and cost of each run, as `System` has it.
    """

    noun: ClassVar[str] = "dl.agent"
    agent: Any
    inputs: Inputs = ONE_QUESTION


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Command(OwnSystem):
    """A program in any language, which is run on the wall clock.

    Args:
        command: The program and its arguments, or both as one text. It reads a question from standard input and writes
            its answer to standard output.
        inputs: The questions as a list, or a file with one in each line.
        budget: Tokens, calls and cost of each run, as `System` has it.
    """

    noun: ClassVar[str] = "dl.command"
    command: str | Sequence[str]
    inputs: Inputs = ONE_QUESTION


@dataclass(frozen=True, repr=False)
class LabSystem(System):
    """A system that comes with the lab.

    kind: the name of its workload in tables. home: the module with its `KIND`; to import its package adds its roles and
    servers to the services. extra: of the project, with the packages that it needs beside the lab's.

    Args:
        retries: Tries after the first, of whoever retries under an alternative. None means the 2 of the openai
            client.
    """

    kind: ClassVar[str] = ""
    home: ClassVar[str] = ""
    extra: ClassVar[str] = "systems"
    _: KW_ONLY
    retries: int | None = None


@dataclass(frozen=True, repr=False)
class SearchingSystem(LabSystem):
    """A system that searches documents for answers to questions.

    Args:
        documents: "handbook", which comes with twelve questions, or a folder of .md and .txt files.
        questions: A .jsonl file of your own questions, with the documents that hold the answers. None means those that
            come with the documents; a folder's do not come with any.
    """

    documents: FilePath = "handbook"
    questions: FilePath | None = None


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class DocMind(SearchingSystem):
    """DocMind: a supervisor over five roles that answers questions from documents.

    Args:
        router_injection: Whether retrieval asks a router engine first, as in ADR-056. None means as the settings say.
        documents: "handbook", which comes with twelve questions, or a folder of .md and .txt files.
        questions: A .jsonl file of your own questions, with the documents that hold the answers. None means those that
            come with the documents; a folder's do not come with any.
        budget: Tokens, calls and cost of each run, as `System` has it.
        retries: Tries after the first, of whoever retries under an alternative. None means the 2 of the openai
            client.
    """

    noun: ClassVar[str] = "dl.docmind"
    kind: ClassVar[str] = "supervisor"
    home: ClassVar[str] = "docmind_lab.systems.docmind.docmind_system"
    _: KW_ONLY
    router_injection: bool | None = None


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Research(SearchingSystem):
    """A research loop, which asks until its sources are saturated.

    The parameters are those of `docmind`, but for `router_injection`.
    """

    noun: ClassVar[str] = "dl.research"
    kind: ClassVar[str] = "research"
    home: ClassVar[str] = "docmind_lab.systems.research.research_workload"


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Staged(LabSystem):
    """A ladder of models, each with a timeout of its own.

    The parameters are `budget` and `retries` of `docmind`.
    """

    noun: ClassVar[str] = "dl.staged"
    kind: ClassVar[str] = "staged"
    home: ClassVar[str] = "docmind_lab.systems.staged.staged_workload"


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Peers(SearchingSystem):
    """Agents that ask their peers in other processes.

    The parameters are those of `docmind`, but for `router_injection`.
    """

    noun: ClassVar[str] = "dl.peers"
    kind: ClassVar[str] = "peers"
    home: ClassVar[str] = "docmind_lab.systems.peers.peers_workload"
    extra: ClassVar[str] = "peers"


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Hops(LabSystem):
    """Services that call services.

    Args:
        adoption: Share, from 0 to 1, of the services that hold to a deadline on the wire. Which ones is drawn by seed.
        budget: Tokens, calls and cost of each run, as `System` has it.
        retries: Tries after the first, of whoever retries under an alternative. None means the 2 of the openai
            client.
    """

    noun: ClassVar[str] = "dl.hops"
    kind: ClassVar[str] = "hops"
    home: ClassVar[str] = "docmind_lab.systems.hops.hops_workload"
    _: KW_ONLY
    adoption: float = 0.0


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class OtherSystem(SearchingSystem):
    """A system that somebody else made for the lab.

    Args:
        kind: Where its `WorkloadKind` is, as "module:ATTRIBUTE". The module is imported.
        router_injection: Whether its retrieval asks a router engine first, if it has one.
        adoption: Share, from 0 to 1, of its services that hold to a deadline on the wire, if it has any.
        documents: "handbook", which comes with twelve questions, or a folder of .md and .txt files.
        questions: A .jsonl file of your own questions, with the documents that hold the answers. None means those that
            come with the documents; a folder's do not come with any.
        budget: Tokens, calls and cost of each run, as `System` has it.
        retries: Tries after the first, of whoever retries under an alternative. None means the 2 of the openai
            client.
    """

    noun: ClassVar[str] = "dl.workload"
    _: KW_ONLY
    kind: str  # type: ignore[misc]
    router_injection: bool | None = None
    adoption: float = 0.0


agent, command, graph, workload = Agent, Command, Graph, OtherSystem
docmind, research, staged, peers, hops = _OF_THE_LAB = DocMind, Research, Staged, Peers, Hops

__all__ = ["System", "agent", "command", "docmind", "graph", "hops", "peers", "research", "staged", "workload"]
"""What `dl` has by these names."""

OWN_SYSTEMS: Final[dict[str, type[System]]] = {"graph": Graph, "agent": Agent, "command": Command}
"""The systems of a user's own by the option that names one."""

LAB_SYSTEMS: Final[dict[str, type[LabSystem]]] = {system.noun.removeprefix("dl."): system for system in _OF_THE_LAB}
"""The lab's own systems by the names that users call them."""

SYSTEMS: Final[tuple[type[System], ...]] = (*OWN_SYSTEMS.values(), *LAB_SYSTEMS.values(), OtherSystem)


def system_of(value: Any) -> System:
    """Return the system that is meant: itself, a graph or a reference to one, and DocMind for None."""
    if value is None:
        return DocMind()
    return value if isinstance(value, System) else Graph(value)


def system_of_kind(kind: str, **options: Any) -> Any:
    """Return the lab's system, or another's, of a workload kind. options: its fields."""
    noun = next((system for system in LAB_SYSTEMS.values() if system.kind == kind), None)
    return OtherSystem(kind=kind, **options) if noun is None else noun(**options)


def system_in(options: Mapping[str, Any]) -> System:
    """Return the system that options mean. Raises: ConfigurationError for an option of another system."""
    own = [name for name in OWN_SYSTEMS if name in options]
    names = [*(["system"] if "system" in options else []), *own]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} name {len(names)} systems; leave one out")
    values = {name: value for name, value in options.items() if name != "system"}
    if own:
        noun = OWN_SYSTEMS[own[0]]
    else:
        name = str(options.get("system", "docmind"))
        noun = LAB_SYSTEMS.get(name, OtherSystem)
        if noun is OtherSystem:
            _require_elsewhere(name)
            values["kind"] = name
    for name in values:
        if name not in noun.__dataclass_fields__:
            having = ", ".join(_called(other) for other in SYSTEMS if name in other.__dataclass_fields__)
            raise ConfigurationError(f"{name} is an option of {having}, and not of {_called(noun)}; leave it out")
    return noun(**values)


def _called(noun: type[System]) -> str:
    return noun.noun.removeprefix("dl.")


def _require_elsewhere(name: str) -> None:
    if ":" not in name:
        raise ConfigurationError(
            f"unknown system {name!r}; the systems are {', '.join(LAB_SYSTEMS)}, or module:ATTRIBUTE for another"
        )
