"""`WorkloadKind`: describes a system that can be put under a deadline, and builds it. `workload_by_name.py` finds it.

A workload is one package, or one file, that exports a `KIND`. Comparisons, studies, panels and the command line use
nothing else of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self
from urllib.parse import quote_plus, unquote_plus

from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.alternatives.base import Alternative, Outcome, Runnable
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.clock import ClockName
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import policy_names
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import ServiceAddresses, ServiceOptions, ServiceProcess
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.documents import Library, LibraryPlace
from docmind_lab.systems.base.documents.library import named_corpus
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import RetriesOf, retries_of_alternative
from docmind_lab.tables.frames import ExtraTable

OWN_PREFIX = "own:"
"""Before the reference of a graph that was not made for the lab; see `systems/own`."""

PROGRAM_PREFIX = "program:"
"""Before the command of a program; see `systems/own/programs`."""


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


def left_out(refusal: RefusalOf) -> tuple[str, ...]:
    """Return a sentence on each alternative that a system cannot have by default, with the reason."""
    refusals = ((kind, refusal(kind())) for kind in ALTERNATIVES.values())
    return tuple(f"{letter_of(kind.name)} is left out: {reason}." for kind, reason in refusals if reason)


def itself(alternative: Alternative) -> Any:
    """Return the alternative, which needs nothing else to carry it out."""
    return alternative


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
        """Return the same system with nodes of this mode; see `base/node_modes.py`."""
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
    `base/node_modes.py`.
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
    serve: Callable[[ServiceOptions], ServiceProcess] = ServiceProcess
    refusal: RefusalOf = any_alternative
    carried_out_by: Callable[[Alternative], Any] = itself
    notes: tuple[str, ...] = ()

    def possible(self, alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
        """Return those of the alternatives that the system can have."""
        return tuple(alternative for alternative in alternatives if not self.refusal(alternative))


_FILE_OPTIONS = ("endpoints", "store")
_FOLDERS = re.compile(r"(?:(?<!\w)[A-Za-z]:(?=[/\\]))?[^:]*[/\\]")


def shown_name(workload: str) -> str:
    """Return a workload's name as tables have it: files by their names, without folders of the machine."""
    if not workload.startswith(OWN_PREFIX):
        return workload
    reference, mark, query = workload.removeprefix(OWN_PREFIX).partition("?")
    options = [option.partition("=") for option in query.split("&")]
    options_text = "&".join(
        f"{name}={quote_plus(_without_folders(unquote_plus(value)))}"
        if name in _FILE_OPTIONS
        else f"{name}{sign}{value}"
        for name, sign, value in options
    )
    return f"{OWN_PREFIX}{_without_folders(reference)}{mark}{options_text}"


def _without_folders(reference: str) -> str:
    return _FOLDERS.sub("", reference)
