"""What the controls of a panel say, as one value: the comparison that it means, and the Python that repeats it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Final, Literal

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.catalogue import CATALOGUE
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.faults import Fault

PropagationLevel = Literal["own", "on", "off"]
PROPAGATION_LEVELS: Final[tuple[PropagationLevel, ...]] = ("own", "on", "off")
SUFFIXES: Final = {"on": "propagate", "off": "unpropagated"}


@dataclass(frozen=True)
class PanelChoice:
    """The settings of a sweep: those of `compare`, by the names it knows them by, and durations in seconds.

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
    corpus: str = "language_reference"
    workload: str = "supervisor"

    def named_alternatives(self) -> tuple[str, ...]:
        """The alternatives with what the propagation control makes of them: ("A", "B:propagate").

        Raises: ConfigurationError for a variant under "on" or "off", since it has one name already.
        """
        if self.deadline_propagation == "own":
            return self.alternatives
        return tuple(_with_propagation(name, self.deadline_propagation) for name in self.alternatives)

    def comparison(self, settings: Settings) -> Comparison:
        """The comparison that `compare` makes of the same settings. Raises: ConfigurationError by name."""
        return Comparison(
            decision_timeout_s=self.decision_timeout_s,
            runs=self.runs,
            seed=self.seed,
            alternatives=parse_alternatives(
                list(self.named_alternatives()), budgeted_retries=settings.agents.max_retries
            ),
            profile=LatencyProfile.named(self.latency_profile),
            faults=(Fault.parse(self.fault),),
            stops_on_disconnect=self.stops_on_disconnect,
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
        """Python that measures the same runs: a call of `compare`, with every setting written out."""
        words = {
            "decision_timeout_s": repr(self.decision_timeout_s),
            "runs": repr(self.runs),
            "seed": repr(self.seed),
            "alternatives": json.dumps(list(self.named_alternatives())),
            "profile": json.dumps(self.latency_profile),
            "fault": json.dumps(self.fault),
            "stops_on_disconnect": repr(self.stops_on_disconnect),
            "router_injection": repr(self.router_injection),
            "clock": json.dumps(self.clock),
            "documents": json.dumps(self.corpus),
            "workload": json.dumps(self.workload),
        }
        lines = "".join(f"    {name}={value},\n" for name, value in words.items())
        return f"import docmind_lab as dl\n\nstudy = dl.compare(\n{lines})\n"

    def changed(self, **values: object) -> PanelChoice:
        """The choice with some settings replaced."""
        changed: PanelChoice = dataclasses.replace(self, **values)  # type: ignore[arg-type]
        return changed


def _with_propagation(name: str, level: PropagationLevel) -> str:
    (alternative,) = parse_alternatives([name])
    if ":" in name:
        raise ConfigurationError(
            f"deadline_propagation={level!r} cannot be combined with the variant {name!r}; set it to 'own'"
        )
    has_choice = SUFFIXES[level] in CATALOGUE[alternative.name].variants
    if alternative.propagates == (level == "on") or not has_choice:
        return name
    return f"{name}:{SUFFIXES[level]}"
