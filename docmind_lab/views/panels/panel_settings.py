"""The settings of a panel: as one value, as the comparison they describe, and as traits that are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import traitlets

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.alternative_catalogue import CATALOGUE, letter_of
from docmind_lab.core.clock import CLOCKS, ClockName
from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.system_options import system_of_kind
from docmind_lab.experiments.world_options import World
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.kinds import workload_kind

PropagationLevel = Literal["own", "on", "off"]
PROPAGATION_LEVELS: Final[tuple[PropagationLevel, ...]] = ("own", "on", "off")
SUFFIXES: Final = {"on": "propagate", "off": "unpropagated"}


@dataclass(frozen=True)
class PanelChoice:
    """The settings of a panel, named as in the tables, durations in seconds.

    alternatives: letters, levels or variants. deadline_propagation: "own" leaves it to the alternative; "on" and "off"
    set it for those that have the choice. fault: as `services.faults` writes it.
    """

    decision_timeout_s: float = 20.0
    runs: int = 40
    seed: int = 7
    alternatives: tuple[str, ...] = ("A", "B", "C", "D")
    deadline_propagation: PropagationLevel = "own"
    router_injection: bool = False
    latency_profile: str = "heavy_tail/3"
    fault: str = "none"
    stops_on_disconnect: bool = True
    clock: ClockName = "virtual"
    corpus: str = HANDBOOK
    workload: str = "supervisor"

    def named_alternatives(self) -> tuple[str, ...]:
        """Return the names of the alternatives under the controls: ("A", "B:propagate").

        Raises: ConfigurationError for a variant under "on" or "off", since it has one name already.
        """
        level = self.deadline_propagation
        named = self.alternatives if level == "own" else [_with_propagation(name, level) for name in self.alternatives]
        return tuple(named)

    def comparison(self, settings: Settings) -> Comparison:
        """Return the comparison that `compare` makes of these settings. Raises: ConfigurationError naming one."""
        return Comparison(
            decision_timeout_s=self.decision_timeout_s,
            runs=self.runs,
            seed=self.seed,
            alternatives=parse_alternatives(
                list(self.named_alternatives()), budgeted_retries=settings.agents.max_retries
            ),
            profile=LatencyProfile.named(self.latency_profile),
            faults=(Fault.parse(self.fault),),
            server_behaviour=STOPS if self.stops_on_disconnect else GOES_ON,
            router_injection=self.router_injection,
            clock=self.clock,
            documents=Documents(self.corpus),
            workload=self.workload,
        )

    @property
    def first_run_seed(self) -> int:
        """The seed of the first question's runs."""
        return run_seed(self.seed, 1)

    def code(self) -> str:
        """Return Python code that measures the same runs: a call of `compare` with every setting."""
        system = system_of_kind(self.workload)
        options = {"documents": self.corpus, "router_injection": self.router_injection}
        known = {field.name for field in dataclasses.fields(system)}
        system = dataclasses.replace(system, **{name: options[name] for name in options if name in known})
        world = World(
            latencies=self.latency_profile,
            faults=self.fault,
            server=STOPS.name if self.stops_on_disconnect else GOES_ON.name,
            clock=self.clock,
        )
        lines = [
            repr(system),
            f"decision_timeout_s={self.decision_timeout_s!r}",
            f"alternatives={list(self.named_alternatives())!r}",
            f"world={world!r}",
            f"runs={self.runs!r}",
            f"seed={self.seed!r}",
        ]
        return "import docmind_lab as dl\n\nstudy = dl.compare(\n" + "".join(f"    {line},\n" for line in lines) + ")\n"


def _with_propagation(name: str, level: PropagationLevel) -> str:
    name, plus, policies = name.partition("+")
    (alternative,) = parse_alternatives([name])
    if ":" in name:
        raise ConfigurationError(
            f"deadline_propagation={level!r} cannot be combined with the variant {name!r}; set it to 'own'"
        )
    has_choice = SUFFIXES[level] in CATALOGUE[alternative.name].variants
    if alternative.propagates == (level == "on") or not has_choice:
        return name + plus + policies
    return f"{name}:{SUFFIXES[level]}{plus}{policies}"


LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 0.1, 600.0
"""Bounds of the decision timeout, seconds: no call ends within the first, every run within the second."""
MOST_RUNS: Final = 1000
"""The most runs of each alternative in a panel; larger comparisons are studies."""

MOST_SEED: Final = 2**31 - 1

SETTINGS: Final = tuple(field.name for field in dataclasses.fields(PanelChoice) if field.name != "corpus")
"""The settings that are traits: all except the corpus, which cannot change."""


class ChoiceTraits(traitlets.HasTraits):
    """The fields of a `PanelChoice` as traits, except for the corpus, which cannot change.

    A value that cannot be used raises ConfigurationError, or TraitError if it is of the wrong kind; the trait then
    keeps the one it had. Alternatives are kept by their shortest names.
    """

    decision_timeout_s = traitlets.Float(20.0)
    runs = traitlets.Int(40)
    seed = traitlets.Int(7)
    alternatives = traitlets.Tuple(("A", "B", "C", "D"))
    deadline_propagation = traitlets.Enum(PROPAGATION_LEVELS, "own")
    router_injection = traitlets.Bool(False)
    latency_profile = traitlets.Unicode("heavy_tail/3")
    fault = traitlets.Unicode("none")
    stops_on_disconnect = traitlets.Bool(True)
    clock = traitlets.Enum(CLOCKS, "virtual")
    workload = traitlets.Unicode("supervisor")

    def __init__(self, choice: PanelChoice) -> None:
        super().__init__()
        self._corpus = choice.corpus
        for name in SETTINGS:
            setattr(self, name, getattr(choice, name))

    @property
    def choice(self) -> PanelChoice:
        """The current settings of the panel."""
        return PanelChoice(corpus=self._corpus, **{name: getattr(self, name) for name in SETTINGS})

    @traitlets.validate("decision_timeout_s")
    def _check_timeout(self, proposal: Any) -> float:
        seconds = require_seconds("decision_timeout_s", proposal["value"])
        if not LEAST_TIMEOUT_S <= seconds <= MOST_TIMEOUT_S:
            raise ConfigurationError(
                f"decision_timeout_s must be between {LEAST_TIMEOUT_S:g} and {MOST_TIMEOUT_S:g} s, not {seconds:g}"
            )
        return seconds

    @traitlets.validate("runs")
    def _check_runs(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= MOST_RUNS:
            raise ConfigurationError(f"runs must be between 1 and {MOST_RUNS}, not {proposal['value']}")
        return int(proposal["value"])

    @traitlets.validate("seed")
    def _check_seed(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] <= MOST_SEED:
            raise ConfigurationError(f"seed must be between 0 and {MOST_SEED}, not {proposal['value']}")
        return int(proposal["value"])

    @traitlets.validate("alternatives")
    def _check_alternatives(self, proposal: Any) -> tuple[str, ...]:
        names = tuple(_shortest(name) for name in proposal["value"])
        if not names:
            raise ConfigurationError("alternatives must name at least one, such as ('A', 'B')")
        if len(set(names)) < len(names):
            raise ConfigurationError("alternatives names one twice; name each once")
        return names

    @traitlets.validate("latency_profile", "workload", "fault")
    def _check_name(self, proposal: Any) -> str:
        checks: Mapping[str, Callable[[str], object]]
        checks = {
            "latency_profile": LatencyProfile.named,
            "workload": workload_kind,
            "fault": Fault.parse,
        }
        checks[proposal["trait"].name](proposal["value"])
        return str(proposal["value"])


def _shortest(name: str) -> str:
    """Return the shortest name of an alternative: its letter, with its variant. Raises: ConfigurationError."""
    (alternative,) = parse_alternatives([name])
    named, plus, policies = name.partition("+")
    variant = named.partition(":")[2]
    letter = letter_of(alternative.name)
    return (f"{letter}:{variant}" if variant else letter) + plus + policies
