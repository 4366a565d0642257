"""The settings of a panel: one value, which is the comparison that they describe, and the controls that change it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from docmind_lab.alternatives.alternative_texts import parse_alternatives, require_no_roles
from docmind_lab.core.alternative_catalogue import CATALOGUE, label_of, letter_of
from docmind_lab.core.clock import CLOCKS, ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.core.text import node_in_words, one_line
from docmind_lab.experiments.comparison.comparison import DEFAULT_SEED, Comparison
from docmind_lab.experiments.comparison.comparison_run import resolve
from docmind_lab.experiments.comparison.own_graph import faults_in, require_own_world
from docmind_lab.experiments.world_options import Live, World
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.system_catalogue import OwnSystem, System, system_of

PropagationLevel = Literal["own", "on", "off"]
SUFFIXES: Final = {"on": "propagate", "off": "unpropagated"}

LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 0.1, 600.0
"""Bounds of the decision timeout, seconds: no call ends within the first, every run within the second."""
MOST_RUNS: Final = 1000
"""The most runs of each alternative in a panel; larger comparisons are studies."""
_MOST: Final = {"decision_timeout_s": (LEAST_TIMEOUT_S, MOST_TIMEOUT_S), "runs": (1, MOST_RUNS), "seed": (0, 2**31 - 1)}
_FIRST_SHOWN: Final = "ABCD"
_KINDS: Final = {
    "decision_timeout_s": "slider",
    "alternatives": "checks",
    "router_injection": "check",
    "runs": "number",
    "seed": "number",
}
_EVERY_ROLE: Final = "*"
_PROFILES: Final = ("heavy_tail/3", "heavy_tail", "typical", "typical/6", "fast", "local_gpu")
LABELS: Final = {
    "decision_timeout_s": "Decision timeout (s)",
    "alternatives": "Alternatives",
    "deadline_propagation": "Deadline propagation",
    "router_injection": "Router injection",
    "latency_profile": "Latency profile",
    "fault": "Fault",
    "strikes": "It strikes",
    "server": "When its client leaves, the server",
    "runs": "Runs of each",
    "seed": "Seed",
    "clock": "Clock",
}

SETTINGS: Final = tuple(name for name in LABELS if name != "strikes")
"""The settings; "strikes" is a part of the fault."""


@dataclass(frozen=True)
class PanelChoice:
    """The settings of a panel, named as in the tables, durations in seconds.

    system, world: as `tune` took them. base: the comparison that they mean, of which the settings change a part.
    alternatives: letters, levels or variants. deadline_propagation: "own" leaves it to the alternative; "on" and "off"
    set it for those that have the choice. fault: as `services.faults` writes it.
    """

    system: System = field(compare=False)
    world: World = field(compare=False)
    base: Comparison = field(compare=False)
    decision_timeout_s: float
    runs: int
    seed: int
    alternatives: tuple[str, ...]
    deadline_propagation: PropagationLevel
    router_injection: bool
    latency_profile: str
    fault: str
    server: str
    clock: ClockName

    @classmethod
    def of(
        cls,
        system: Any = None,
        decision_timeout_s: float | None = None,
        *,
        alternatives: Sequence[str] | str | None = None,
        deadline_propagation: PropagationLevel = "own",
        world: World | None = None,
        runs: int | None = None,
        seed: int = DEFAULT_SEED,
    ) -> PanelChoice:
        """Return the settings to begin with; arguments as those of `tune`. Raises: ConfigurationError."""
        system, world = system_of(system), World() if world is None else world
        if not isinstance(world, World) or isinstance(world, Live):
            raise ConfigurationError(
                "world: a panel measures in a simulated World, and sends nothing to live endpoints; "
                f"dl.compare takes {type(world).__name__}(…)"
            )
        base, settings = resolve(system, decision_timeout_s, world=world, runs=runs, seed=seed)
        if system.budget is not None:
            # The timeout is the panel's own; in the budget there would be another.
            untimed = dataclasses.replace(system.budget, time_s=None)
            system, base = dataclasses.replace(system, budget=untimed), dataclasses.replace(base, budget=untimed)
        if isinstance(alternatives, str):
            alternatives = [name.strip() for name in alternatives.split(",")]
        if alternatives is None:
            letters = [letter_of(each.name) for each in base.alternatives]
            alternatives = [letter for letter in letters if letter in _FIRST_SHOWN] or letters
        first = cls(
            system,
            world,
            base,
            base.decision_timeout_s,
            base.runs,
            seed,
            tuple(map(_shortest, alternatives)),
            deadline_propagation,
            base.router_injection,
            base.profile.level,
            base.fault,
            base.server_behaviour.name,
            base.clock,
        )
        first.comparison(settings)
        return first

    def named_alternatives(self) -> tuple[str, ...]:
        """Return the names of the alternatives under the controls: ("A", "B:propagate").

        Raises: ConfigurationError for a variant under "on" or "off", since it has one name already.
        """
        level = self.deadline_propagation
        named = self.alternatives if level == "own" else [_with_propagation(name, level) for name in self.alternatives]
        return tuple(named)

    def comparison(self, settings: Settings) -> Comparison:
        """Return the comparison that `compare` makes of these settings. Raises: ConfigurationError naming one."""
        for name, (least, most) in _MOST.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigurationError(
                    f"{name} must be between {least:g} and {most:.10g}, not {getattr(self, name):g}"
                )
        if not self.alternatives:
            raise ConfigurationError("alternatives must name at least one, such as ('A', 'B')")
        if self.router_injection and not self.base.kind.has_router:
            raise ConfigurationError(f"router_injection: {self.system!r} has no router engine; leave it out")
        base, is_own = self.base, isinstance(self.system, OwnSystem)
        comparison = dataclasses.replace(
            base,
            decision_timeout_s=self.decision_timeout_s,
            runs=self.runs,
            seed=self.seed,
            alternatives=parse_alternatives(
                self.named_alternatives(), base.client_retries, budgeted_retries=settings.agents.max_retries
            ),
            profile=base.profile
            if self.latency_profile == base.profile.level
            else LatencyProfile.named(self.latency_profile),
            faults=base.faults if self.fault == base.fault else faults_in(base.kind, self.fault, is_own=is_own),
            server_behaviour=base.server_behaviour
            if self.server == base.server_behaviour.name
            else ServerBehaviour.named(self.server),
            router_injection=self.router_injection,
            clock=self.clock,
        )
        if isinstance(self.system, OwnSystem):
            require_own_world(self.system, self.world, self.clock, settings)
            require_no_roles(comparison.alternatives)
        return comparison

    def changed(self, name: str, value: Any) -> PanelChoice:
        """Return the choice with another value of a setting. "strikes" is the role that its fault strikes."""
        if name == "strikes":
            return dataclasses.replace(self, fault=str(dataclasses.replace(self._fault, role=value, request=None)))
        if name == "alternatives":
            value = tuple(map(_shortest, value))
            if len(set(value)) < len(value):
                raise ConfigurationError("alternatives names one twice; name each once")
        return dataclasses.replace(self, **{name: value})

    def code(self) -> str:
        """Return Python code that measures the same runs: a call of `compare` with every setting.

        A system that no text can stand for, such as a graph that lives in this process, is called `system` in it.
        """
        of_system: Any = self.system
        options = {"router_injection": self.router_injection} if hasattr(of_system, "router_injection") else {}
        system = re.sub(r"=(Budget|Price)\(", r"=dl.\1(", repr(dataclasses.replace(of_system, **options)))
        try:
            compile(system, "", "eval")
        except SyntaxError:
            system = "system"
        given, base = self.world, self.base
        world = dataclasses.replace(
            given,
            latencies=given.latencies or self.latency_profile
            if self.latency_profile == base.profile.level
            else self.latency_profile,
            faults=given.faults if self.fault == base.fault else self.fault,
            server=given.server if self.server == base.server_behaviour.name else self.server,
            clock=self.clock,
        )
        lines = [
            system,
            f"decision_timeout_s={self.decision_timeout_s!r}",
            f"alternatives={list(self.named_alternatives())!r}",
            f"world={world!r}",
            f"runs={self.runs!r}",
            f"seed={self.seed!r}",
        ]
        return "import docmind_lab as dl\n\nstudy = dl.compare(\n" + "".join(f"    {line},\n" for line in lines) + ")\n"

    def questions(self) -> list[str]:
        """Return the questions in the order of their runs: "1 · What does yield do?"."""
        comparison = dataclasses.replace(self.base, runs=self.runs, seed=self.seed)
        return [f"{number} · {asked.text}" for number, (_, asked) in enumerate(comparison.questions(), start=1)]

    def controls(self, errors: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the controls, each as a page draws it: name, label, kind, value, options, bounds, error.

        errors: name of a setting → what is wrong with what was typed.
        """
        options, values = self._options(), {name: getattr(self, name, "") for name in LABELS}
        values |= {name: self._fault.role for name in options if name == "strikes"}
        values["fault"] = self._fault_shown
        if not self.base.kind.has_router:
            del values["router_injection"]
        if "strikes" not in options:
            del values["strikes"]
        return [
            {
                "name": name,
                "label": LABELS[name],
                "kind": _KINDS.get(name, "select"),
                "value": value,
                "options": list(options.get(name, {}).items()),
                "bounds": _MOST.get(name, ()),
                "error": errors.get(name, ""),
            }
            for name, value in values.items()
        ]

    @property
    def _fault(self) -> Fault:
        """The first fault; a text without a role strikes every request of a user's system."""
        role = _EVERY_ROLE if isinstance(self.system, OwnSystem) else ""
        return Fault.parse(self.fault.partition("+")[0], role)

    @property
    def _fault_shown(self) -> str:
        """The kind of the fault, or all of it where it says more than its kind and whom it strikes."""
        plain = dataclasses.replace(Fault(self._fault.kind), role=self._fault.role)
        return plain.kind if "+" not in self.fault and plain == self._fault else self.fault

    def _options(self) -> dict[str, dict[str, str]]:
        """Return what can be chosen where there is a choice: name of a setting → value → label."""
        kind, fault = self.base.kind, self._fault
        letters = (letter_of(each.name) for each in kind.possible(parse_alternatives(None)))
        servers = {STOPS.name: "stops", GOES_ON.name: "goes on"}
        given = self.base.server_behaviour.name
        options: dict[str, dict[str, str]] = {
            "alternatives": {name: _label(name) for name in (*letters, *self.alternatives)},
            "deadline_propagation": {"own": "as each has it", "on": "on where it can be", "off": "off where it can be"},
            "latency_profile": {name: name for name in (*_PROFILES, self.base.profile.level, self.latency_profile)},
            "fault": {name: name.replace("_", " ") for name in (*FAULT_KINDS, self._fault_shown)},
            "server": servers if given in servers else {**servers, given: given},
            "clock": {name: f"{name} clock" for name in CLOCKS},
        }
        if fault.kind != "none" and "+" not in self.fault:
            roles = {role: node_in_words(role) for role in (*kind.roles, fault.role)}
            options["strikes"] = roles | {_EVERY_ROLE: "every request"}
        return options


def _label(name: str) -> str:
    (alternative,) = parse_alternatives([name])
    variant = name.partition(":")[2]
    return one_line(label_of(alternative.name)) + (f" ({variant})" if variant else "")


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


def _shortest(name: str) -> str:
    """Return the shortest name of an alternative: its letter, with its variant. Raises: ConfigurationError."""
    (alternative,) = parse_alternatives([name])
    named, plus, policies = name.partition("+")
    variant = named.partition(":")[2]
    letter = letter_of(alternative.name)
    return (f"{letter}:{variant}" if variant else letter) + plus + policies
