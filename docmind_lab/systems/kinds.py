"""`WorkloadKind`: describes a workload, is found by its name, and builds the system under a deadline.

    kind = workload_kind("supervisor")             # one of WORKLOADS
    kind = workload_kind("my_package.mine:KIND")   # another's, wherever it can be imported from
    kind = workload_kind("own:my_app:graph")       # a graph that was not made for the lab
    workload = kind.build(Surroundings(addresses, Settings()))

A workload is one package, or one file, that exports a `KIND`. Comparisons, studies, panels and the command line use
nothing else of it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, Self
from urllib.parse import quote_plus, unquote_plus

from docmind_lab.alternatives.base import Alternative, Outcome, Runnable
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import policy_names
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import LogClient, ServiceAddresses, ServiceOptions, ServiceProcess
from docmind_lab.systems.docmind.documents import Library, LibraryPlace
from docmind_lab.systems.docmind.graphs.node_modes import NodeMode
from docmind_lab.systems.docmind.retrieval import Question
from docmind_lab.systems.docmind.retrieval.corpus import HANDBOOK
from docmind_lab.systems.docmind.system import named_corpus
from docmind_lab.systems.retries import RetriesOf, retries_of_alternative
from docmind_lab.tables.frames import ELSEWHERE, ExtraTable, not_imported

# Imported when they are asked for: some need packages that only they use.
_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "supervisor": "docmind_lab.systems.docmind.supervisor",
        "research": "docmind_lab.systems.research",
        "staged": "docmind_lab.systems.staged",
        "peers": "docmind_lab.systems.peers",
        "hops": "docmind_lab.systems.hops",
    }
)

WORKLOADS: tuple[str, ...] = tuple(_MODULES)
"""The workloads that come with the lab."""

OWN_PREFIX = "own:"
"""Before the reference of a graph that was not made for the lab; see `systems/own`."""

PROGRAM_PREFIX = "program:"
"""Before the command of a program; see `systems/programs`."""

# Those that need an extra of their own name.
_EXTRAS = frozenset({"peers"})


class RefusalOf(Protocol):
    """Says why a system cannot have an alternative."""

    def __call__(self, alternative: Alternative, *, by_name: bool = False) -> str:
        """Return the reason, with the remedy; empty if it can. by_name: whether it was asked for by its name."""
        ...


def with_policies_but(**reasons: str) -> RefusalOf:
    """Return a function that refuses time policies. reasons: name of each that would change nothing → why."""

    def refusal(alternative: Alternative, *, by_name: bool = False) -> str:
        policy = getattr(alternative, "policy", None)
        names = () if policy is None else policy.policies.names
        return next((f"policy {name}: {reasons[name]}" for name in names if name in reasons), "")

    return refusal


any_alternative: RefusalOf = with_policies_but(
    aware="the model of this workload does nothing else when it is told of the time left",
    wind_down="no agent of this workload could answer sooner without its tools",
    anytime="this workload keeps no draft",
)
"""Says nothing against an alternative, unless it has a time policy that few workloads know."""

no_policies: RefusalOf = with_policies_but(
    **dict.fromkeys(policy_names(), "policies are for model calls, and it makes none")
)
"""Says why an alternative with time policies cannot be had: the system makes no model calls."""


def itself(alternative: Alternative) -> Any:
    """Return the alternative, which needs nothing else to carry it out."""
    return alternative


class ServedProcesses(Protocol):
    """Services in processes of their own, while the context is entered."""

    addresses: ServiceAddresses

    def __enter__(self) -> Self:
        """Start them. Raises: ServiceError if they do not start."""
        ...

    def __exit__(self, *exc_info: object) -> None:
        """Stop them."""

    def log_client(self) -> LogClient:
        """Return a reader of their log; the caller closes it."""
        ...


class Workload(Protocol):
    """A system that runs under a deadline."""

    name: str

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph for a question, with this recorder observing it."""
        ...

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        ...

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return source recall and answer score of a run's outcome."""
        ...

    def in_node_mode(self, node_mode: NodeMode) -> Self:
        """Return the same system with nodes of this mode; see `graphs/node_modes.py`."""
        ...

    def forget(self, run_id: str) -> None:
        """Drop everything that is kept of a run."""

    def close(self) -> None:
        """Close the clients."""


@dataclass(frozen=True)
class Surroundings:
    """The services, settings and corpus that a workload is built on.

    addresses: of the services. settings: endpoints, limits and the allowlist. client_retries: of the openai client, for
    alternatives that leave retries to it; None for its default. max_connections: of each pool of HTTP connections.
    corpus: what is searched, by name, by place or itself. node_mode: what async alternatives find in the nodes, see
    `graphs/node_modes.py`.
    """

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None = None
    max_connections: int = 100
    corpus: str | LibraryPlace | Library = HANDBOOK
    node_mode: NodeMode = "own"

    def resolve_corpus(self) -> Library:
        """Return the corpus itself, loaded if it is given by name or place. Raises: as `named_corpus`."""
        return self.corpus if isinstance(self.corpus, Library) else named_corpus(self.corpus)


@dataclass(frozen=True)
class Defaults:
    """Defaults of a comparison. The decision timeout lies among usual run times, so that some runs are late."""

    decision_timeout_s: float
    runs: int
    profile: str


@dataclass(frozen=True)
class WorkloadKind:
    """The description of a system that can be put under a deadline, and the function that builds it.

    Args:
        name: Level in the tables.
        title: Name in a summary.
        asked: What its runs are asked, plural.
        cases: Name of a corpus → what can be asked; runs go through them in a drawn order.
        build: Surroundings → the system.
        defaults: Of a comparison on each clock.
        roles: In the order of work, for the lanes of a timeline.
        parts: Nodes and tools of a user's graph by name, under "nodes" and "tools", of which runs may reach some.
        events: Those that only it records, and what they mean.
        tables: Those that only it has.
        in_this_process: No other process can find it.
        has_server_log: The servers that it asks are ours, and log what they do.
        retries: (alternative, client retries) → who tries again, as the column `retries` calls it.
        takes_questions: It searches the corpus for answers to questions, so documents and questions of the user's own
            can be put to it.
        has_router: Its retrieval can ask a router engine first.
        reads_settings: It takes its deadline from the lab's environment variables, so advice names those to set.
        async_only: It has a node or tool without a sync form, so every alternative runs it on an event loop.
        endpoints: File with endpoints of other services that it calls.
        adapts: Its agents do other things with another deadline where they know it: they divide it among peers, or
            fall back.
        has_hops: It calls services that may hold to a deadline on the wire: it takes an `adoption`.
        serve: Starts its services over sockets, as a context manager.
        refusal: An alternative → why it cannot be had, with the remedy; empty if it can.
        carried_out_by: An alternative → what carries it out on this system.
        notes: Sentences on its alternatives for the summary of a study.
    """

    name: str
    title: str
    asked: str
    cases: Callable[[str], tuple[Question, ...]]
    build: Callable[[Surroundings], Workload]
    defaults: Mapping[ClockName, Defaults]
    roles: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[ExtraTable, ...] = ()
    in_this_process: bool = False
    has_server_log: bool = True
    retries: RetriesOf = retries_of_alternative
    takes_questions: bool = False
    has_router: bool = False
    reads_settings: bool = False
    async_only: bool = False
    endpoints: str = ""
    adapts: bool = False
    has_hops: bool = False
    serve: Callable[[ServiceOptions], ServedProcesses] = ServiceProcess
    refusal: RefusalOf = any_alternative
    carried_out_by: Callable[[Alternative], Any] = itself
    notes: tuple[str, ...] = ()

    def possible(self, alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
        """Return those of the alternatives that the system can have."""
        return tuple(alternative for alternative in alternatives if not self.refusal(alternative))


def workload_kind(name: str) -> WorkloadKind:
    """Return the kind of this name: one of `WORKLOADS`, or "module:ATTRIBUTE". Raises: ConfigurationError."""
    if name in _MODULES:
        return _kind_in(name, _MODULES[name], "KIND")
    if name.startswith(OWN_PREFIX):
        # Function-level: it is made of this module's kinds.
        from docmind_lab.systems.own import own_kind  # noqa: PLC0415

        return own_kind(name)
    if name.startswith(PROGRAM_PREFIX):
        # Function-level, as above.
        from docmind_lab.systems.programs import program_kind  # noqa: PLC0415

        return program_kind(name)
    if not ELSEWHERE.fullmatch(name):
        known = ", ".join(WORKLOADS)
        raise ConfigurationError(
            f"unknown workload {name!r}; the workloads are {known}, or module:ATTRIBUTE for another"
        )
    module, _, attribute = name.partition(":")
    return _kind_in(name, module, attribute)


def extra_table(names: Iterable[str], table: str, trusted: Collection[str] | None = None) -> ExtraTable:
    """Return the extra table with that name from one of these workloads.

    names: workloads, as the manifest of a study names them. trusted: as in `not_imported`.
    Raises: ConfigurationError: none of the workloads has it. The message names the tables there are, and the workloads
    that were not imported.
    """
    # A graph of the user's own has no tables, so its module is not needed.
    names = [name for name in names if not name.startswith((OWN_PREFIX, PROGRAM_PREFIX))]
    unknown = not_imported(names, trusted)
    there = {found.name: found for name in names if name not in unknown for found in workload_kind(name).tables}
    if table not in there:
        known = f"the tables are {', '.join(there)}" if there else "its workloads have none of their own"
        if unknown:
            known = (
                f"{', '.join(unknown)} was not imported, since only the study's manifest names it: if you trust it, "
                f"load the study with kinds={list(unknown)!r}"
            )
        raise ConfigurationError(f"a study of these workloads has no table {table!r}; {known}")
    return there[table]


_FILE_OPTIONS = ("endpoints", "store")
_FOLDERS = re.compile(r"(?:(?<!\w)[A-Za-z]:(?=[/\\]))?[^:]*[/\\]")


def shown_name(workload: str) -> str:
    """Return a workload's name as tables have it: files by their names, without folders of the machine."""
    if not workload.startswith(OWN_PREFIX):
        return workload
    reference, mark, query = workload.removeprefix(OWN_PREFIX).partition("?")
    options = [option.partition("=") for option in query.split("&")]
    shown = "&".join(
        f"{name}={quote_plus(_without_folders(unquote_plus(value)))}"
        if name in _FILE_OPTIONS
        else f"{name}{sign}{value}"
        for name, sign, value in options
    )
    return f"{OWN_PREFIX}{_without_folders(reference)}{mark}{shown}"


def _without_folders(reference: str) -> str:
    return _FOLDERS.sub("", reference)


def systems_said(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the manifest's description of workloads, by their level in the tables, to read a study without them."""
    kinds = [(name, workload_kind(name)) for name in names]
    return {
        kind.name: {
            "kind": shown_name(name),
            "title": kind.title,
            "asked": kind.asked,
            "roles": list(kind.roles),
            "reads_settings": kind.reads_settings,
            "adapts": kind.adapts,
            **({"notes": list(kind.notes)} if kind.notes else {}),
        }
        for name, kind in kinds
    }


def _kind_in(name: str, module: str, attribute: str) -> WorkloadKind:
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ConfigurationError(_missing(name, module, error)) from error
    except AttributeError as error:
        raise ConfigurationError(f"workload {name!r}: module {module} has no {attribute}") from error
    if not isinstance(kind, WorkloadKind):
        raise ConfigurationError(f"workload {name!r} is a {type(kind).__name__}, not a WorkloadKind")
    return kind


def _missing(name: str, module: str, error: ModuleNotFoundError) -> str:
    absent = error.name or ""
    if absent and (module == absent or module.startswith(f"{absent}.")):
        return f"workload {name!r}: no module {absent} can be imported; check the name and the Python path"
    remedy = f'pip install "docmind_lab[{name}]"' if name in _EXTRAS else "install it"
    return f"workload {name!r} needs the package {absent.partition('.')[0]}, which is not installed; {remedy}"
